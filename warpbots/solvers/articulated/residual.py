"""The residual of the equations of motion and its Jacobian, computed in a few passes over the tree.

The residual of velocity i is r_i = S_i . F + passive forces - motor forces, with the axis S_i of the velocity and the
wrench F that the subtree needs: the sum, over the bodies of the subtree, of I A + V x* I V minus contact and
external wrenches. If the subtree of joint j is displaced by the twist s, all bodies of the subtree and their wrenches
move rigidly. In addition, the twists and accelerations of these bodies change by

    a = V_p x s + w,
    g = A_p x s + V_p x (V_p x s) + c w + (V_p + V_e) x w

with the twist V_p and acceleration A_p of the parent, the twist V_e of the element and the change w of its joint
velocity. These changes alter a wrench by I g + 2 B a, where 2 B a = a x* I V + V x* I a - I (V x a) (Singh, Russell &
Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra"). About the origin
of the world only two of the four blocks of 2 B are nonzero: 2 B a = (B a_w, 2 a_w x h) with the angular part a_w of a,
the linear momentum h and the matrix

    B = 2 [w]x J - tr J [w]x - 2 [m c]x [v]x,

so that a subtree is described by a mass, a first moment, the matrices J and B, and a momentum.
"""

import warp as wp

from warpbots.solvers.articulated.cloud_contact import add_pair_contacts, bounds_overlap
from warpbots.solvers.articulated.exchange import differentiate_exchange, sum_exchange, touches_matter
from warpbots.solvers.articulated.jacobian import (
    chart,
    differentiate,
    differentiate_load,
    differentiate_pair,
    displace_element,
)
from warpbots.solvers.articulated.joint_forces import motor_force, motor_tangent, passive_force, passive_tangents
from warpbots.solvers.articulated.joints import BALL, freedom_of
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move
from warpbots.solvers.articulated.lu import clear_entries
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar
from warpbots.solvers.articulated.step_arrays import ImplicitStage, StepArrays
from warpbots.solvers.articulated.subtree_sums import add_children, add_wrenches, is_loaded, load_element
from warpbots.solvers.articulated.thread_team import sync

__all__ = ["evaluate", "orient_frames"]


@wp.func
def orient_frames(robot: RobotArrays, work: StepArrays, w: int, lane: int, lanes: int):
    """Write the orientations of the frames of joints and bodies, which are constant in a step."""
    for body in range(lane, robot.tree.bodies, lanes):
        k = w * robot.tree.bodies + body
        work.joint_frame[k] = joint_frame(robot.design, k)
        work.body_frame[k] = body_frame(robot.design, k)


@wp.func
def clear(robot: RobotArrays, work: StepArrays, w: int, lane: int, lanes: int):
    """Clear the Jacobian, the margins, and the sums of pairs that had contacts in the last evaluation."""
    pairs = work.pairs
    if robot.contacts.pairs > 0:
        pairs.margin[w * lanes + lane] = scalar(wp.inf)
    size = robot.tree.freedom * robot.tree.freedom
    clear_entries(work.jacobian, w * size, size, lane, lanes)
    for pair in range(lane, robot.contacts.pairs, lanes):
        m = w * robot.contacts.pairs + pair
        if pairs.active[m] > 0:
            pairs.active[m] = 0
            pairs.wrench[m] = Twist()
            for i in range(12):
                pairs.blocks[12 * m + i] = mat33()


@wp.func
def sum_contacts(robot: RobotArrays, work: StepArrays, w: int, lane: int, lanes: int):
    """Sum the contacts of each pair whose points may be near its solid."""
    contacts = robot.contacts
    pairs = work.pairs
    for pair in range(lane, contacts.pairs, lanes):
        near = bounds_overlap(robot.tree, work.links, contacts, robot.solids, pairs, w, pair)
        pairs.near[w * contacts.pairs + pair] = near
    sync()
    for pair in range(contacts.pairs):
        if pairs.near[w * contacts.pairs + pair] == 1:
            add_pair_contacts(robot.tree, work.links, contacts, robot.solids, pairs, w, pair, lane, lanes)


