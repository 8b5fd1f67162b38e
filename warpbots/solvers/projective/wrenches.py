"""Wrenches that a step exerts on obstacles, constraints and rigid bodies: forces, and torques about the origin.

Contact forces are unknowns of a step, so the wrenches of a state are those of a step from it. With the force lambda of
a contact, the weights a_k and the positions y_k of its nodes at the end of the step, and the residual r_i of a node
that a constraint holds,

    obstacle: -sum a_k lambda,   rigid body: sum a_k lambda,   constraint: sum Q (r_i + sum a_k lambda),

over the nodes of other bodies, of the rigid body, or of the constraint; Q is the projection onto the directions in
which the constraint holds the node. Torques have arms y. The sum over all obstacles and constraints is the momentum
that loads and gravity give minus the momentum that bodies gain, by Newton's third law.

The adjoint of a wrench (F, T) is the adjoint of the step with another right-hand side. An asterisk marks a gradient.
F* and T* are like the velocities of a rigid body: a force f at y has the power f . p with p = F* + T* x y. Hence Q p
is the adjoint displacement of a held node; and with p of the nodes of a contact, negative for an obstacle,

    lambda* = sum a_k p_k,   a_k* = lambda . p_k,   y* = f x T*.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import NODE, real, sum_of_lanes, vector
from warpbots.solvers.projective.contact.contact_adjoint import ContactAtEnd, Geometry, geometry_of, pull_back
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.pair_arrays import PairArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.guides import GuideArrays

__all__ = [
    "EDGE",
    "FREE",
    "Receivers",
    "add_kernel",
    "adj_contact_wrench_kernel",
    "adj_held_wrench_kernel",
    "gather_starts_kernel",
    "held_force_kernel",
    "join_kernel",
    "split_kernel",
    "wrench_kernel",
]

_vec, _vec4 = vector(3), vector(4)
_rows = wp.types.matrix((4, 3), real)
_sum = sum_of_lanes(wp.vec3d)
FREE, EDGE = wp.constant(-1), wp.constant(-2)
"""Receiver of a node that nothing holds, and of an end of an edge of an obstacle."""


@wp.struct
class Receivers:
    """Receivers of wrenches in each world: first obstacles, then constraints, then rigid bodies.

    obstacles: Number of obstacles.
    constraints: Number of constraints.
    count: Number of receivers.
    points: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    stride: Entries of an iterate of one world.
    of_point: Receiver of each point: the first constraint that holds a node, the rigid body of a vertex, else `FREE` or
        `EDGE`, shape (points,).
    held: Nodes that a constraint holds, shape (n,).
    guided: Index of each point among the nodes on lines and planes, -1 for other points, shape (points,).
    held_force: Force Q r of matter on its constraint at each of `held` [N], shape (worlds * n,).
    force: Force on each receiver [N], shape (worlds, count).
    torque: Torque on each receiver about the origin [N m], shape (worlds, count).
    force_adj: Gradient with respect to `force`, shape (worlds, count).
    torque_adj: Gradient with respect to `torque`, shape (worlds, count).
    """

    obstacles: int
    constraints: int
    count: int
    points: int
    stride: int
    of_point: wp.array[int]
    held: wp.array[int]
    guided: wp.array[int]
    held_force: wp.array[_vec]
    force: wp.array2d[wp.vec3d]
    torque: wp.array2d[wp.vec3d]
    force_adj: wp.array2d[wp.vec3d]
    torque_adj: wp.array2d[wp.vec3d]


@wp.func
def place_of(receivers: Receivers, x: wp.array[_vec], u: wp.array[NODE], w: int, i: int):
    """Position of a point at the end of a step [m]."""
    return wp.vec3d(x[w * receivers.points + i]) + wp.vec3d(at(u, w * receivers.stride + i))


@wp.func
def held_part(receivers: Receivers, guides: GuideArrays, w: int, i: int, f: _vec):
    """Q f: the part of a vector at a point that its receiver takes."""
    g = receivers.guided[i]
    taken = f
    if g >= 0:
        taken = _vec()
        for k in range(guides.first[g], guides.first[g + 1]):
            n = guides.normal[w * guides.count + k]
            taken += wp.dot(n, f) * n
    return taken


@wp.kernel(enable_backward=False)
def held_force_kernel(
    # model
    guides: GuideArrays,
    # work
    residual: wp.array[NODE],
    # out
    receivers_out: Receivers,
):
    """Q r of each held node."""
    w, k = wp.tid()
    i = receivers_out.held[k]
    r = at(residual, w * receivers_out.stride + i)
    receivers_out.held_force[w * receivers_out.held.shape[0] + k] = held_part(receivers_out, guides, w, i, r)


@wp.kernel(enable_backward=False)
def wrench_kernel(
    # model
    topology: ContactTopology,
    guides: GuideArrays,
    contact: int,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    contacts: ContactArrays,
    # out
    receivers_out: Receivers,
):
    """Write the wrench of each receiver, summed in double precision and in a fixed order."""
    w, e, lane = wp.tid()
    force = wp.vec3d()
    torque = wp.vec3d()
    held = receivers_out.held.shape[0]
    if e >= receivers_out.obstacles and e < receivers_out.obstacles + receivers_out.constraints:
        for k in range(lane, held, wp.block_dim()):
            i = receivers_out.held[k]
            if receivers_out.of_point[i] == e:
                f = wp.vec3d(receivers_out.held_force[w * held + k])
                force += f
                torque += wp.cross(place_of(receivers_out, x, u, w, i), f)
    for c in range(lane, contact, wp.block_dim()):
        k = w * contact + c
        if contacts.listed[k] == 1:
            lam = at(u, w * topology.stride + topology.first + c)
            for q in range(4):
                i = contacts.node[k][q]
                f = wp.vec3d()
                if i >= 0:
                    own = receivers_out.of_point[i]
                    pushed = contacts.weight[k][q] * lam
                    if own == e:
                        f = wp.vec3d(held_part(receivers_out, guides, w, i, pushed))
                    if contacts.obstacle[k] == e and own != EDGE:
                        f -= wp.vec3d(pushed)
                    force += f
                    torque += wp.cross(place_of(receivers_out, x, u, w, i), f)
    forces = _sum(force)
    torques = _sum(torque)
    if lane == 0:
        receivers_out.force[w, e] = forces
        receivers_out.torque[w, e] = torques


@wp.kernel(enable_backward=False)
def split_kernel(
    # work
    receivers: Receivers,
    first: int,
    # state
    lost: wp.array[real],
    lost_after: wp.array[real],
    # out
    force_out: wp.array2d[_vec],
    torque_out: wp.array2d[_vec],
):
    """Write the readings of receivers from `first` on: 0 in a world that is lost, NaN if no step was found."""
    w, k = wp.tid()
    F = _vec(receivers.force[w, first + k])
    T = _vec(receivers.torque[w, first + k])
    if lost[w] != real(0.0):
        F = _vec()
        T = _vec()
    elif lost_after[w] != real(0.0):
        F = _vec(real(wp.nan))
        T = _vec(real(wp.nan))
    force_out[w, k] = F
    torque_out[w, k] = T


@wp.kernel(enable_backward=False)
def join_kernel(
    # state
    lost_after: wp.array[real],
    force_adj: wp.array2d[_vec],
    torque_adj: wp.array2d[_vec],
    first: int,
    # out
    receivers_out: Receivers,
):
    """Adjoint of `split_kernel`."""
    w, k = wp.tid()
    F_adj = wp.vec3d()
    T_adj = wp.vec3d()
    if lost_after[w] == real(0.0):
        F_adj = wp.vec3d(force_adj[w, k])
        T_adj = wp.vec3d(torque_adj[w, k])
    receivers_out.force_adj[w, first + k] = F_adj
    receivers_out.torque_adj[w, first + k] = T_adj


@wp.func
def velocity_of(receivers: Receivers, w: int, e: int, y: wp.vec3d):
    """p = F* + T* x y."""
    return _vec(receivers.force_adj[w, e] + wp.cross(receivers.torque_adj[w, e], y))


@wp.func
def arm_gradient(receivers: Receivers, w: int, e: int, f: _vec):
    """Gradient y* = f x T* with respect to the arm of a force."""
    return _vec(wp.cross(wp.vec3d(f), receivers.torque_adj[w, e]))


@wp.kernel(enable_backward=False)
def adj_held_wrench_kernel(
    # model
    receivers: Receivers,
    guides: GuideArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    velocity_out: wp.array[NODE],
    given_out: wp.array[NODE],
    seed_out: wp.array[NODE],
):
    """Write p and Q p of each held node, and add y* of its force Q r to the gradients of displacements."""
    w, k = wp.tid()
    i = receivers.held[k]
    e = receivers.of_point[i]
    j = w * receivers.stride + i
    p = velocity_of(receivers, w, e, place_of(receivers, x, u, w, i))
    velocity_out[j] = packed(p)
    given_out[j] = packed(held_part(receivers, guides, w, i, p))
    y_adj = arm_gradient(receivers, w, e, receivers.held_force[w * receivers.held.shape[0] + k])
    seed_out[j] = seed_out[j] + packed(y_adj)


@wp.func
def by_ends(
    receivers: Receivers, guides: GuideArrays, g: Geometry, x: wp.array[_vec], u: wp.array[NODE], lam: _vec,
    node: wp.vec4i, obstacle: int, w: int,
):  # fmt: skip
    """Gradients by the force of a contact, by the arms of its nodes, one in each row, and by the weights of the nodes.

    No Warp function may call `pull_back`, which is generated after functions.
    """
    lam_adj = _vec()
    weight_adj = _vec4()
    X_adj = _rows()
    for q in range(4):
        i = node[q]
        if i >= 0:
            own = receivers.of_point[i]
            y = place_of(receivers, x, u, w, i)
            p = _vec()
            y_adj = _vec()
            if own >= 0:
                p += held_part(receivers, guides, w, i, velocity_of(receivers, w, own, y))
                y_adj += arm_gradient(receivers, w, own, held_part(receivers, guides, w, i, lam))
            if obstacle >= 0 and own != EDGE:
                p -= velocity_of(receivers, w, obstacle, y)
                y_adj -= arm_gradient(receivers, w, obstacle, lam)
            lam_adj += g.weight[q] * p
            weight_adj[q] = wp.dot(lam, p)
            for r in range(3):
                X_adj[q, r] = g.weight[q] * y_adj[r]
    return lam_adj, X_adj, weight_adj


@wp.kernel(enable_backward=False)
def adj_contact_wrench_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    poses: MovingPoses,
    receivers: Receivers,
    guides: GuideArrays,
    # state
    h: wp.float64,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
    seed_out: wp.array[NODE],
    x_adj_out: wp.array[_vec],
    u_adj_out: wp.array[NODE],
):
    """Write lambda* to the seed, and y* for `gather_kernel` or, if given, add y* to the gradients of points.

    Fixed nodes and ends of edges, which are not gathered, have prescribed displacements: these take y* at once.
    """
    w, c = wp.tid()
    k = w * topology.contacts + c
    if contacts_out.listed[k] == 0:
        return
    j = w * topology.stride + topology.first + c
    lam = at(u, j)
    node = contacts_out.node[k]
    g = geometry_of(topology, pairs, poses, h, contacts_out, x, u, w, c)
    obstacle = contacts_out.obstacle[k]
    lam_adj, X_adj, weight_adj = by_ends(receivers, guides, g, x, u, lam, node, obstacle, w)
    if g.kind > 0:
        X_adj += pull_back(g, contacts_out.normal[k], ContactAtEnd(), weight_adj)
    if seed_out:
        seed_out[j] = packed(lam_adj)
    for q in range(4):
        i = node[q]
        if seed_out:
            contacts_out.pull[4 * k + q] = X_adj[q]
        if i >= 0 and x_adj_out:
            wp.atomic_add(x_adj_out, w * topology.nodes + i, X_adj[q])
            if topology.place[i] < 0:
                wp.atomic_add(u_adj_out, w * topology.stride + i, packed(X_adj[q]))


@wp.kernel(enable_backward=False)
def gather_starts_kernel(
    # model
    receivers: Receivers,
    # out
    x_adj_out: wp.array[_vec],
):
    """Add y* of the force Q r of each held node to the gradient of its start."""
    w, k = wp.tid()
    i = receivers.held[k]
    y_adj = arm_gradient(receivers, w, receivers.of_point[i], receivers.held_force[w * receivers.held.shape[0] + k])
    x_adj_out[w * receivers.points + i] = x_adj_out[w * receivers.points + i] + y_adj


@wp.kernel(enable_backward=False)
def add_kernel(
    # state
    values: wp.array[NODE],
    # out
    sum_out: wp.array[NODE],
):
    """Add one array to another."""
    i = wp.tid()
    sum_out[i] = sum_out[i] + values[i]
