"""Kernels of the equations of motion, and of the wrenches that joints transmit; Warp differentiates most of them.

Let S_j be the twist of a unit value of velocity j, I_e the inertia of all bodies that element e carries, F the wrench
that a body needs for its motion at constant joint velocities, and W the wrench of contacts and external forces on it.
Then (Featherstone 2008, "Rigid Body Dynamics Algorithms", chapters 5 and 6)

    M_ij = S_i . I_e S_j,   bias_j = S_j . sum F,   force_j = S_j . sum W + motors_j - passive_j.

Velocities i and j belong to two elements; e is the element that the other element carries, and M_ij = 0 if neither
element carries the other. Sums are over the bodies that velocity j moves. With accelerations a = M^-1 (force - bias) a
joint transmits to its child the wrench

    sum (F - W) + sum_j I_e S_j a_j.

A sum that a loop computes is stored in an array before a nonlinear term uses the sum: otherwise Warp's adjoint of that
term would read the sum as zero.
"""

import warp as wp

from warpbots.solvers.articulated.cloud_contact import area_of
from warpbots.solvers.articulated.contact_list import ContactList, approach, force_at
from warpbots.solvers.articulated.joint_forces import motor_force, passive_force
from warpbots.solvers.articulated.kinematics import external_wrench, first_moment, inertial_wrench, moments, twist_along
from warpbots.solvers.articulated.lu import eliminate, factorise, solve, solve_transposed, solve_transposed_together
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, momentum, scalar, spatial, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links, Subtrees
from warpbots.solvers.articulated.thread_team import sync

__all__ = [
    "adj_solve_kernel",
    "axis_kernel",
    "contact_kernel",
    "force_kernel",
    "joint_kernel",
    "mass_matrix_kernel",
    "need_kernel",
    "push_kernel",
    "solve_kernel",
    "subtree_kernel",
    "transmit_kernel",
    "weigh_kernel",
]


_OF_WARPS = wp.get_module("warpbots.articulated.equations_of_warps")
"""Kernels with one warp per world: apart, or a GPU would compile this whole module for two sizes of blocks."""


@wp.func
def farther(tree: JointTree, e: int, f: int):
    """Return e if element f carries e, f if element e carries f, or -1 if neither element carries the other."""
    found = int(-1)
    if tree.carries[e * tree.elements + f] == 1:
        found = f
    elif tree.carries[f * tree.elements + e] == 1:
        found = e
    return found


@wp.kernel
def axis_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    # out
    axis_out: wp.array[Twist],
):
    """Write the twist S of a unit value of each joint velocity."""
    w, j = wp.tid()
    tree = robot.tree
    e = tree.of_dof[j]
    n = w * tree.elements + e
    one = wp.identity(n=3, dtype=scalar)[j - tree.dof[e]]
    axis_out[w * tree.freedom + j] = twist_along(tree.kind[e], links.basis[n], links.position[n], one)


@wp.kernel
def need_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    # out
    need_out: wp.array[Twist],
):
    """Write the wrench F that each body needs for its motion at constant joint velocities, including its weight."""
    w, b = wp.tid()
    tree = robot.tree
    n = w * tree.elements + tree.element[b]
    k = w * tree.bodies + b
    mc = first_moment(robot.design, links, k)
    J = moments(robot.design, links, k)
    need_out[k] = inertial_wrench(robot.design.mass[k], mc, J, links.twist[n], links.acceleration[n])


@wp.kernel
def contact_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    contact_list: ContactList,
    candidates: int,
    # out
    wrench_out: wp.array[Twist],
):
    """Write the wrench of each contact of a world on the body of the contact point."""
    w, slot = wp.tid()
    if slot >= contact_list.count[w]:
        return
    c = contact_list.candidate[w * candidates + slot]
    pair = contact_list.pair[c]
    i = contact_list.point[c]
    x, d, n = approach(robot, links, w, pair, i)
    f = area_of(robot.contacts, w, pair, i) * force_at(robot, links, w, pair, x, d, n)
    wrench_out[w * candidates + slot] = spatial(wp.cross(x, f), f)


