"""The adjoint of contacts: one record for all families, differentiated and pulled back once.

A contact is a point sum a_k x_k of up to four nodes with a distance phi and a normal n. These follow from the positions
of the nodes in a way of the family: for a contact with a solid, d phi = slope n . dx and dn = K dx at the point; for a
pair, phi = n . sum a_k x_k - keep at the plane of the pair, whose n and a depend on all four nodes. The force is
lambda = l(u, n, phi, lambda) by Coulomb's law, the same for all families. With X, U and P for the positions, the
displacements, and the adjoint displacements of the nodes in rows, and the gradients of nu . l (marked by *),

    a* = U u* + phi* X n + P lambda,   n* += phi* X^T a,   X* = a (slope phi* n + K n*)^T + (dn, da)^T (n*, a*)

and U* = X* + a u*^T. The last term of a* is the work of the contact force in the adjoint displacements. The distance
that a rigid pair keeps may follow from the compression of its skin c n . lambda (`pairs.to_keep`): then a part of the
gradient of phi joins those of n and lambda. It may also follow from the distance at the start, which has a gradient
with respect to the start positions alone.

For a solid with the pose (R, p), the displacement h (b + W (y - p)) of its surface at y is subtracted from u, where b
includes the velocity of the surface relative to the solid. With the gradient y* = slope phi* n + K n* at y = X^T a,

    R* = n* (R^T n)^T + (y - p) (R^T y*)^T,   p* = h W^T u* - y*,   b* = -h u*,   W* = -h u* (y - p)^T,

and -h W^T u* is added to y* in X*.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import gap_vector, law
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, obstacle_side
from warpbots.solvers.projective.contact.pair_geometry import plane_of
from warpbots.solvers.projective.contact.pairs import ends_of, start_distance
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = ["adj_contacts_kernel", "differentiate_contacts_kernel", "pull_contacts_kernel"]

_vec, _vec2, _vec4, _mat = vector(3), vector(2), vector(4), matrix(3)
_rows = wp.types.matrix((4, 3), real)


@wp.struct
class ContactAtEnd:
    """A contact at the end of a step: what its force follows from.

    displacement: Displacement u, relative to the surface of an obstacle [m].
    normal: Normal n [1].
    distance: Distance phi [m].
    lam: Force lambda [N].
    own: The w of the contact law [m/N].
    skin: Compliance c of the contact itself [m/N].
    condition: Code of the contact condition (`warpbots.contact.CODES`).
    friction: Coulomb coefficient [1].
    extra: Coefficient of static friction minus coefficient of sliding friction [1].
    closed: 1 for a contact that was closed when the step began.
    """

    displacement: _vec
    normal: _vec
    distance: real
    lam: _vec
    own: real
    skin: real
    condition: int
    friction: real
    extra: real
    closed: int


@wp.struct
class Geometry:
    """How the distance and the normal of a contact follow from the positions of its nodes.

    weight: Weights a_k of the nodes [1].
    a, b, c, d: Positions of the nodes of a pair, relative to the start of its first node [m].
    slope: Derivative of the distance along the normal [1].
    curvature: Transposed derivative of the normal at a fixed plane [1/m]; 0 for a pair.
    turn: Gradient of the displacement of the solid in the step [1]; 0 for a pair.
    kind: Kind of the pair, 0 for a contact with a solid.
    side: Sign of the normal of a pair (1 or -1).
    normal: Normal of a pair when its plane was last updated [1].
    updated: Weights of a pair when its plane was last updated [1].
    """

    weight: _vec4
    a: _vec
    b: _vec
    c: _vec
    d: _vec
    slope: real
    curvature: _mat
    turn: _mat
    kind: int
    side: real
    normal: _vec
    updated: _vec4


@wp.func
def contact_force(nu: _vec, c: ContactAtEnd):
    """The product nu . l with the force l of the law."""
    q = gap_vector(c.displacement, c.normal, c.distance)
    return wp.dot(nu, law(q, c.normal, c.lam, c.own, c.skin, c.condition, c.friction, c.extra, c.closed))


@wp.func
def ends(g: Geometry):
    """Positions of the nodes of a pair, one in each row."""
    return wp.matrix_from_rows(g.a, g.b, g.c, g.d)


@wp.func
def plane_product(n_adj: _vec, weight_adj: _vec4, g: Geometry):
    """The product n* . n + a* . a at the plane of a pair.

    Nothing in this module calls `plane_of` otherwise: Warp would then leave out its adjoint, without a word.
    """
    a = g.a
    b = g.b
    c = g.c
    d = g.d
    n, weight, _holds = plane_of(g.kind, g.side, g.normal, g.updated, a, b, c, d)
    return wp.dot(n_adj, n) + wp.dot(weight_adj, weight)


@wp.func
def displacements(topology: ContactTopology, contacts: ContactArrays, z: wp.array[NODE], w: int, k: int):
    """Displacements of the nodes of contact k, one in each row."""
    U = _rows()
    for q in range(4):
        if contacts.node[k][q] >= 0:
            U[q] = at(z, w * topology.stride + contacts.node[k][q])
    return U


@wp.func
def geometry_of(
    topology: ContactTopology, pairs: PairArrays, poses: MovingPoses, h: wp.float64, contacts: ContactArrays,
    x: wp.array[_vec], u: wp.array[NODE], w: int, c: int,
):  # fmt: skip
    """Geometry of contact c at the end of a step of length h with the displacements u."""
    k = w * topology.contacts + c
    g = Geometry()
    g.weight = contacts.weight[k]
    if c < topology.solids:
        g.slope = contacts.slope[k]
        g.curvature = contacts.curvature[k]
        g.turn = _mat(h * poses.spin[w, c % poses.spin.shape[1]])
    else:
        m = w * pairs.capacity + c - topology.solids
        g.slope = real(1.0)
        g.kind = pairs.kind[m]
        g.side = pairs.side[m]
        g.normal = pairs.normal[m]
        g.updated = pairs.weight[m]
        first, second, third, fourth = ends_of(pairs, x, u, w, pairs.node[m])
        g.a = first
        g.b = second
        g.c = third
        g.d = fourth
        g.weight = contacts.end_weight[k]
    return g


@wp.func
def contact_of(contacts: ContactArrays, g: Geometry, U: _rows, lam: _vec, k: int):
    """Contact k with the geometry `g`, the displacements U and the force `lam`."""
    c = ContactAtEnd()
    c.displacement = g.weight @ U - contacts.surface[k]
    c.normal = contacts.normal[k]
    c.distance = contacts.distance[k]
    c.lam = lam
    c.own = contacts.own[k]
    c.skin = contacts.skin[k]
    c.condition = contacts.condition[k]
    c.friction = contacts.friction[k]
    c.extra = contacts.extra[k]
    c.closed = contacts.closed[k]
    return c


@wp.func
def with_kept(by: ContactAtEnd, c: ContactAtEnd, follows: _vec2):
    """The gradients of a contact, with that of the distance that it keeps, whose derivatives are `follows`."""
    by_skin = follows[1] * by.distance * c.skin
    by.normal -= by_skin * c.lam
    by.lam -= by_skin * c.normal
    return by


@wp.func
def at_point(g: Geometry, n: _vec, by: ContactAtEnd):
    """Gradient y* with respect to the point of a contact with a solid, from the gradients n*, phi* and u*."""
    return g.slope * by.distance * n + g.curvature @ by.normal


@wp.func
def pull_back(g: Geometry, n: _vec, by: ContactAtEnd, weight_adj: _vec4):
    """Gradients X* with respect to the positions of the nodes, one in each row, from n*, phi*, u* and a*."""
    X_adj = wp.outer(g.weight, at_point(g, n, by) - wp.transpose(g.turn) @ by.displacement)
    if g.kind > 0:
        X = ends(g)
        n_sum = by.normal + by.distance * (g.weight @ X)
        weight_sum = weight_adj + by.distance * (X @ n)
        _n, _weight, ends_adj = wp.grad(plane_product)(n_sum, weight_sum, g)
        X_adj += ends(ends_adj)
    return X_adj


@wp.kernel(enable_backward=False)
def differentiate_contacts_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    poses: MovingPoses,
    # state
    h: wp.float64,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write a row of B_k, L and dl/dq or B of every active contact, at the displacements and forces `u`."""
    w, c, r = wp.tid()
    k = w * topology.contacts + c
    if contacts_out.listed[k] == 0:
        return
    nu = _vec()
    nu[r] = real(1.0)
    g = geometry_of(topology, pairs, poses, h, contacts_out, x, u, w, c)
    U = displacements(topology, contacts_out, u, w, k)
    contact = contact_of(contacts_out, g, U, at(u, w * topology.stride + topology.first + c), k)
    _nu, by_all = wp.grad(contact_force)(nu, contact)
    by = with_kept(by_all, contact, contacts_out.follows[k])
    X_adj = pull_back(g, contact.normal, by, U @ by.displacement)
    row = by.displacement + g.curvature @ by.normal + g.slope * by.distance * contact.normal
    row -= wp.transpose(g.turn) @ by.displacement
    if g.kind > 0:
        row = -by_all.lam / (contact.own - contact.skin)
    for j in range(3):
        for q in range(4):
            contacts_out.by_node[4 * k + q][r, j] = X_adj[q, j] + g.weight[q] * by.displacement[j]
        contacts_out.by_force[k][r, j] = by.lam[j]
        contacts_out.by_displacement[k][r, j] = row[j]


