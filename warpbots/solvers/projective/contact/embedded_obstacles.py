"""Obstacles inside of faces and bars, between the nodes that touch them: what contact has lost, if anything."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.node_contact import ObstacleArrays, distance_to
from warpbots.solvers.projective.elements.element import at

__all__ = ["fail_sinking_kernel", "find_sinking_kernel"]

_vec = vector(3)
_ZERO, _ONE, _THIRD = wp.constant(real(0.0)), wp.constant(real(1.0)), wp.constant(real(1.0 / 3.0))
_COARSE = wp.constant(4)  # parts of a side of a face that is looked at, at least
_FINE = wp.constant(32)  # and at most
_TIMES = wp.constant(64)  # places on the way of a face that is looked at, at most
_DEEP = wp.constant(real(0.3))  # depth in what is thinnest of an obstacle above which it is lost, which its middle is
_CHORD = wp.constant(real(0.5))  # the same in mean edges: no face with its corners outside of a right angle is deeper


@wp.func
def deepest(obstacles: ObstacleArrays, s: int, a: _vec, b: _vec, c: _vec, ua: _vec, ub: _vec, uc: _vec):
    """How deep a solid is inside of a face at the end of its way, or on it, at places close to each other [m]."""
    thin = obstacles.thinnest[s]
    size = wp.max(wp.length(b - a + ub - ua), wp.max(wp.length(c - b + uc - ub), wp.length(a - c + ua - uc)))
    way = wp.max(wp.length(ua), wp.max(wp.length(ub), wp.length(uc)))
    middle = _THIRD * (a + b + c)
    on = _THIRD * (ua + ub + uc)
    d, _n, _C = distance_to(obstacles, s, wp.vec3d(middle + on))
    depth = _ZERO
    if d <= size + way:
        parts = wp.clamp(int(wp.ceil(real(4.0) * size / thin)), _COARSE, _FINE)
        times = wp.clamp(int(wp.ceil(real(4.0) * way / thin)), 1, _TIMES)
        for m in range(times):
            share = _ONE - real(m) / real(times)
            d, _n, _C = distance_to(obstacles, s, wp.vec3d(middle + share * on))
            if d <= size + way / real(times):
                for i in range(parts + 1):
                    for j in range(parts + 1 - i):
                        v = real(i) / real(parts)
                        w = real(j) / real(parts)
                        x = a + v * (b - a) + w * (c - a) + share * (ua + v * (ub - ua) + w * (uc - ua))
                        d, _n, _C = distance_to(obstacles, s, wp.vec3d(x))
                        depth = wp.max(depth, -d)
    return depth


@wp.kernel(enable_backward=False)
def find_sinking_kernel(
    obstacles: ObstacleArrays, points: int, stride: int, edge: real, found: wp.array[int],
    corners: wp.array[wp.vec3i], x: wp.array[_vec], u: wp.array[NODE], depth_out: wp.array[real],
    solid_out: wp.array[int],
):  # fmt: skip
    """How deep an obstacle is inside of a face where a step has found its end, if that is too deep, and which solid.

    A half-space is inside of no face whose corners are outside of it.
    """
    w, k = wp.tid()
    n = w * corners.shape[0] + k
    depth_out[n] = _ZERO
    if found[w] == 0:
        return
    i = corners[k]
    p = w * points
    q = w * stride
    for s in range(obstacles.solids):
        if obstacles.thinnest[s] > _ZERO:
            depth = deepest(
                obstacles, s, x[p + i[0]], x[p + i[1]], x[p + i[2]], at(u, q + i[0]), at(u, q + i[1]), at(u, q + i[2])
            )
            if depth > wp.min(_DEEP * obstacles.thinnest[s], _CHORD * edge) and depth > depth_out[n]:
                depth_out[n] = depth
                solid_out[n] = s


@wp.kernel(enable_backward=False)
def fail_sinking_kernel(depth: wp.array[real], faces: int, found_out: wp.array[int]):
    """A step with an obstacle too deep inside of a face has failed."""
    w, k = wp.tid()
    if depth[w * faces + k] > _ZERO:
        found_out[w] = 0
