"""Contact of nodes, and of surface samples, with the solids of obstacles, which may move as prescribed.

Distances and normals are those of the solid in its pose at the end of the step. A path is relative to the solid in
this pose: the path of a point that moves with the solid is a single point.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_along, carried_velocity
from warpbots.contact.solid import LINEAR, Solids, solid_curvature
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, holding
from warpbots.solvers.projective.contact.coulomb_law import acts
from warpbots.solvers.projective.contact.surface_samples import THIN
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands, component_of

__all__ = [
    "APART",
    "ObstacleArrays",
    "begin_obstacles_kernel",
    "distance_to",
    "evaluate_obstacles_kernel",
    "free_of_solid",
    "start_of",
    "stop_nodes_kernel",
]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)
_SPACING = wp.constant(wp.float64(0.1))  # distance of the points at which paths are examined [mean edges]
_CLOSED = wp.constant(wp.float64(1e-3))  # distance below which a contact is closed when a step begins [mean edges]
_THIN = wp.constant(wp.float64(THIN))
_FAR = wp.constant(real(2.0))  # spacings above which a path is examined
_ENTERED = wp.constant(real(0.1))  # depth at which a path has entered a solid [spacings]
_PATIENCE = wp.constant(1000)  # steps along a path after which a point has to stop
_OPPOSITE = wp.constant(real(-0.2))  # cosine between normals of opposite sides: a cube has none at one edge
APART = wp.constant(-2)
"""Stands in place of a contact law for a body and an obstacle that are never in contact."""


@wp.struct
class ObstacleArrays:
    """Obstacles; contact c is between point c / solids and solid c % solids.

    solids: Number of solids.
    solid: The solids.
    frame: Frame that moves a solid, -1 for none, shape (solids,).
    obstacle: Obstacle of a solid, shape (solids,).
    obstacles: Number of obstacles.
    condition: Code of the contact condition of an obstacle (`warpbots.contact.CODES`), shape (obstacles,).
    extra: Coefficient of static friction minus coefficient of sliding friction [1], shape (obstacles,).
    friction: Coulomb coefficient [1], shape (worlds * obstacles,).
    body: Body of each node and vertex: soft bodies, then bones with a surface, shape (nodes + vertices,).
    laws: Number of contact laws.
    law: Contact law of each body with each obstacle, -1 for none, `APART` for two that are never in contact, shape
        (bodies * obstacles,).
    law_friction: Coulomb coefficient of a contact law [1], shape (worlds * laws,).
    thinnest: Smallest width of a solid [m], 0 for a half-space, shape (solids,).
    across: Second smallest width of a solid that surface samples may detect [m], 0 for other solids, shape (solids,).
    angular: 1 for a solid that protrudes only at edges that detect contact themselves, shape (solids,).
    edge: Mean edge of the component of each node, vertex or surface sample that may be in contact with solids [m],
        shape (contact points,).
    """

    solids: int
    solid: Solids
    frame: wp.array[int]
    obstacle: wp.array[int]
    obstacles: int
    condition: wp.array[int]
    extra: wp.array[real]
    friction: wp.array[real]
    body: wp.array[int]
    laws: int
    law: wp.array[int]
    law_friction: wp.array[real]
    thinnest: wp.array[real]
    across: wp.array[wp.float64]
    angular: wp.array[int]
    edge: wp.array[wp.float64]


@wp.func
def distance_to(obstacles: ObstacleArrays, s: int, R: wp.mat33d, p: wp.vec3d, y: wp.vec3d):
    """Distance of y from a solid with the axes R and the origin p, and its slope, normal and curvature there.

    The gradient of the distance is the slope times the normal. The slope differs from 1 if a sampled distance is too
    coarse. Double precision keeps small forces accurate.
    """
    d, n, C = solid_curvature(obstacles.solid, 0, s, R, p, y)
    slope = wp.float64(1.0)
    if obstacles.solid.kind[s] >= LINEAR:
        slope = wp.length(n)
        n = n / slope
        C = C @ (wp.identity(n=3, dtype=wp.float64) - wp.outer(n, n)) / slope
    K = _mat()
    for i in range(3):
        for j in range(3):
            K[i, j] = real(C[i, j])
    return real(d), real(slope), _vec(real(n[0]), real(n[1]), real(n[2])), K


@wp.func
def plane_of_entry(
    obstacles: ObstacleArrays, s: int, R: wp.mat33d, p: wp.vec3d, spacing: real, x: wp.vec3d, y: wp.vec3d
):
    """Point at which the path from x to y enters a solid that it leaves on the opposite side, and whether there is one.

    Without such a point, returns y: a straight path may cut a corner of a solid, but may not pass through the solid.
    """
    way = y - x
    length = real(wp.length(way))
    entered = int(0)
    left = int(0)
    first = _vec()
    place = y
    along = real(0.0)
    while along < length and left == 0:
        here = x + wp.float64(along / length) * way
        d, _slope, n, _C = distance_to(obstacles, s, R, p, here)
        if entered == 1:
            left = int(wp.dot(n, first) < _OPPOSITE)
            entered = int(d < real(0.0))
        elif d < -_ENTERED * spacing:
            entered = int(1)
            first = n
            place = here
        along += wp.max(d, spacing)
    if entered == 1 and left == 0:
        _d, _slope, n, _C = distance_to(obstacles, s, R, p, y)
        left = int(wp.dot(n, first) < _OPPOSITE)
    if left == 0:
        place = y
    return place, left


@wp.func
def distance_on_path(
    obstacles: ObstacleArrays, s: int, R: wp.mat33d, p: wp.vec3d, spacing: real, x: wp.vec3d, y: wp.vec3d
):
    """`distance_to` at the end y of a path from x; relative to the plane of entry if the path went through the solid.

    The path is relative to the solid in its pose at the end of the step: a solid that moves carries x along.
    """
    place = y
    through = int(0)
    if obstacles.thinnest[s] > real(0.0) and real(wp.length(y - x)) > _FAR * spacing:
        place, through = plane_of_entry(obstacles, s, R, p, spacing, x, y)
    d, slope, n, C = distance_to(obstacles, s, R, p, place)
    if through == 1:
        d += slope * wp.dot(n, _vec(y - place))
        C = _mat()
    return d, slope, n, C


@wp.func
def start_of(obstacles: ObstacleArrays, poses: MovingPoses, w: int, s: int, h: wp.float64, x: wp.vec3d):
    """Start of the path of a point at x, relative to solid s in its pose at the end of a step."""
    start = x
    if obstacles.frame[s] >= 0:
        start = carried_along(poses, w, s, h, x)
    return start


@wp.func
def free_of_solid(
    obstacles: ObstacleArrays, s: int, R: wp.mat33d, p: wp.vec3d, depth: real, x: wp.vec3d, way: wp.vec3d
):
    """Fraction of the path of a point after which it enters a solid deeper than `depth`, and than it began; else 1.

    The path is followed in steps of the distance, and of at least the `depth`; it ends after many steps in any case.
    """
    length = real(wp.length(way))
    d, _slope, _n, _C = distance_to(obstacles, s, R, p, x)
    deepest = wp.min(d, -depth)
    free = real(0.0)
    for _ in range(_PATIENCE):
        if not free < length:
            return real(1.0)
        ahead = wp.min(free + wp.max(d, depth), length)
        d, _slope, _n, _C = distance_to(obstacles, s, R, p, x + wp.float64(ahead / length) * way)
        if d < deepest:
            break
        free = ahead
    return free / length


@wp.func
def surface_displacement(poses: MovingPoses, w: int, s: int, h: wp.float64, y: wp.vec3d):
    """Displacement of the surface of solid s in a step of length h [m], where the surface is at y at the end."""
    carried = carried_velocity(poses.position[w, s], poses.linear[w, s], poses.spin[w, s], y)
    return _vec(h * (carried + poses.belt[w, s]))


@wp.kernel(enable_backward=False)
def begin_obstacles_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    # state
    h: wp.float64,
    where: wp.array[int],
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    contacts_out: ContactArrays,
):
    """Find the contacts of a point that are closed when a step begins, and whether several solids are near it.

    A solid is near if the point is near it at the start of the step or after free flight. Surface samples are in
    contact with thin solids only, and distribute their force to the corners of their face. A solid and a body that
    both stay in their places are not in contact, nor are those that the laws of the scene keep apart.
    """
    w, p = wp.tid()
    if where[w] == 0:
        return
    node = topology.point[p]
    share = topology.share[p]
    here = wp.vec3d()
    ahead = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            j = w * topology.nodes + node[q]
            here += wp.float64(share[q]) * wp.vec3d(x[j])
            ahead += wp.float64(share[q]) * (wp.vec3d(x[j]) + wp.vec3d(real(h) * v[j]))
    sample = p >= topology.node.shape[0]
    closed = real(_CLOSED * obstacles.edge[p])
    near = real(obstacles.edge[p])
    first = w * topology.contacts + p * obstacles.solids
    count = int(0)
    for s in range(obstacles.solids):
        k = first + s
        o = obstacles.obstacle[s]
        R = poses.rotation[w, s]
        origin = poses.position[w, s]
        d, _slope, _n, _C = distance_to(obstacles, s, R, origin, start_of(obstacles, poses, w, s, h, here))
        e, _slope, _n, _C = distance_to(obstacles, s, R, origin, ahead)
        if wp.min(d, e) <= near:
            count += 1
        contacts_out.closed[k] = wp.where(d <= closed, 1, 0)
        contacts_out.node[k] = node
        thin = wp.float64(0.0) < obstacles.across[s] and obstacles.across[s] < _THIN * obstacles.edge[p]
        law = obstacles.law[obstacles.body[node[0]] * obstacles.obstacles + o]
        if (sample and not thin) or (topology.standing[p] == 1 and obstacles.frame[s] < 0) or law == APART:
            contacts_out.node[k] = wp.vec4i(-1, -1, -1, -1)
        contacts_out.weight[k] = share
        contacts_out.obstacle[k] = o
        contacts_out.condition[k] = obstacles.condition[o]
        contacts_out.friction[k] = obstacles.friction[w * obstacles.obstacles + o]
        contacts_out.changes[k] = 0
        contacts_out.law[k] = -1
        if law >= 0:
            contacts_out.law[k] = law
            contacts_out.friction[k] = obstacles.law_friction[w * obstacles.laws + law]
    for s in range(obstacles.solids):
        if sample:
            contacts_out.shared[first + s] = 1
        else:
            contacts_out.shared[first + s] = int(count > 1 or topology.row[p] < 0)


@wp.kernel(enable_backward=False)
def evaluate_obstacles_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    # state
    h: wp.float64,
    active: wp.array[int],
    x: wp.array[_vec],
    begun: wp.array[NODE],
    z: wp.array[NODE],
    f: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write distances from solids at the end of the step; contacts that are closed or have a force are active.

    The paths of nodes to their ends begin at the displacements `begun`.
    """
    w, c = wp.tid()
    if active[w] == 0:
        return
    k = w * topology.contacts + c
    node = contacts_out.node[k]
    contacts_out.listed[k] = 0
    if node[0] < 0:
        return
    here = wp.vec3d()
    first = wp.vec3d()
    way = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            j = w * topology.stride + node[q]
            share = wp.float64(contacts_out.weight[k][q])
            here += share * wp.vec3d(x[w * topology.nodes + node[q]])
            first += share * wp.vec3d(at(begun, j))
            way += share * wp.vec3d(at(z, j) + at(f, j))
    spacing = real(_SPACING * obstacles.edge[c / obstacles.solids])
    s = c % obstacles.solids
    start = start_of(obstacles, poses, w, s, h, here) + first
    end = here + way
    d, slope, n, C = distance_on_path(obstacles, s, poses.rotation[w, s], poses.position[w, s], spacing, start, end)
    contacts_out.distance[k] = d
    contacts_out.slope[k] = slope
    contacts_out.normal[k] = n
    contacts_out.curvature[k] = C
    if obstacles.frame[s] >= 0:
        contacts_out.surface[k] = surface_displacement(poses, w, s, h, end)
    extra = wp.where(contacts_out.law[k] < 0, obstacles.extra[obstacles.obstacle[s]], real(0.0))
    contacts_out.extra[k] = holding(extra, contacts_out.changes[k])
    lam = at(z, w * topology.stride + topology.first + c)
    contacts_out.listed[k] = acts(d, lam, contacts_out.condition[k], contacts_out.closed[k])


@wp.kernel(enable_backward=False)
def stop_nodes_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    # state
    x: wp.array[_vec],
    way: wp.array[NODE],
    # work
    check: wp.array[int],
    asked: wp.array[int],
    islands: Islands,
    contacts: ContactArrays,
    # out
    free_out: wp.array[real],
):
    """In second attempts, note how far the paths of nodes from x are free of solids; `way` is their displacement."""
    w, c = wp.tid()
    if check[w] == 0:
        return
    k = w * topology.contacts + c
    node = contacts.node[k]
    component = w * islands.count + component_of(islands, w, topology.first + c)
    if node[0] < 0 or islands.again[component] == 0 or asked[component] < 1:
        return
    start = wp.vec3d()
    along = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            share = wp.float64(contacts.weight[k][q])
            start += share * wp.vec3d(x[w * topology.nodes + node[q]])
            along += share * wp.vec3d(at(way, w * topology.stride + node[q]))
    s = c % obstacles.solids
    depth = _ENTERED * real(_SPACING * obstacles.edge[c / obstacles.solids])
    free = free_of_solid(obstacles, s, poses.rotation[w, s], poses.position[w, s], depth, start, along)
    wp.atomic_min(free_out, component, free)