@wp.kernel
def push_kernel(
    # model
    robot: RobotArrays,
    # work
    contact_list: ContactList,
    candidates: int,
    wrench: wp.array[Twist],
    # out
    push_out: wp.array[Twist],
):
    """Write the wrench W of all contacts on each body.

    W is the sum over contacts of the body's own points, minus the sum over contacts of other bodies' points with solids
    of this body.
    """
    w, b = wp.tid()
    contacts = robot.contacts
    W = Twist()
    for slot in range(contact_list.count[w]):
        pair = contact_list.pair[contact_list.candidate[w * candidates + slot]]
        if contacts.group_body[contacts.pair_group[pair]] == b:
            W += wrench[w * candidates + slot]
        if robot.solids.body[contacts.pair_solid[pair]] == b:
            W -= wrench[w * candidates + slot]
    push_out[w * robot.tree.bodies + b] = W


@wp.kernel
def subtree_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    need: wp.array[Twist],
    push: wp.array[Twist],
    # out
    subtrees_out: Subtrees,
):
    """Sum mass, first moment, moments of inertia, F and W over all bodies that each element carries.

    W is the wrench `push` of all contacts and external forces on a body.
    """
    w, e = wp.tid()
    tree = robot.tree
    m = scalar(0.0)
    mc = vec3()
    J = mat33()
    F = Twist()
    W = Twist()
    for b in range(tree.bodies):
        if tree.carries[e * tree.elements + tree.element[b]] == 1:
            k = w * tree.bodies + b
            m += robot.design.mass[k]
            mc += first_moment(robot.design, links, k)
            J += moments(robot.design, links, k)
            F += need[k]
            W += push[k] + external_wrench(robot.design, links, k)
    n = w * tree.elements + e
    subtrees_out.mass[n] = m
    subtrees_out.moment[n] = mc
    subtrees_out.inertia[n] = J
    subtrees_out.need[n] = F
    subtrees_out.push[n] = W


@wp.kernel
def mass_matrix_kernel(
    # model
    robot: RobotArrays,
    # work
    axis: wp.array[Twist],
    subtrees: Subtrees,
    # out
    mass_matrix_out: wp.array3d[scalar],
):
    """Write the entries M_ij of the mass matrix; M_ij equals M_ji to the bit."""
    w, i, j = wp.tid()
    tree = robot.tree
    a = wp.min(i, j)
    b = wp.max(i, j)
    e = farther(tree, tree.of_dof[a], tree.of_dof[b])
    M = scalar(0.0)
    if e >= 0:
        n = w * tree.elements + e
        h = momentum(subtrees.mass[n], subtrees.moment[n], subtrees.inertia[n], axis[w * tree.freedom + b])
        M = wp.dot(axis[w * tree.freedom + a], h)
    if i == j:
        M = M + robot.design.armature[w * tree.freedom + i]
    mass_matrix_out[w, i, j] = M


@wp.kernel
def force_kernel(
    # model
    robot: RobotArrays,
    # state
    stage: ImplicitStage,
    control: wp.array2d[scalar],
    # work
    axis: wp.array[Twist],
    subtrees: Subtrees,
    # out
    bias_out: wp.array2d[scalar],
    force_out: wp.array2d[scalar],
):
    """Write bias and force of each joint velocity.

    The force is the sum of the forces of springs, dampers, limits, motors, contacts and external wrenches.
    """
    w, j = wp.tid()
    tree = robot.tree
    e = tree.of_dof[j]
    n = w * tree.elements + e
    S = axis[w * tree.freedom + j]
    bias_out[w, j] = wp.dot(S, subtrees.need[n])
    passive = passive_force(tree, robot.design, stage, w, e)
    f = wp.dot(S, subtrees.push[n]) - passive[j - tree.dof[e]]
    for i in range(tree.drive[j], tree.drive[j + 1]):
        f += motor_force(tree, robot.design, stage, control, w, tree.motor[i])
    force_out[w, j] = f


