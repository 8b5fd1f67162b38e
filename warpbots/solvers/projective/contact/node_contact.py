"""Contact of nodes, and of surface samples, with solids that do not move."""

import warp as wp

from warpbots.contact import CODES
from warpbots.contact.solid import LINEAR, Solids, solid_curvature
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import law
from warpbots.solvers.projective.contact.surface_samples import THIN
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = [
    "ObstacleArrays",
    "adj_obstacles_kernel",
    "begin_obstacles_kernel",
    "differentiate_obstacles_kernel",
    "distance_to",
    "evaluate_obstacles_kernel",
    "pull_obstacles_kernel",
]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)
_SLIP = wp.constant(CODES["slip"])
_SPACING = wp.constant(wp.float64(0.1))  # distance of the points at which paths are examined [mean edges]
_CLOSED = wp.constant(wp.float64(1e-3))  # distance below which a contact is closed when a step begins [mean edges]
_THIN = wp.constant(wp.float64(THIN))
_FAR = wp.constant(real(2.0))  # spacings above which a path is examined
_ENTERED = wp.constant(real(0.1))  # depth at which a path has entered a solid [spacings]
_OPPOSITE = wp.constant(real(-0.2))  # cosine between normals of opposite sides: a cube has none at one edge


@wp.struct
class ObstacleArrays:
    """Obstacles; contact c is between point c / solids and solid c % solids.

    solids: Number of solids.
    solid: The solids.
    obstacle: Obstacle of a solid, shape (solids,).
    obstacles: Number of obstacles.
    condition: Code of the contact condition of an obstacle (`warpbots.contact.CODES`), shape (obstacles,).
    extra: Coefficient of static friction minus coefficient of sliding friction [1], shape (obstacles,).
    friction: Coulomb coefficient [1], shape (worlds * obstacles,).
    thinnest: Smallest width of a solid [m], 0 for a half-space, shape (solids,).
    across: Second smallest width of a solid that surface samples may detect [m], 0 for other solids, shape (solids,).
    angular: 1 for a solid that protrudes only at edges that detect contact themselves, shape (solids,).
    edge: Mean edge of the component of each node, vertex or surface sample that may be in contact with solids [m],
        shape (contact points,).
    """

    solids: int
    solid: Solids
    obstacle: wp.array[int]
    obstacles: int
    condition: wp.array[int]
    extra: wp.array[real]
    friction: wp.array[real]
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


@wp.struct
class SolidContact:
    """A contact with a solid at the end of a step.

    u: Displacement of the point in contact [m].
    normal: Outward normal n [1].
    distance: Distance phi [m].
    slope: Derivative of the distance along n [1].
    lam: Force lambda [N].
    own: The w of the contact law [m/N].
    skin: Compliance c of the contact itself [m/N].
    condition: Code of the contact condition (`warpbots.contact.CODES`).
    friction: Coulomb coefficient [1].
    extra: Coefficient of static friction minus coefficient of sliding friction [1].
    closed: 1 for a contact that was closed when the step began.
    """

    u: _vec
    normal: _vec
    distance: real
    slope: real
    lam: _vec
    own: real
    skin: real
    condition: int
    friction: real
    extra: real
    closed: int


@wp.func
def solid_contact(contacts: ContactArrays, u: _vec, lam: _vec, k: int):
    """Contact k with the displacement `u` and the force `lam`."""
    c = SolidContact()
    c.u = u
    c.normal = contacts.normal[k]
    c.distance = contacts.distance[k]
    c.slope = contacts.slope[k]
    c.lam = lam
    c.own = contacts.own[k]
    c.skin = contacts.skin[k]
    c.condition = contacts.condition[k]
    c.friction = contacts.friction[k]
    c.extra = contacts.extra[k]
    c.closed = contacts.closed[k]
    return c


@wp.func
def solid_law(T: _vec, c: SolidContact):
    """T . l for the force l of the law at the end of a step."""
    n = c.normal
    u = c.u
    q = u - wp.dot(n, u) * n + c.distance * n
    return wp.dot(T, law(q, n, c.lam, c.own, c.skin, c.condition, c.friction, c.extra, c.closed))


