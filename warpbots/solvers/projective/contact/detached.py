"""Contacts through which no gradient goes: their planes are not where their pairs are when a step ends.

The adjoint differentiates the plane of a pair where the step ends. Where a pair was held at the plane at which it met,
as corners on edges are, or its plane still turned when planes were looked at for the last time, as those of nearly
parallel edges may, the step took another plane, of which only the way of the search knows how it turns.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.coulomb import MeetingArrays, TouchArrays
from warpbots.solvers.projective.contact.detection import HELD, PairArrays, pair_geometry
from warpbots.solvers.projective.contact.pairs import ends_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.iterate.anderson import Progress

__all__ = ["loose_kernel"]

_vec = vector(3)
_LOOSE = wp.constant(real(1e-3))  # by which a normal or a weight may be off in a gradient


@wp.kernel(enable_backward=False)
def loose_kernel(
    touch: TouchArrays, pairs: PairArrays, first: int, x: wp.array[_vec], z: wp.array[NODE], meeting: MeetingArrays,
    progress_out: Progress,
):  # fmt: skip
    """Take back that the adjoint of a world was found if a contact with a force has such a plane at the end `z`."""
    w, p = wp.tid()
    if meeting.listed[w * touch.contacts + first + p] == 0:
        return
    lam = at(z, w * touch.stride + touch.first + first + p)
    if wp.dot(lam, lam) == real(0.0):
        return
    m = w * pairs.capacity + p
    change = real(wp.inf)
    if pairs.kind[m] != HELD:
        a, b, c, d = ends_of(pairs, x, z, w, pairs.node[m])
        normal, weight, _holds = pair_geometry(pairs.kind[m], pairs.side[m], a, b, c, d)
        change = wp.max(wp.length(normal - pairs.normal[m]), wp.length(weight - pairs.weight[m]))
    if not (change <= _LOOSE):
        progress_out.found[w] = 0
