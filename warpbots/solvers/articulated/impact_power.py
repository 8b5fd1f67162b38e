"""The adjoint of an impact, computed by virtual power like the adjoint of a stage (`virtual_power`).

The equations of an impact, weighted with virtual velocities l and weights y, give the scalar

    l . (M (v+ - v-) - sum J^T p) + sum y . r,

and Warp generates the derivatives of this scalar at constant p and v+ - v-. The docstrings of `impacts` and `impulses`
define the symbols, but l and y are here the weights -l and -y that `weigh_impact_kernel` computes.
"""

import warp as wp

from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.impacts import CONTACTS, IN_TIME, NONE, Impact, arrive, velocity_at
from warpbots.solvers.articulated.implicit_integrators import Past
from warpbots.solvers.articulated.impulses import direction, restitution_of
from warpbots.solvers.articulated.kinematics import (
    body_frame,
    first_moment,
    joint_frame,
    moments,
    move,
    of_joint,
    twist_along,
)
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, momentum, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links

__all__ = [
    "arrive_kernel",
    "gap_kernel",
    "impact_power_kernel",
    "impact_sweep_kernel",
    "impulse_power_kernel",
    "length_kernel",
    "time_kernel",
]

_ZERO = wp.constant(scalar(0.0))


@wp.kernel
def impact_sweep_kernel(
    # model
    robot: RobotArrays,
    # step
    at_impact: ImplicitStage,
    weight: wp.array[scalar],
    change: wp.array[scalar],
    # out
    links_out: Links,
    sweep_out: wp.array[Twist],
    change_out: wp.array[Twist],
):
    """Write the pose, the virtual twist and the change of twist of each element, with one thread for each world.

    The virtual twists follow from `weight`, the changes of twist from the change v+ - v- of the joint velocities.
    """
    w = wp.tid()
    tree = robot.tree
    for i in range(tree.elements):
        e = tree.order[i]
        k = w * tree.bodies + tree.body[e]
        joint = joint_frame(robot.design, k)
        move(tree, robot.design, at_impact, joint, body_frame(robot.design, k), links_out, w, e)
        n = w * tree.elements + e
        basis = links_out.basis[n]
        p = links_out.position[n]
        L = twist_along(tree.kind[e], basis, p, of_joint(tree, weight, w, e))
        D = twist_along(tree.kind[e], basis, p, of_joint(tree, change, w, e))
        parent = tree.parent[e]
        if parent >= 0:
            L = L + sweep_out[w * tree.elements + parent]
            D = D + change_out[w * tree.elements + parent]
        sweep_out[n] = L
        change_out[n] = D


@wp.kernel
def impact_power_kernel(
    # model
    robot: RobotArrays,
    # step
    weight: wp.array[scalar],
    change: wp.array[scalar],
    # work
    links: Links,
    sweep: wp.array[Twist],
    changed: wp.array[Twist],
    # out
    power_out: wp.array2d[scalar],
):
    """Write the contribution of each element to l . M (v+ - v-) to `power_out`."""
    w, e = wp.tid()
    tree = robot.tree
    design = robot.design
    n = w * tree.elements + e
    l = of_joint(tree, weight, w, e)
    d = of_joint(tree, change, w, e)
    P = _ZERO
    for k in range(3):
        if l[k] != _ZERO:
            P = P + l[k] * d[k] * design.armature[w * tree.freedom + tree.dof[e] + k]
    if tree.last[e] == 1:
        k = w * tree.bodies + tree.body[e]
        mc = first_moment(design, links, k)
        J = moments(design, links, k)
        P = P + wp.dot(sweep[n], momentum(design.mass[k], mc, J, changed[n]))
    power_out[w, e] = P


@wp.func
def twist_between(robot: RobotArrays, twists: wp.array[Twist], w: int, pair: int):
    """Twist of the body with the points of a pair relative to the solid; `twists` holds the twists of all elements."""
    tree = robot.tree
    V = Twist()
    own = robot.contacts.group_body[robot.contacts.pair_group[pair]]
    if own >= 0:
        V = V + twists[w * tree.elements + tree.element[own]]
    body = robot.solids.body[robot.contacts.pair_solid[pair]]
    if body >= 0:
        V = V - twists[w * tree.elements + tree.element[body]]
    return V