@wp.kernel(enable_backward=False)
def pull_contacts_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    poses: MovingPoses,
    # state
    h: wp.float64,
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    z: wp.array[NODE],
    works: int,
    # out
    contacts_out: ContactArrays,
):
    """Write B_k^T nu for every active contact, and add the derivative of the work of its force in `z` if `works`."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if active[w] == 0 or contacts_out.listed[k] == 0:
        return
    j = w * topology.stride + topology.first + c
    nu = at(z, j)
    work = _rows()
    if c >= topology.solids and works == 1:
        g = geometry_of(topology, pairs, poses, h, contacts_out, x, u, w, c)
        P = displacements(topology, contacts_out, z, w, k)
        work = pull_back(g, _vec(), ContactAtEnd(), P @ at(u, j))
    for q in range(4):
        if contacts_out.node[k][q] >= 0:
            contacts_out.pull[4 * k + q] = wp.transpose(contacts_out.by_node[4 * k + q]) @ nu + work[q]


@wp.func
def add_to_pose(
    poses: MovingPoses, h: wp.float64, g: Geometry, n: _vec, by: ContactAtEnd, y: wp.vec3d, w: int, s: int,
    poses_adj: MovingPoses,
):  # fmt: skip
    """Add the gradients with respect to the pose and the velocities of solid s, from n*, phi* and u* at y."""
    R = poses.rotation[w, s]
    arm = y - poses.position[w, s]
    u_adj = wp.vec3d(by.displacement)
    y_adj = wp.vec3d(at_point(g, n, by))
    turned = wp.outer(wp.vec3d(by.normal), wp.vec3d(n) @ R) + wp.outer(arm, y_adj @ R)
    wp.atomic_add(poses_adj.rotation, w, s, turned)
    wp.atomic_add(poses_adj.position, w, s, h * (u_adj @ poses.spin[w, s]) - y_adj)
    wp.atomic_add(poses_adj.linear, w, s, -h * u_adj)
    wp.atomic_add(poses_adj.belt, w, s, -h * u_adj)
    wp.atomic_add(poses_adj.spin, w, s, -h * wp.outer(u_adj, arm))


@wp.kernel(enable_backward=False)
def adj_contacts_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    poses: MovingPoses,
    # state
    h: wp.float64,
    x: wp.array[_vec],
    u: wp.array[NODE],
    contacts: ContactArrays,
    adjoint: wp.array[NODE],
    # out
    x_adj_out: wp.array[_vec],
    u_adj_out: wp.array[NODE],
    friction_adj_out: wp.array[real],
    obstacle_friction_adj_out: wp.array[real],
    law_friction_adj_out: wp.array[real],
    poses_adj_out: MovingPoses,
):
    """Add the gradients with respect to start positions, displacements, friction and poses of solids."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if contacts.listed[k] == 0:
        return
    j = w * topology.stride + topology.first + c
    lam = at(u, j)
    g = geometry_of(topology, pairs, poses, h, contacts, x, u, w, c)
    U = displacements(topology, contacts, u, w, k)
    P = displacements(topology, contacts, adjoint, w, k)
    contact = contact_of(contacts, g, U, lam, k)
    _nu, by_all = wp.grad(contact_force)(at(adjoint, j), contact)
    by = with_kept(by_all, contact, contacts.follows[k])
    X_adj = pull_back(g, contact.normal, by, U @ by.displacement + P @ lam)
    by_start = contacts.follows[k][0] * by.distance
    toward = _vec()
    start_weight = _vec4()
    if g.kind > 0 and contacts.follows[k][0] != real(0.0):
        _start, toward, start_weight = start_distance(pairs, x, w, w * pairs.capacity + c - topology.solids)
    for q in range(4):
        node = contacts.node[k][q]
        if node >= 0:
            wp.atomic_add(x_adj_out, w * topology.nodes + node, X_adj[q] - by_start * start_weight[q] * toward)
            wp.atomic_add(u_adj_out, w * topology.stride + node, packed(X_adj[q] + g.weight[q] * by.displacement))
    if g.kind == 0 and poses_adj_out.position:
        y = wp.vec3d()
        for q in range(4):
            if contacts.node[k][q] >= 0:
                i = contacts.node[k][q]
                share = wp.float64(contacts.weight[k][q])
                y += share * (wp.vec3d(x[w * topology.nodes + i]) + wp.vec3d(U[q]))
        add_to_pose(poses, h, g, contact.normal, by, y, w, c % poses.spin.shape[1], poses_adj_out)
    o = contacts.obstacle[k]
    if g.kind > 0 and o >= 0 and poses_adj_out.position:
        by_belt = obstacle_side(pairs, contacts.node[k]) * by.displacement
        wp.atomic_add(poses_adj_out.belt, w, pairs.solid[o], h * wp.vec3d(by_belt))
    rough = o < 0 or g.kind == 0 or pairs.condition[wp.max(o, 0)] == contacts.condition[k]
    if contacts.law[k] >= 0:
        if law_friction_adj_out and rough:
            wp.atomic_add(law_friction_adj_out, w * pairs.laws + contacts.law[k], by.friction)
    elif o < 0:
        for q in range(2):
            body = pairs.body[contacts.node[k][3 * q]]
            if friction_adj_out:
                wp.atomic_add(friction_adj_out, w * pairs.movers + body, real(0.5) * by.friction)
    elif obstacle_friction_adj_out and rough:
        wp.atomic_add(obstacle_friction_adj_out, w * pairs.condition.shape[0] + o, by.friction)
