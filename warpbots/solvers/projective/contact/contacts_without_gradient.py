"""Contacts without a gradient: pairs whose planes do not match the positions of their nodes at the end of a step.

The adjoint differentiates the plane of a pair at the end of a step. A pair of corners or edges may be held at the plane
of its first contact, and the planes of nearly parallel edges may still rotate when they are updated for the last time.
The step has then used a plane that differs from the plane at its end, and whose rotation depends on the path of
collision detection.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import skin_of
from warpbots.solvers.projective.contact.pair_arrays import HELD, PairArrays
from warpbots.solvers.projective.contact.pair_geometry import plane_of
from warpbots.solvers.projective.contact.pairs import ends_of, start_distance, to_keep
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["detached_kernel", "end_planes_kernel", "loosest", "plane_change"]

_vec = vector(3)
_MOST, _TOLERANCES = 1e-3, 1e3


def loosest(tolerance: float) -> float:
    """Largest error of a normal or a weight in a gradient [1], for the `tolerance` of a step [mean edges].

    The error of a gradient can be a hundred times as large: at half a thousandth it was 5 %. Planes that settle end a
    hundred times nearer, and planes that do not settle end farther away.
    """
    return min(_MOST, _TOLERANCES * tolerance)


@wp.kernel(enable_backward=False)
def end_planes_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    h: wp.float64,
    x: wp.array[_vec],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write normals, distances and weights of active pairs at the plane of the positions at the end `z` of a step."""
    w, p = wp.tid()
    k = w * topology.contacts + first + p
    if contacts_out.listed[k] == 0:
        return
    m = w * pairs.capacity + p
    a, b, c, d = ends_of(pairs, x, z, w, pairs.node[m])
    n, weight, _holds = plane_of(pairs.kind[m], pairs.side[m], pairs.normal[m], pairs.weight[m], a, b, c, d)
    phi = wp.dot(n, weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d)
    contacts_out.normal[k] = n
    contacts_out.end_weight[k] = weight
    start, _direction, _weight = start_distance(pairs, x, w, m)
    yielded = wp.dot(n, at(z, w * topology.stride + topology.first + first + p)) * skin_of(topology, pairs.node[m])
    keep, follows = to_keep(pairs, h, pairs.node[m], start, yielded)
    contacts_out.distance[k] = phi - keep
    contacts_out.follows[k] = follows


@wp.func
def plane_change(
    topology: ContactTopology, pairs: PairArrays, contacts: ContactArrays, first: int, z: wp.array[NODE], w: int, p: int
):
    """Change of the plane of pair p after its last update, of its normal or weights [1], and its force [N].

    The change is infinite for a frozen plane; it is 0 without a force, which does not depend on the plane then.
    """
    k = w * topology.contacts + first + p
    m = w * pairs.capacity + p
    change = real(0.0)
    force = real(0.0)
    if contacts.listed[k] == 1:
        force = wp.length(at(z, w * topology.stride + topology.first + first + p))
    if force > real(0.0):
        off = wp.length(contacts.end_weight[k] - pairs.weight[m])
        change = wp.max(wp.length(contacts.normal[k] - pairs.normal[m]), off)
        if pairs.kind[m] > HELD:
            change = real(wp.inf)
    return change, force


@wp.kernel(enable_backward=False)
def detached_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    loose: real,
    z: wp.array[NODE],
    # work
    contacts: ContactArrays,
    # out
    progress_out: IterationState,
):
    """Mark the adjoint of a world as not converged if a pair with a contact force has such a plane at the end `z`."""
    w, p = wp.tid()
    change, force = plane_change(topology, pairs, contacts, first, z, w, p)
    if force > real(0.0) and not (change <= loose):
        progress_out.found[w] = 0
