"""Coulomb's law at pairs: contacts between surfaces that move, at a point of the iteration."""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import law
from warpbots.solvers.projective.contact.pair_arrays import NONE, PairArrays, clearance_of, obstacle_of
from warpbots.solvers.projective.contact.pair_geometry import plane_of
from warpbots.solvers.projective.elements.element import at

__all__ = [
    "PairMotion",
    "TouchingPair",
    "ends_of",
    "evaluate_pairs_kernel",
    "motion_of",
    "pair_at",
    "pair_law",
    "pair_work",
    "starts_of",
]

_vec, _vec4 = vector(3), vector(4)
_FRICTION = wp.constant(CODES["friction"])


@wp.struct
class TouchingPair:
    """A pair in contact at the end of a step.

    kind: Kind of the pair.
    side: Sign of the normal (1 or -1), as in `PairArrays`.
    normal: Normal of the plane at which the pair is held [1].
    weight: Weights of the nodes at this plane [1].
    a, b, c, d: Positions of the four nodes [m].
    lam: Force lambda [N].
    clearance: Distance that the surfaces of the pair keep [m].
    own: The w of the contact law [m/N].
    skin: Compliance c of the contact itself [m/N].
    friction: Coulomb coefficient [1].
    """

    kind: int
    side: real
    normal: _vec
    weight: _vec4
    a: _vec
    b: _vec
    c: _vec
    d: _vec
    lam: _vec
    clearance: real
    own: real
    skin: real
    friction: real


@wp.struct
class PairMotion:
    """Motion of the nodes of a pair.

    a, b, c, d: Displacements of the four nodes [m].
    """

    a: _vec
    b: _vec
    c: _vec
    d: _vec


@wp.func
def pair_law(T: _vec, pair: TouchingPair, u: PairMotion):
    """T . l for the force l of the law at the end of a step with the displacements u."""
    a = pair.a
    b = pair.b
    c = pair.c
    d = pair.d
    n, weight, _holds = plane_of(pair.kind, pair.side, pair.normal, pair.weight, a, b, c, d)
    way = weight[0] * u.a + weight[1] * u.b + weight[2] * u.c + weight[3] * u.d
    phi = wp.dot(n, weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d) - pair.clearance
    q = way - wp.dot(n, way) * n + phi * n
    return wp.dot(T, law(q, n, pair.lam, pair.own, pair.skin, _FRICTION, pair.friction, real(0.0), 0))


@wp.func
def pair_work(pair: TouchingPair, p: PairMotion):
    """lambda . sum a_k p_k: the work of the contact force of a pair in displacements p of its nodes."""
    _n, weight, _holds = plane_of(pair.kind, pair.side, pair.normal, pair.weight, pair.a, pair.b, pair.c, pair.d)
    return wp.dot(pair.lam, weight[0] * p.a + weight[1] * p.b + weight[2] * p.c + weight[3] * p.d)


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
    contacts_out.distance[k] = phi
    contacts_out.normal[k] = normal
    contacts_out.condition[k] = _FRICTION
    contacts_out.friction[k] = friction_of(pairs, w, i)
    contacts_out.extra[k] = real(0.0)
    contacts_out.closed[k] = 0
    contacts_out.listed[k] = int(phi < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.func
def pair_at(
    pairs: PairArrays, contacts: ContactArrays, x: wp.array[_vec], u: wp.array[NODE], lam: _vec, w: int, m: int, k: int
):
    """Pair m, which is contact k, at the end of a step with the displacements u."""
    pair = TouchingPair()
    pair.clearance = clearance_of(pairs, pairs.node[m])
    pair.own = contacts.own[k]
    pair.skin = contacts.skin[k]
    pair.friction = contacts.friction[k]
    pair.kind = pairs.kind[m]
    pair.side = pairs.side[m]
    pair.normal = pairs.normal[m]
    pair.weight = pairs.weight[m]
    a, b, c, d = ends_of(pairs, x, u, w, pairs.node[m])
    pair.a = a
    pair.b = b
    pair.c = c
    pair.d = d
    pair.lam = lam
    return pair


@wp.func
def motion_of(pairs: PairArrays, z: wp.array[NODE], w: int, m: int):
    """Displacements, taken from `z`, of the nodes of pair m."""
    motion = PairMotion()
    a, b, c, d = displacements_of(pairs, z, w, pairs.node[m])
    motion.a = a
    motion.b = b
    motion.c = c
    motion.d = d
    return motion
