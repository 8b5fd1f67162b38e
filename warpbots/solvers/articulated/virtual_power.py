"""The adjoint of a stage, computed by virtual power.

The residual r of a stage, weighted with virtual velocities l, is a power,

    l . r = sum over bodies of L . (I A + V x* I V - E)
            - sum over contacts of (L_a - L_b) . W + sum over joints of l . f,

with the virtual twist L and the external wrench E of each body, the bodies a and b of each contact, and the passive and
motor forces f of the joints. Let g be the gradient of a loss with respect to the displacement of the stage, and J the
Jacobian of r. Then the gradient of the loss with respect to any input of the stage is the gradient of l . r for
l = -J^-T g. Warp generates the
derivatives of these kernels.
"""

import warp as wp

from warpbots.solvers.articulated.cloud_contact import area_of
from warpbots.solvers.articulated.contact_list import ContactList, approach, force_at
from warpbots.solvers.articulated.implicit_integrators import Past, finish, length_of, recall
from warpbots.solvers.articulated.joint_forces import motor_force, passive_force
from warpbots.solvers.articulated.kinematics import (
    body_frame,
    external_wrench,
    first_moment,
    inertial_wrench,
    joint_frame,
    moments,
    move,
    of_joint,
    twist_along,
)
from warpbots.solvers.articulated.lu import solve_transposed, solve_transposed_together
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.robot_arrays import JointTree, ModelParameters, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, scalar
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links
from warpbots.solvers.articulated.thread_team import sync

__all__ = [
    "contact_power_kernel",
    "finish_kernel",
    "motor_power_kernel",
    "power_kernel",
    "recall_kernel",
    "sweep_kernel",
    "weigh_kernel",
]


@wp.kernel
def finish_kernel(
    # model
    tree: JointTree,
    # step
    past: Past,
    stage: ImplicitStage,
    # out
    end_out: Past,
):
    """Write the coordinates and velocities of each element at the end of a step."""
    w, e = wp.tid()
    finish(tree, past, stage, end_out, w, e)


@wp.kernel
def recall_kernel(
    # model
    tree: JointTree,
    # step
    past: Past,
    first: ImplicitStage,
    number: int,
    # out
    stage_out: ImplicitStage,
):
    """Write the terms `rate` and `accel` of a stage for each element; they depend on the start of the step."""
    w, e = wp.tid()
    recall(tree, past, first, stage_out, w, e, number)


# launched with one warp per world: apart, or a GPU would compile this whole module for two sizes of blocks
@wp.kernel(module=wp.get_module("warpbots.articulated.weigh"), enable_backward=False)
def weigh_kernel(
    # model
    tree: JointTree,
    # step
    past: Past,
    factors: Factors,
    lanes: int,
    # work
    gradient: wp.array[scalar],
    # out
    weight_out: wp.array[scalar],
):
    """Solve for the virtual velocities l = -J^-T g of each world, with the array `gradient` as g."""
    w, lane = wp.tid()
    n = tree.freedom
    if length_of(past, w) == scalar(0.0):
        for i in range(lane, n, lanes):
            weight_out[w * n + i] = scalar(0.0)
        return
    for i in range(lane, n, lanes):
        weight_out[w * n + i] = -gradient[w * n + i]
    sync()
    if lanes == 1:
        solve_transposed(factors.matrix, factors.pivot, weight_out, w, n)
    else:
        solve_transposed_together(factors.matrix, factors.pivot, weight_out, w, n, lane, lanes)


@wp.kernel
def sweep_kernel(
    # model
    tree: JointTree,
    design: ModelParameters,
    # step
    stage: ImplicitStage,
    weight: wp.array[scalar],
    first: int,
    count: int,
    # out
    links_out: Links,
    sweep_out: wp.array[Twist],
):
    """Write poses and virtual twists of elements.

    Thread i processes `count` elements of `tree.order`, starting at index `first` + `count` i.
    """
    w, i = wp.tid()
    for k in range(count):
        e = tree.order[first + count * i + k]
        b = w * tree.bodies + tree.body[e]
        joint = joint_frame(design, b)
        move(tree, design, stage, joint, body_frame(design, b), links_out, w, e)
        n = w * tree.elements + e
        l = of_joint(tree, weight, w, e)
        L = twist_along(tree.kind[e], links_out.basis[n], links_out.position[n], l)
        parent = tree.parent[e]
        if parent >= 0:
            L = L + sweep_out[w * tree.elements + parent]
        sweep_out[n] = L


@wp.kernel
def power_kernel(
    # model
    tree: JointTree,
    design: ModelParameters,
    # step
    stage: ImplicitStage,
    weight: wp.array[scalar],
    count: int,
    # work
    links: Links,
    sweep: wp.array[Twist],
    # out
    power_out: wp.array2d[scalar],
):
    """Write the virtual power of each element: of its body, springs, dampers, limits and rotors.

    Each thread processes `count` elements.
    """
    w, i = wp.tid()
    for e in range(count * i, count * (i + 1)):
        n = w * tree.elements + e
        P = wp.dot(of_joint(tree, weight, w, e), passive_force(tree, design, stage, w, e))
        if tree.last[e] == 1:
            k = w * tree.bodies + tree.body[e]
            mc = first_moment(design, links, k)
            J = moments(design, links, k)
            F = inertial_wrench(design.mass[k], mc, J, links.twist[n], links.acceleration[n])
            P = P + wp.dot(sweep[n], F - external_wrench(design, links, k))
        power_out[w, e] = P


@wp.kernel
def motor_power_kernel(
    # model
    tree: JointTree,
    design: ModelParameters,
    # step
    stage: ImplicitStage,
    weight: wp.array[scalar],
    # state
    control: wp.array2d[scalar],
    # out
    power_out: wp.array2d[scalar],
):
    """Write the virtual power of each motor."""
    w, m = wp.tid()
    l = weight[w * tree.freedom + tree.motor_dof[m]]
    power_out[w, m] = -l * motor_force(tree, design, stage, control, w, m)


@wp.kernel
def contact_power_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    contact_list: ContactList,
    candidates: int,
    sweep: wp.array[Twist],
    # out
    power_out: wp.array[scalar],
):
    """Write the virtual power of each contact of a world to `power_out`, shape (worlds * candidates,)."""
    w, slot = wp.tid()
    if slot >= contact_list.count[w]:
        return
    tree = robot.tree
    contacts = robot.contacts
    c = contact_list.candidate[w * candidates + slot]
    pair = contact_list.pair[c]
    point = contact_list.point[c]
    x, d, n = approach(robot, links, w, pair, point)
    f = force_at(robot, links, w, pair, x, d, n)
    L = Twist()
    own = contacts.group_body[contacts.pair_group[pair]]
    if own >= 0:
        L = L + sweep[w * tree.elements + tree.element[own]]
    body = robot.solids.body[contacts.pair_solid[pair]]
    if body >= 0:
        L = L - sweep[w * tree.elements + tree.element[body]]
    v = linear(L) + wp.cross(angular(L), x)
    power_out[w * candidates + slot] = -area_of(contacts, w, pair, point) * wp.dot(f, v)
