"""Where bodies can meet: the part of space in which the paths of other bodies come near the path of a body.

Most of the surface of a robot is far from everything that it may touch, but near its neighbours at joints, which it
never touches. A body can only meet another body in the intersection of the boxes around their paths. The box around all
these intersections is its *reach*. A part of a body is searched only if it overlaps with this reach, and with the box
of a body that it may touch. A soft body may touch itself, so its reach is its whole box.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, has_failed
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands

__all__ = ["FAR", "BodyBoxes", "add_paths_kernel", "begin_boxes_kernel", "is_within_reach", "meet_kernel", "path_box"]

_vec = vector(3)
FAR = 1e30
"""Coordinate beyond all bodies [m]."""
_FAR = wp.constant(wp.float32(FAR))


@wp.struct
class BodyBoxes:
    """Boxes of the bodies of all worlds; those of a world follow one another.

    lower: Lower corner of the box around the paths of a body [m], shape (worlds * bodies,).
    upper: Upper corner of this box [m], shape (worlds * bodies,).
    reach_lower: Lower corner of the reach of a body [m], shape (worlds * bodies,).
    reach_upper: Upper corner of the reach of a body [m], shape (worlds * bodies,).
    """

    lower: wp.array[wp.vec3]
    upper: wp.array[wp.vec3]
    reach_lower: wp.array[wp.vec3]
    reach_upper: wp.array[wp.vec3]


@wp.func
def overlap(low: wp.vec3, high: wp.vec3, other_low: wp.vec3, other_high: wp.vec3):
    """Whether two boxes have a common point."""
    return wp.min(wp.min(high, other_high) - wp.max(low, other_low)) >= wp.float32(0.0)


@wp.func
def is_within_reach(pairs: PairArrays, boxes: BodyBoxes, w: int, i: int, low: wp.vec3, high: wp.vec3):
    """Whether a part of the body of point i, with a box around its path, may meet another body.

    The box then overlaps with the reach of its body, and with the box of a body that this body may touch.
    """
    first = w * pairs.bodies
    b = pairs.body[i]
    if not overlap(low, high, boxes.reach_lower[first + b], boxes.reach_upper[first + b]):
        return False
    for j in range(pairs.bodies):
        meets = overlap(low, high, boxes.lower[first + j], boxes.upper[first + j])
        if meets and pairs.attached[b * pairs.bodies + j] == 0:
            return True
    return False


@wp.func
def path_box(
    pairs: PairArrays, islands: Islands, asked: wp.array[int], x: wp.array[_vec], u: wp.array[NODE], w: int, i: int
):  # fmt: skip
    """Lower and upper corner of the box around the path of a point; one whose step has failed rests at its start."""
    y = x[w * pairs.nodes + i]
    z = y
    if not has_failed(pairs, islands, asked, w, i):
        z = y + at(u, w * pairs.stride + i)
    return wp.min(y, z), wp.max(y, z)


@wp.kernel(enable_backward=False)
def begin_boxes_kernel(
    # work
    check: wp.array[int],
    bodies: int,
    # out
    boxes_out: BodyBoxes,
):
    """Empty the boxes of bodies in worlds in which a search is requested."""
    b = wp.tid()
    if check[b / bodies] == 1:
        boxes_out.lower[b] = wp.vec3(_FAR, _FAR, _FAR)
        boxes_out.upper[b] = wp.vec3(-_FAR, -_FAR, -_FAR)


@wp.kernel(enable_backward=False)
def add_paths_kernel(
    # model
    pairs: PairArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    islands: Islands,
    check: wp.array[int],
    searches: wp.array[int],
    asked: wp.array[int],
    # out
    boxes_out: BodyBoxes,
):
    """Extend the boxes of bodies to the boxes in which the faces and edges of their vertices are searched."""
    w, k = wp.tid()
    if check[w] == 0:
        return
    i = pairs.vertex[k]
    low, high = path_box(pairs, islands, asked, x, u, w, i)
    around = wp.vec3(wp.float32(pairs.clearance[i] + wp.where(searches[w] == 0, pairs.margin[i], real(0.0))))
    b = w * pairs.bodies + pairs.body[i]
    wp.atomic_min(boxes_out.lower, b, wp.vec3(low) - around)
    wp.atomic_max(boxes_out.upper, b, wp.vec3(high) + around)


@wp.kernel(enable_backward=False)
def meet_kernel(
    # model
    pairs: PairArrays,
    # work
    check: wp.array[int],
    # out
    boxes_out: BodyBoxes,
):
    """Write the reach of every body; that of a body that can meet nothing is empty."""
    w, k = wp.tid()
    if check[w] == 0:
        return
    first = w * pairs.bodies
    low = wp.vec3(_FAR, _FAR, _FAR)
    high = -low
    for j in range(pairs.bodies):
        if pairs.attached[k * pairs.bodies + j] == 0:
            a = wp.max(boxes_out.lower[first + k], boxes_out.lower[first + j])
            b = wp.min(boxes_out.upper[first + k], boxes_out.upper[first + j])
            if overlap(a, b, a, b):
                low = wp.min(low, a)
                high = wp.max(high, b)
    boxes_out.reach_lower[first + k] = low
    boxes_out.reach_upper[first + k] = high
