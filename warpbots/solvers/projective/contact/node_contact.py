"""Contact of nodes, and of spots of faces and bars, with solids that do not move."""

import warp as wp

from warpbots.contact import CODES
from warpbots.contact.solid import Solids, solid_distance
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.coulomb import MeetingArrays, TouchArrays, law
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = [
    "ObstacleArrays",
    "adj_obstacles_kernel",
    "begin_obstacles_kernel",
    "differentiate_obstacles_kernel",
    "distance_to",
    "meet_obstacles_kernel",
    "pull_obstacles_kernel",
]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)
_SLIP = wp.constant(CODES["slip"])


@wp.struct
class ObstacleArrays:
    """Obstacles; a contact c is of the point of number c / solids, with the solid c % solids.

    solids: Number of solids.
    solid: The solids.
    obstacle: Obstacle of a solid, shape (solids,).
    obstacles: Number of obstacles.
    condition: Code of the condition of an obstacle, shape (obstacles,).
    extra: Coefficient of what sticks less that of what slides [1], shape (obstacles,).
    friction: Coulomb coefficient [1], shape (worlds * obstacles,).
    thinnest: Smallest width of a solid [m], 0 for one that has none, shape (solids,).
    thin: 1 for a solid that spots touch, too, shape (solids,).
    """

    solids: int
    solid: Solids
    obstacle: wp.array[int]
    obstacles: int
    condition: wp.array[int]
    extra: wp.array[real]
    friction: wp.array[real]
    thinnest: wp.array[real]
    thin: wp.array[int]


@wp.func
def distance_to(obstacles: ObstacleArrays, s: int, y: wp.vec3d):
    """Distance, normal and curvature of a solid at a place, which is exact, as small forces hang on small ways."""
    R = obstacles.solid.rotation[s]
    d, n, C = solid_distance(obstacles.solid, s, wp.transpose(R) @ (y - obstacles.solid.position[s]))
    n = R @ n
    C = R @ C @ wp.transpose(R)
    K = _mat()
    for i in range(3):
        for j in range(3):
            K[i, j] = real(C[i, j])
    return real(d), _vec(real(n[0]), real(n[1]), real(n[2])), K


@wp.func
def law_of_end(
    T: _vec, u: _vec, n: _vec, phi: real, lam: _vec, w: real, c: real, condition: int, mu: real, extra: real,
    touched: int,
):  # fmt: skip
    """T . l at the end u of a step."""
    return wp.dot(T, law(u - wp.dot(n, u) * n + phi * n, n, lam, w, c, condition, mu, extra, touched))


@wp.kernel(enable_backward=False)
def begin_obstacles_kernel(
    touch: TouchArrays, obstacles: ObstacleArrays, closed: real, near: real, h: real, x: wp.array[_vec],
    v: wp.array[_vec], meeting_out: MeetingArrays,
):  # fmt: skip
    """Which contacts of a point are closed when a step begins, and whether several are near where it flies freely.

    Spots touch thin solids alone, and share what they carry with the corners of their face.
    """
    w, p = wp.tid()
    node = touch.point[p]
    share = touch.share[p]
    here = wp.vec3d()
    ahead = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            j = w * touch.nodes + node[q]
            here += wp.float64(share[q]) * wp.vec3d(x[j])
            ahead += wp.float64(share[q]) * (wp.vec3d(x[j]) + wp.vec3d(h * v[j]))
    spot = p >= touch.node.shape[0]
    first = w * touch.contacts + p * obstacles.solids
    count = int(0)
    for s in range(obstacles.solids):
        k = first + s
        o = obstacles.obstacle[s]
        d, _n, _C = distance_to(obstacles, s, here)
        e, _n, _C = distance_to(obstacles, s, ahead)
        if wp.min(d, e) <= near:
            count += 1
        meeting_out.touched[k] = wp.where(d <= closed, 1, 0)
        meeting_out.node[k] = node
        if spot and obstacles.thin[s] == 0:
            meeting_out.node[k] = wp.vec4i(-1, -1, -1, -1)
        meeting_out.weight[k] = share
        meeting_out.condition[k] = obstacles.condition[o]
        meeting_out.friction[k] = obstacles.friction[w * obstacles.obstacles + o]
        meeting_out.extra[k] = obstacles.extra[o]
    for s in range(obstacles.solids):
        if spot:
            meeting_out.shared[first + s] = 1
        else:
            meeting_out.shared[first + s] = int(count > 1 or touch.row[p] < 0)