@wp.kernel
def impulse_power_kernel(
    # model
    robot: RobotArrays,
    # step
    contact_list: ContactList,
    impact: Impact,
    weight: wp.array[vec3],
    # work
    links: Links,
    sweep: wp.array[Twist],
    changed: wp.array[Twist],
    # out
    power_out: wp.array[scalar],
):
    """Write y . r - l . J^T p of each contact of the impact that carries an impulse to `power_out`."""
    w, i = wp.tid()
    at = w * CONTACTS + i
    if i >= impact.count[w]:
        return
    mode = impact.mode[at]
    if mode == 0:
        return
    contacts = robot.contacts
    c = impact.candidate[at]
    pair = contact_list.pair[c]
    law = w * contacts.laws + contacts.pair_law[pair]
    x, _d, slope = approach(robot, links, w, pair, contact_list.point[c])
    n = wp.normalize(slope)
    p = impact.impulse[at]
    L = twist_between(robot, sweep, w, pair)
    D = twist_between(robot, changed, w, pair)
    before = velocity_at(robot, links, w, pair, x, slope)
    u = before + linear(D) + wp.cross(angular(D), x)
    back = -restitution_of(robot, w, pair, wp.dot(n, before))
    r = u + back * n
    if mode == 2:
        u_n = wp.dot(n, u)
        r = (u_n + back) * n + p - wp.dot(n, p) * n
        r = r + contacts.friction[law] * wp.dot(n, p) * direction(u - u_n * n)
    power_out[at] = wp.dot(weight[at], r) - wp.dot(p, linear(L) + wp.cross(angular(L), x))


@wp.kernel
def arrive_kernel(
    # model
    tree: JointTree,
    # step
    past: Past,
    stage: ImplicitStage,
    # out
    impact_out: Impact,
):
    """Write the coordinates and velocities of each element at the end of a part, before the impact."""
    w, e = wp.tid()
    arrive(tree, past, stage, impact_out.length[w], impact_out.time[w], impact_out, w, e)


@wp.kernel
def gap_kernel(
    # model
    robot: RobotArrays,
    # step
    contact_list: ContactList,
    impact: Impact,
    # work
    links: Links,
    # out
    gap_out: wp.array[scalar],
):
    """Write the gap that vanishes at the time of the impact, for worlds with an impact within the part."""
    w = wp.tid()
    if impact.event[w] != IN_TIME:
        return
    c = impact.candidate[w * CONTACTS]
    _x, d, _n = approach(robot, links, w, contact_list.pair[c], contact_list.point[c])
    gap_out[w] = d


@wp.kernel(enable_backward=False)
def time_kernel(
    # step
    impact: Impact,
    left_adj: wp.array[scalar],
    time_adj: wp.array[scalar],
    # out
    left_adj_out: wp.array[scalar],
    length_adj_out: wp.array[scalar],
    gap_adj_out: wp.array[scalar],
):
    """Adjoint of the time t of an impact.

    The gradient with respect to t includes the gradient with respect to the time left after the impact. It is
    propagated to the vanishing gap g by dt = -dg / rate, or to the length of the part if there is no impact.
    """
    w = wp.tid()
    event = impact.event[w]
    gap_adj_out[w] = _ZERO
    if event == NONE:
        if impact.length[w] > _ZERO:  # no impact: its time is its length
            length_adj_out[w] += time_adj[w]
        return
    left_adj_out[w] += left_adj[w]
    if event == IN_TIME:
        gap_adj_out[w] = -(time_adj[w] - left_adj[w]) / impact.rate[w]


@wp.kernel(enable_backward=False)
def length_kernel(
    # step
    impact: Impact,
    c: wp.array[scalar],
    first_adj: wp.array[scalar],
    second_adj: wp.array[scalar],
    length_adj: wp.array[scalar],
    # out
    left_adj_out: wp.array[scalar],
):
    """Adjoint of the length of a part, which equals the time left at the start of the part.

    The coefficient c of both stages depends on the length by dc / dlength = -c / length.
    """
    w = wp.tid()
    length = impact.length[w]
    if length > _ZERO:
        left_adj_out[w] += length_adj[w] - c[w] / length * (first_adj[w] + second_adj[w])