@wp.kernel(enable_backward=False)
def begin_obstacles_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    # state
    h: real,
    where: wp.array[int],
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    contacts_out: ContactArrays,
):
    """Find the contacts of a point that are closed when a step begins, and whether several solids are near it.

    A solid is near if the point is near it at the start of the step or after free flight. Surface samples are in
    contact with thin solids only, and distribute their force to the corners of their face.
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
            ahead += wp.float64(share[q]) * (wp.vec3d(x[j]) + wp.vec3d(h * v[j]))
    sample = p >= topology.node.shape[0]
    closed = real(_CLOSED * obstacles.edge[p])
    near = real(obstacles.edge[p])
    first = w * topology.contacts + p * obstacles.solids
    count = int(0)
    for s in range(obstacles.solids):
        k = first + s
        o = obstacles.obstacle[s]
        R = obstacles.solid.rotation[s]
        origin = obstacles.solid.position[s]
        d, _slope, _n, _C = distance_to(obstacles, s, R, origin, here)
        e, _slope, _n, _C = distance_to(obstacles, s, R, origin, ahead)
        if wp.min(d, e) <= near:
            count += 1
        contacts_out.closed[k] = wp.where(d <= closed, 1, 0)
        contacts_out.node[k] = node
        if sample and not (wp.float64(0.0) < obstacles.across[s] and obstacles.across[s] < _THIN * obstacles.edge[p]):
            contacts_out.node[k] = wp.vec4i(-1, -1, -1, -1)
        contacts_out.weight[k] = share
        contacts_out.condition[k] = obstacles.condition[o]
        contacts_out.friction[k] = obstacles.friction[w * obstacles.obstacles + o]
        contacts_out.extra[k] = obstacles.extra[o]
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
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    z: wp.array[NODE],
    f: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write distances from solids at the end of the step; contacts that are closed or have a force are active."""
    w, c = wp.tid()
    if active[w] == 0:
        return
    k = w * topology.contacts + c
    node = contacts_out.node[k]
    contacts_out.listed[k] = 0
    if node[0] < 0:
        return
    here = wp.vec3d()
    way = wp.vec3d()
    for q in range(3):
        if node[q] >= 0:
            j = w * topology.stride + node[q]
            share = wp.float64(contacts_out.weight[k][q])
            here += share * wp.vec3d(x[w * topology.nodes + node[q]])
            way += share * wp.vec3d(at(z, j) + at(f, j))
    spacing = real(_SPACING * obstacles.edge[c / obstacles.solids])
    s = c % obstacles.solids
    R = obstacles.solid.rotation[s]
    p = obstacles.solid.position[s]
    d, slope, n, C = distance_on_path(obstacles, s, R, p, spacing, here, here + way)
    contacts_out.distance[k] = d
    contacts_out.slope[k] = slope
    contacts_out.normal[k] = n
    contacts_out.curvature[k] = C
    lam = at(z, w * topology.stride + topology.first + c)
    bound = contacts_out.closed[k] == 1 and contacts_out.condition[k] <= _SLIP
    contacts_out.listed[k] = int(bound or d < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.func
def displacement_of(topology: ContactTopology, contacts: ContactArrays, z: wp.array[NODE], w: int, k: int):
    """Displacement of the point of contact k."""
    u = _vec()
    for q in range(3):
        if contacts.node[k][q] >= 0:
            u += contacts.weight[k][q] * at(z, w * topology.stride + contacts.node[k][q])
    return u


@wp.kernel(enable_backward=False)
def differentiate_obstacles_kernel(
    # model
    topology: ContactTopology,
    # state
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write B = dl/du and L = dl/dlambda of every active contact at the displacements and forces `z`."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if contacts_out.listed[k] == 0:
        return
    lam = at(z, w * topology.stride + topology.first + c)
    contact = solid_contact(contacts_out, displacement_of(topology, contacts_out, z, w, k), lam, k)
    B = _mat()
    L = _mat()
    for r in range(3):
        T = _vec()
        T[r] = real(1.0)
        _T, by = wp.grad(solid_law)(T, contact)
        row = by.u + contacts_out.curvature[k] @ by.normal + by.distance * contact.slope * contact.normal
        for i in range(3):
            B[r, i] = row[i]
            L[r, i] = by.lam[i]
    contacts_out.by_displacement[k] = B
    contacts_out.by_force[k] = L


@wp.kernel(enable_backward=False)
def pull_obstacles_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write B^T nu, the counterpart of a contact force in the adjoint."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if active[w] == 0 or contacts_out.listed[k] == 0:
        return
    nu = at(z, w * topology.stride + topology.first + c)
    force = wp.transpose(contacts_out.by_displacement[k]) @ nu
    for q in range(3):
        contacts_out.pull[4 * k + q] = contacts_out.weight[k][q] * force


@wp.kernel(enable_backward=False)
def adj_obstacles_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    # state
    z: wp.array[NODE],
    contacts: ContactArrays,
    adjoint: wp.array[NODE],
    # out
    x_adj_out: wp.array[_vec],
    u_adj_out: wp.array[NODE],
    friction_adj_out: wp.array[real],
):
    """Add the gradients with respect to start positions, displacements of fixed nodes, and friction.

    The gradient with respect to a quantity x is (dl/dx)^T nu.
    """
    w, c = wp.tid()
    k = w * topology.contacts + c
    if contacts.listed[k] == 0:
        return
    i = w * topology.stride + topology.first + c
    contact = solid_contact(contacts, displacement_of(topology, contacts, z, w, k), at(z, i), k)
    _T, by = wp.grad(solid_law)(at(adjoint, i), contact)
    x_adj = contacts.curvature[k] @ by.normal + by.distance * contact.slope * contact.normal
    for q in range(3):
        node = contacts.node[k][q]
        if node >= 0:
            wp.atomic_add(x_adj_out, w * topology.nodes + node, contacts.weight[k][q] * x_adj)
            if topology.place[node] < 0:
                wp.atomic_add(u_adj_out, w * topology.stride + node, packed(contacts.weight[k][q] * (by.u + x_adj)))
    if friction_adj_out:
        o = obstacles.obstacle[c % obstacles.solids]
        wp.atomic_add(friction_adj_out, w * obstacles.obstacles + o, by.friction)
