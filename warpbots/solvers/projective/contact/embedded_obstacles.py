"""Finds obstacles inside faces and bars, between the nodes that detect contact: there contact has failed."""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.node_contact import APART, ObstacleArrays, distance_to, start_of
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands, island_of

__all__ = ["fail_embedded_kernel", "find_embedded_kernel"]

_vec = vector(3)
_ZERO, _ONE, _THIRD = wp.constant(real(0.0)), wp.constant(real(1.0)), wp.constant(real(1.0 / 3.0))
_COARSE = wp.constant(4)  # least number of parts of a side of a sampled face
_FINE = wp.constant(32)  # largest number of these parts
_TIMES = wp.constant(64)  # largest number of times along the path of a sampled face
_DEEP = wp.constant(wp.float64(0.3))  # deepest path of a face through an obstacle [widths of the obstacle]
_CHORD = wp.constant(wp.float64(0.5))  # the same [mean edges]; a face across a right-angled edge never exceeds it
_EDGED = wp.constant(wp.float64(2.0 * CLEARANCE))  # deepest end, if sharp edges are contacts [mean edges]:
# edges are rounded by the clearance r, and a face on a tip of half angle a cuts off at most r (1 - sin a) in depth


@wp.func
def deepest(
    obstacles: ObstacleArrays, s: int, R: wp.mat33d, p: wp.vec3d, a: _vec, b: _vec, c: _vec, ua: _vec, ub: _vec,
    uc: _vec,
):  # fmt: skip
    """Largest depth of points of a face inside a solid, at the end of the path of the face and along the path [m].

    The points are closely spaced. The solid has the axes R and the origin p. Paths are relative to the solid, as in
    `distance_on_path`.
    """
    thin = obstacles.thinnest[s]
    size = wp.max(wp.length(b - a + ub - ua), wp.max(wp.length(c - b + uc - ub), wp.length(a - c + ua - uc)))
    way = wp.max(wp.length(ua), wp.max(wp.length(ub), wp.length(uc)))
    middle = _THIRD * (a + b + c)
    on = _THIRD * (ua + ub + uc)
    d, _slope, _n, _C = distance_to(obstacles, s, R, p, wp.vec3d(middle + on))
    end = _ZERO
    along = _ZERO
    if d <= size + way:
        parts = wp.clamp(int(wp.ceil(real(4.0) * size / thin)), _COARSE, _FINE)
        times = wp.clamp(int(wp.ceil(real(4.0) * way / thin)), 1, _TIMES)
        for m in range(times):
            share = _ONE - real(m) / real(times)
            d, _slope, _n, _C = distance_to(obstacles, s, R, p, wp.vec3d(middle + share * on))
            if d <= size + way / real(times):
                for i in range(parts + 1):
                    for j in range(parts + 1 - i):
                        v = real(i) / real(parts)
                        w = real(j) / real(parts)
                        x = a + v * (b - a) + w * (c - a) + share * (ua + v * (ub - ua) + w * (uc - ua))
                        d, _slope, _n, _C = distance_to(obstacles, s, R, p, wp.vec3d(x))
                        if m == 0:
                            end = wp.max(end, -d)
                        along = wp.max(along, -d)
    return end, along


@wp.kernel(enable_backward=False)
def find_embedded_kernel(
    # model
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    points: int,
    stride: int,
    corners: wp.array[wp.vec3i],
    # state
    h: wp.float64,
    x: wp.array[_vec],
    begun: wp.array[NODE],
    u: wp.array[NODE],
    where: wp.array[int],
    # work
    islands: Islands,
    converged: wp.array[int],
    # out
    depth_out: wp.array[real],
    solid_out: wp.array[int],
):
    """Write the depth of a face inside a solid, and the solid, if a step has converged and the depth is above a limit.

    A path may cut a corner of a solid that the end of the path does not cut, so that the limit for paths may be larger.
    A half-space is never inside a face whose corners are outside of it. Paths begin at the displacements `begun`.
    """
    w, k = wp.tid()
    n = w * corners.shape[0] + k
    if where[w] == 0:
        return
    depth_out[n] = _ZERO
    i = corners[k]
    component = islands.component[i[0]]
    if islands.moves[w * islands.count + component] == 0 or converged[island_of(islands, w, i[0])] == 0:
        return
    edge = islands.own_length[component]
    first = w * points
    row = w * stride
    for s in range(obstacles.solids):
        law = obstacles.law[obstacles.body[i[0]] * obstacles.obstacles + obstacles.obstacle[s]]
        if obstacles.thinnest[s] > _ZERO and law != APART:
            a = _vec(start_of(obstacles, poses, w, s, h, wp.vec3d(x[first + i[0]]))) + at(begun, row + i[0])
            b = _vec(start_of(obstacles, poses, w, s, h, wp.vec3d(x[first + i[1]]))) + at(begun, row + i[1])
            c = _vec(start_of(obstacles, poses, w, s, h, wp.vec3d(x[first + i[2]]))) + at(begun, row + i[2])
            ua = at(u, row + i[0]) - (a - x[first + i[0]])
            ub = at(u, row + i[1]) - (b - x[first + i[1]])
            uc = at(u, row + i[2]) - (c - x[first + i[2]])
            end, along = deepest(obstacles, s, poses.rotation[w, s], poses.position[w, s], a, b, c, ua, ub, uc)
            deep_path = real(wp.min(_DEEP * wp.float64(obstacles.thinnest[s]), _CHORD * edge))
            deep_end = deep_path
            if obstacles.angular[s] == 1:
                deep_end = wp.min(real(_EDGED * edge), deep_path)
            if (end > deep_end or along > deep_path) and along > depth_out[n]:
                depth_out[n] = along
                solid_out[n] = s


@wp.kernel(enable_backward=False)
def fail_embedded_kernel(
    # work
    depth: wp.array[real],
    faces: int,
    corners: wp.array[wp.vec3i],
    islands: Islands,
    # out
    converged_out: wp.array[int],
):
    """Fail the step of components with a face that is too deep inside an obstacle."""
    w, k = wp.tid()
    if depth[w * faces + k] > _ZERO:
        converged_out[island_of(islands, w, corners[k][0])] = 0
