"""Finds edges that intersect faces at the end of a step: there contact has failed."""

import warp as wp

from warpbots.numerics import NODE, vector
from warpbots.solvers.projective.contact.body_boxes import BodyBoxes, is_within_reach
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, has_failed, never_meet
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["find_intersections_kernel"]

_vec = vector(3)
_ROUNDING = wp.constant(wp.float64(1e-14))  # of a triple product of vectors of length 1


@wp.func
def side_of(volume: wp.float64, rounding: wp.float64):
    """Sign of a triple product; 0 if it may be rounding alone."""
    return int(volume > rounding) - int(volume < -rounding)


@wp.func
def intersects(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d):
    """Whether the segment pq intersects the triangle abc; the border of the triangle does not count.

    Rounding does not count either: edges and faces in one plane, such as those of a side that is held, do not meet.
    """
    n = wp.cross(b - a, c - a)
    d = q - p
    size = wp.max(wp.length(d), wp.max(wp.length(a - p), wp.max(wp.length(b - p), wp.length(c - p))))
    rounding = _ROUNDING * size * size * size
    u = side_of(wp.dot(wp.cross(a - p, b - p), d), rounding)
    v = side_of(wp.dot(wp.cross(b - p, c - p), d), rounding)
    w = side_of(wp.dot(wp.cross(c - p, a - p), d), rounding)
    return side_of(wp.dot(p - a, n), rounding) * side_of(wp.dot(q - a, n), rounding) < 0 and wp.abs(u + v + w) == 3


@wp.func
def corner(pairs: PairArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, i: int):
    """Position of point i after the displacements u, in double precision."""
    return wp.vec3d(x[w * pairs.nodes + i]) + wp.vec3d(at(u, w * pairs.stride + i))


@wp.kernel(enable_backward=False)
def find_intersections_kernel(
    # model
    pairs: PairArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    zero: wp.array[NODE],
    # work
    faces: wp.uint64,
    boxes: BodyBoxes,
    islands: Islands,
    asked: wp.array[int],
    added: wp.array[int],
    progress: IterationState,
    check: wp.array[int],
    # out
    intersection_out: wp.array[wp.int64],
):
    """Find edges that intersect faces at the end of a step for which detection has added no more pairs.

    A body that intersects itself when the step begins may continue to do so.
    """
    w, k = wp.tid()
    e = pairs.edge[k]
    if check[w] == 0 or progress.ended[w] == 0 or added[w] > 0 or has_failed(pairs, islands, asked, w, e[0]):
        return
    p = corner(pairs, x, u, w, e[0])
    q = corner(pairs, x, u, w, e[1])
    low = wp.vec3(wp.min(p, q))
    high = wp.vec3(wp.max(p, q))
    if not is_within_reach(pairs, boxes, w, e[0], low, high):
        return
    count = pairs.face.shape[0]
    query = wp.bvh_query_aabb(faces, low, high, wp.bvh_get_group_root(faces, w))
    item = int(0)
    while wp.bvh_query_next(query, item):
        f = pairs.face[item - w * count]
        joint = e[0] == f[0] or e[0] == f[1] or e[0] == f[2] or e[1] == f[0] or e[1] == f[1] or e[1] == f[2]
        if not (joint or never_meet(pairs, e[0], f[0]) or has_failed(pairs, islands, asked, w, f[0])):
            through = intersects(
                p, q, corner(pairs, x, u, w, f[0]), corner(pairs, x, u, w, f[1]), corner(pairs, x, u, w, f[2])
            )
            if through and pairs.body[e[0]] == pairs.body[f[0]]:
                through = not intersects(
                    corner(pairs, x, zero, w, e[0]), corner(pairs, x, zero, w, e[1]),
                    corner(pairs, x, zero, w, f[0]), corner(pairs, x, zero, w, f[1]),
                    corner(pairs, x, zero, w, f[2]),
                )  # fmt: skip
            if through:
                wp.atomic_max(intersection_out, w, wp.int64(k) * wp.int64(count) + wp.int64(item - w * count + 1))