@wp.func
def add_passive(robot: RobotArrays, stage: ImplicitStage, work: StepArrays, w: int, e: int):
    """Add the forces of springs, dampers, limits and rotors of element e to the residual and to the Jacobian."""
    tree = robot.tree
    design = robot.design
    count = freedom_of(tree.kind[e])
    if count == 0:
        return
    stiff, slow = passive_tangents(tree, design, stage, w, e)
    tangent = stiff
    if tree.kind[e] == BALL:
        T, dv = chart(tree, stage, w, e)
        tangent = stiff @ T + wp.diag(slow) @ dv
    else:
        tangent[0, 0] += stage.c[w] * slow[0]
    force = passive_force(tree, design, stage, w, e)
    at = w * tree.freedom + tree.dof[e]
    for k in range(count):
        work.residual[at + k] += force[k]
        for m in range(count):
            j = w * tree.freedom * tree.freedom + (tree.dof[e] + k) * tree.freedom + tree.dof[e] + m
            work.jacobian[j] += tangent[k, m]


@wp.func
def add_motor(robot: RobotArrays, stage: ImplicitStage, work: StepArrays, control: wp.array2d[scalar], w: int, m: int):
    """Add the force of motor m to the residual and to the Jacobian."""
    tree = robot.tree
    i = tree.motor_dof[m]
    work.residual[w * tree.freedom + i] -= motor_force(tree, robot.design, stage, control, w, m)
    j = (w * tree.freedom + i) * tree.freedom + i
    work.jacobian[j] += motor_tangent(tree, robot.design, stage, w, m)


@wp.func
def evaluate(
    robot: RobotArrays,
    stage: ImplicitStage,
    work: StepArrays,
    control: wp.array2d[scalar],
    w: int,
    lane: int,
    lanes: int,
):
    """Compute the residual and the Jacobian of world w at the current displacement of the stage."""
    tree = robot.tree
    clear(robot, work, w, lane, lanes)
    for level in range(tree.levels):
        for i in range(tree.level[level] + lane, tree.level[level + 1], lanes):
            e = tree.order[i]
            k = w * tree.bodies + tree.body[e]
            move(tree, robot.design, stage, work.joint_frame[k], work.body_frame[k], work.links, w, e)
        sync()
    for e in range(lane, tree.elements, lanes):
        load_element(robot, work, w, e)
        displace_element(robot, stage, work, w, e)
    sum_contacts(robot, work, w, lane, lanes)
    for body in range(lane, tree.bodies, lanes):
        if touches_matter(work, w * tree.bodies + body) == 1:
            sum_exchange(robot, work.exchange, work.links, work.pairs.hardness[w], stage.c[w], w, body)
    sync()
    if lane == 0:
        add_wrenches(robot, work, w)
    sync()
    for back in range(tree.levels):
        level = tree.levels - 1 - back
        for i in range(lane, tree.level[level + 1] - tree.level[level], lanes):
            add_children(tree, work, w, tree.level[level + 1] - 1 - i)
        sync()
    for j in range(lane, tree.freedom, lanes):
        differentiate(robot, work, w, tree.of_dof[j], j - tree.dof[tree.of_dof[j]])
    sync()
    for e in range(lane, tree.elements, lanes):
        add_passive(robot, stage, work, w, e)
    sync()
    for pair in range(robot.contacts.pairs):
        if work.pairs.active[w * robot.contacts.pairs + pair] > 0:
            for j in range(lane, tree.freedom, lanes):
                differentiate_pair(robot, work, w, pair, j)
    for body in range(tree.bodies):
        if is_loaded(robot, w, body) == 1:
            for j in range(lane, tree.freedom, lanes):
                differentiate_load(robot, work, w, body, j)
        if touches_matter(work, w * tree.bodies + body) == 1:
            differentiate_exchange(robot, work, stage.c[w], w, body, lane, lanes)
    sync()
    for j in range(lane, tree.freedom, lanes):
        for i in range(tree.drive[j], tree.drive[j + 1]):
            add_motor(robot, stage, work, control, w, tree.motor[i])
    sync()
