"""Coulomb's law at pairs: contacts between surfaces that move, at a point of the iteration."""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import acts
from warpbots.solvers.projective.contact.pair_arrays import NONE, PairArrays, clearance_of, obstacle_of
from warpbots.solvers.projective.elements.element import at

__all__ = ["displacements_of", "ends_of", "evaluate_pairs_kernel", "friction_of", "starts_of"]

_vec = vector(3)
_FRICTION = wp.constant(CODES["friction"])


@wp.func
def displacements_of(pairs: PairArrays, z: wp.array[NODE], w: int, i: wp.vec4i):
    """Displacements of the nodes of a pair."""
    s = w * pairs.stride
    return at(z, s + i[0]), at(z, s + i[1]), at(z, s + i[2]), at(z, s + i[3])


@wp.func
def starts_of(pairs: PairArrays, x: wp.array[_vec], w: int, i: wp.vec4i):
    """Positions of the nodes of a pair when the step begins, relative to its first node.

    A pair is small and may be far from the origin, where single precision would round its geometry.
    """
    n = w * pairs.nodes
    o = x[n + i[0]]
    return _vec(), x[n + i[1]] - o, x[n + i[2]] - o, x[n + i[3]] - o


@wp.func
def ends_of(pairs: PairArrays, x: wp.array[_vec], z: wp.array[NODE], w: int, i: wp.vec4i):
    """Positions of the nodes of a pair at the end of a step, relative to the start of its first node."""
    a, b, c, d = starts_of(pairs, x, w, i)
    ua, ub, uc, ud = displacements_of(pairs, z, w, i)
    return a + ua, b + ub, c + uc, d + ud


@wp.func
def friction_of(pairs: PairArrays, w: int, i: wp.vec4i):
    """Coulomb coefficient of a pair: the mean of both bodies, or that of the obstacle; 0 without friction."""
    o = obstacle_of(pairs, i)
    mu = real(0.0)
    if o < 0:
        first = w * pairs.movers
        mu = real(0.5) * (pairs.friction[first + pairs.body[i[0]]] + pairs.friction[first + pairs.body[i[3]]])
    elif pairs.condition[o] == _FRICTION:
        mu = pairs.obstacle_friction[w * pairs.condition.shape[0] + o]
    return mu


@wp.kernel(enable_backward=False)
def evaluate_pairs_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    z: wp.array[NODE],
    f: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write the distances of pairs at the end of the step, measured at their planes as last updated."""
    w, p = wp.tid()
    if active[w] == 0:
        return
    k = w * topology.contacts + first + p
    m = w * pairs.capacity + p
    contacts_out.listed[k] = 0
    if p >= pairs.count[w] or pairs.kind[m] == NONE or pairs.redundant[m] == 1:
        return
    i = pairs.node[m]
    s = w * topology.stride
    a, b, c, d = ends_of(pairs, x, z, w, i)
    weight = pairs.weight[m]
    normal = pairs.normal[m]
    end = weight[0] * (a + at(f, s + i[0])) + weight[1] * (b + at(f, s + i[1]))
    end += weight[2] * (c + at(f, s + i[2])) + weight[3] * (d + at(f, s + i[3]))
    phi = wp.dot(normal, end) - clearance_of(pairs, i)
    lam = at(z, s + topology.first + first + p)
    contacts_out.node[k] = i
    contacts_out.weight[k] = weight
    contacts_out.obstacle[k] = obstacle_of(pairs, i)
    contacts_out.distance[k] = phi
    contacts_out.normal[k] = normal
    contacts_out.condition[k] = _FRICTION
    contacts_out.friction[k] = friction_of(pairs, w, i)
    contacts_out.extra[k] = real(0.0)
    contacts_out.closed[k] = 0
    contacts_out.listed[k] = acts(phi, lam, _FRICTION, 0)