@wp.kernel(module=_OF_WARPS, enable_backward=False)
def solve_kernel(
    # model
    lanes: int,
    # work
    mass_matrix: wp.array3d[scalar],
    bias: wp.array2d[scalar],
    force: wp.array2d[scalar],
    # out
    factors_out: Factors,
    acceleration_out: wp.array[scalar],
):
    """Solve M a = force - bias for the accelerations a; write a and the LU factors of M."""
    w, lane = wp.tid()
    n = bias.shape[1]
    for i in range(lane, n, lanes):
        acceleration_out[w * n + i] = force[w, i] - bias[w, i]
        for j in range(n):
            factors_out.matrix[(w * n + i) * n + j] = mass_matrix[w, i, j]
    sync()
    if lanes == 1:
        factorise(factors_out.matrix, factors_out.pivot, w, n)
        solve(factors_out.matrix, factors_out.pivot, acceleration_out, w, n)
    else:
        eliminate(factors_out.matrix, factors_out.pivot, acceleration_out, w, n, lane, lanes)


@wp.kernel(module=_OF_WARPS, enable_backward=False)
def weigh_kernel(
    # model
    lanes: int,
    # work
    factors: Factors,
    acceleration_adj: wp.array2d[scalar],
    # out
    weight_out: wp.array[scalar],
):
    """Solve M^T l = a* for the weights l, with the gradient a* with respect to the accelerations."""
    w, lane = wp.tid()
    n = acceleration_adj.shape[1]
    for i in range(lane, n, lanes):
        weight_out[w * n + i] = acceleration_adj[w, i]
    sync()
    if lanes == 1:
        solve_transposed(factors.matrix, factors.pivot, weight_out, w, n)
    else:
        solve_transposed_together(factors.matrix, factors.pivot, weight_out, w, n, lane, lanes)


@wp.kernel(enable_backward=False)
def adj_solve_kernel(
    # work
    weight: wp.array[scalar],
    acceleration: wp.array2d[scalar],
    # out
    mass_matrix_adj_out: wp.array3d[scalar],
    bias_adj_out: wp.array2d[scalar],
    force_adj_out: wp.array2d[scalar],
):
    """M* -= l a^T, bias* -= l, force* += l, with the weights l from `weigh_kernel` and the accelerations a.

    An asterisk marks the gradient with respect to a quantity.
    """
    w, i = wp.tid()
    n = acceleration.shape[1]
    l = weight[w * n + i]
    for j in range(n):
        mass_matrix_adj_out[w, i, j] = mass_matrix_adj_out[w, i, j] - l * acceleration[w, j]
    bias_adj_out[w, i] = bias_adj_out[w, i] - l
    force_adj_out[w, i] = force_adj_out[w, i] + l


@wp.kernel
def transmit_kernel(
    # model
    robot: RobotArrays,
    # work
    axis: wp.array[Twist],
    subtrees: Subtrees,
    acceleration: wp.array2d[scalar],
    # out
    transmitted_out: wp.array[Twist],
):
    """Write the wrench that the joint of each body transmits to the body."""
    w, b = wp.tid()
    tree = robot.tree
    e = tree.element[b]
    n = w * tree.elements + e
    T = subtrees.need[n] - subtrees.push[n]
    for j in range(tree.freedom):
        f = farther(tree, e, tree.of_dof[j])
        if f >= 0:
            m = w * tree.elements + f
            h = momentum(subtrees.mass[m], subtrees.moment[m], subtrees.inertia[m], axis[w * tree.freedom + j])
            T += acceleration[w, j] * h
    transmitted_out[w * tree.bodies + b] = T


@wp.kernel
def joint_kernel(
    # model
    tree: JointTree,
    # work
    links: Links,
    transmitted: wp.array[Twist],
    # out
    force_out: wp.array2d[vec3],
    moment_out: wp.array2d[vec3],
):
    """Write force and moment of each transmitted wrench.

    The reference point of the moment is the origin of the joint frame that moves with the body.
    """
    w, b = wp.tid()
    T = transmitted[w * tree.bodies + b]
    force_out[w, b] = linear(T)
    moment_out[w, b] = angular(T) - wp.cross(links.position[w * tree.elements + tree.element[b]], linear(T))