@wp.kernel(enable_backward=False)
def meet_obstacles_kernel(
    touch: TouchArrays, obstacles: ObstacleArrays, active: wp.array[int], x: wp.array[_vec], z: wp.array[NODE],
    f: wp.array[NODE], meeting_out: MeetingArrays,
):  # fmt: skip
    """Where solids are at the end of the step, and which contacts count: those with a force or about to have one."""
    w, c = wp.tid()
    if active[w] == 0:
        return
    k = w * touch.contacts + c
    node = meeting_out.node[k]
    meeting_out.listed[k] = 0
    if node[0] < 0:
        return
    y = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            j = w * touch.stride + node[q]
            end = wp.vec3d(x[w * touch.nodes + node[q]]) + wp.vec3d(at(z, j) + at(f, j))
            y += wp.float64(meeting_out.weight[k][q]) * end
    d, n, C = distance_to(obstacles, c % obstacles.solids, y)
    meeting_out.distance[k] = d
    meeting_out.normal[k] = n
    meeting_out.curvature[k] = C
    lam = at(z, w * touch.stride + touch.first + c)
    bound = meeting_out.touched[k] == 1 and meeting_out.condition[k] <= _SLIP
    meeting_out.listed[k] = int(bound or d < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.func
def way_of(touch: TouchArrays, meeting: MeetingArrays, z: wp.array[NODE], w: int, k: int):
    """Displacement of the point of a contact."""
    u = _vec()
    for q in range(3):
        if meeting.node[k][q] >= 0:
            u += meeting.weight[k][q] * at(z, w * touch.stride + meeting.node[k][q])
    return u


@wp.kernel(enable_backward=False)
def differentiate_obstacles_kernel(
    touch: TouchArrays, z: wp.array[NODE], meeting_out: MeetingArrays
):  # fmt: skip
    """B = dl/du and L = dl/dlambda of every contact that counts, where the displacements and forces are `z`."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if meeting_out.listed[k] == 0:
        return
    u = way_of(touch, meeting_out, z, w, k)
    lam = at(z, w * touch.stride + touch.first + c)
    B = _mat()
    L = _mat()
    for r in range(3):
        T = _vec()
        T[r] = real(1.0)
        _T, u_adj, n_adj, d_adj, lam_adj, _w, _c, _k, _mu, _e, _t = wp.grad(law_of_end)(
            T, u, meeting_out.normal[k], meeting_out.distance[k], lam, meeting_out.own[k], meeting_out.skin[k],
            meeting_out.condition[k], meeting_out.friction[k], meeting_out.extra[k], meeting_out.touched[k],
        )  # fmt: skip
        row = u_adj + meeting_out.curvature[k] @ n_adj + d_adj * meeting_out.normal[k]
        for i in range(3):
            B[r, i] = row[i]
            L[r, i] = lam_adj[i]
    meeting_out.by_displacement[k] = B
    meeting_out.by_force[k] = L


@wp.kernel(enable_backward=False)
def pull_obstacles_kernel(touch: TouchArrays, active: wp.array[int], z: wp.array[NODE], meeting_out: MeetingArrays):
    """B^T nu: what the adjoint has in the place of a force."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if active[w] == 0 or meeting_out.listed[k] == 0:
        return
    nu = at(z, w * touch.stride + touch.first + c)
    force = wp.transpose(meeting_out.by_displacement[k]) @ nu
    for q in range(3):
        meeting_out.pull[4 * k + q] = meeting_out.weight[k][q] * force


@wp.kernel(enable_backward=False)
def adj_obstacles_kernel(
    touch: TouchArrays, obstacles: ObstacleArrays, z: wp.array[NODE], meeting: MeetingArrays, adjoint: wp.array[NODE],
    x_adj_out: wp.array[_vec], u_adj_out: wp.array[NODE], friction_adj_out: wp.array[real],
):  # fmt: skip
    """Gradients to where nodes started, displacements of those that are fixed, and friction: (dl/dx)^T nu and so on."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if meeting.listed[k] == 0:
        return
    i = w * touch.stride + touch.first + c
    _T, u_adj, n_adj, d_adj, _l, _w, _c, _k, mu_adj, _e, _t = wp.grad(law_of_end)(
        at(adjoint, i), way_of(touch, meeting, z, w, k), meeting.normal[k], meeting.distance[k], at(z, i),
        meeting.own[k], meeting.skin[k], meeting.condition[k], meeting.friction[k], meeting.extra[k],
        meeting.touched[k],
    )  # fmt: skip
    x_adj = meeting.curvature[k] @ n_adj + d_adj * meeting.normal[k]
    for q in range(3):
        node = meeting.node[k][q]
        if node >= 0:
            wp.atomic_add(x_adj_out, w * touch.nodes + node, meeting.weight[k][q] * x_adj)
            if touch.place[node] < 0:
                wp.atomic_add(u_adj_out, w * touch.stride + node, packed(meeting.weight[k][q] * (u_adj + x_adj)))
    if friction_adj_out:
        o = obstacles.obstacle[c % obstacles.solids]
        wp.atomic_add(friction_adj_out, w * obstacles.obstacles + o, mu_adj)
