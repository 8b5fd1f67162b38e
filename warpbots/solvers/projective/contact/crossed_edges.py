"""Finds edges that intersect faces at the end of a step: there contact has failed."""

import warp as wp

from warpbots.numerics import NODE, vector
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, has_failed, never_meet
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["find_intersections_kernel"]

_vec = vector(3)
_ZERO = wp.constant(wp.float64(0.0))


@wp.func
def intersects(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d):
    """Whether the segment pq intersects the triangle abc; the border of the triangle does not count."""
    n = wp.cross(b - a, c - a)
    d = q - p
    u = wp.dot(wp.cross(a - p, b - p), d)
    v = wp.dot(wp.cross(b - p, c - p), d)
    w = wp.dot(wp.cross(c - p, a - p), d)
    return (
        wp.dot(p - a, n) * wp.dot(q - a, n) < _ZERO
        and wp.min(u * v, wp.min(v * w, w * u)) > _ZERO
    )  # fmt: skip


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
    count = pairs.face.shape[0]
    query = wp.bvh_query_aabb(faces, wp.vec3(wp.min(p, q)), wp.vec3(wp.max(p, q)), wp.bvh_get_group_root(faces, w))
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
