"""The residual of the equations of motion and its Jacobian, computed in a few passes over the tree.

The residual of velocity i is r_i = S_i . F + passive forces - motor forces, with the axis S_i of the velocity and the
wrench F that the subtree needs: the sum, over the bodies of the subtree, of I A + V x* I V minus the contact wrenches.
If the subtree of joint j is displaced by the twist s, all bodies of the subtree and their wrenches move rigidly. In
addition, the twists and accelerations of these bodies change by

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

from warpbots.solvers.articulated.cloud_contact import add_pair_contacts, apply, bounds_overlap
from warpbots.solvers.articulated.joint_forces import motor_force, motor_tangent, passive_force, passive_tangents
from warpbots.solvers.articulated.joints import BALL, FIXED, cayley_rate, cayley_tangent
from warpbots.solvers.articulated.kinematics import first_moment, inertial_wrench, moments, move, of_joint, twist_along
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import (
    Twist,
    angular,
    cross_force,
    cross_motion,
    linear,
    mat33,
    momentum,
    outer_cross,
    scalar,
    spatial,
    vec3,
)
from warpbots.solvers.articulated.step_arrays import ImplicitStage, StepArrays
from warpbots.solvers.articulated.thread_team import sync

__all__ = ["evaluate"]

_TWO = wp.constant(scalar(2.0))
_ZERO = wp.constant(scalar(0.0))


@wp.func
def freedom_of(kind: int):
    """Number of velocities of an element of the given kind."""
    n = int(1)
    if kind == FIXED:
        n = 0
    if kind == BALL:
        n = 3
    return n


@wp.func
def load_element(robot: RobotArrays, work: StepArrays, w: int, e: int):
    """Initialise the sums over the subtree of element e with the body that e carries directly, or with zeros."""
    tree = robot.tree
    design = robot.design
    links = work.links
    n = w * tree.elements + e
    V = links.twist[n]
    m = scalar(0.0)
    mc = vec3()
    J = mat33()
    h = vec3()
    B = mat33()
    F = Twist()
    if tree.last[e] == 1:
        k = w * tree.bodies + tree.body[e]
        m = design.mass[k]
        mc = first_moment(design, links, k)
        J = moments(design, links, k)
        omega = angular(V)
        h = linear(momentum(m, mc, J, V))
        B = _TWO * (wp.skew(omega) @ J - outer_cross(mc, linear(V))) - wp.trace(J) * wp.skew(omega)
        F = inertial_wrench(m, mc, J, V, links.acceleration[n])
    work.mass[n] = m
    work.moment[n] = mc
    work.inertia[n] = J
    work.momentum[n] = h
    work.coriolis[n] = B
    work.force[n] = F
    work.pushed[n] = Twist()


@wp.func
def chart(tree: JointTree, stage: ImplicitStage, w: int, e: int):
    """Derivatives of the motion of element e and of its velocity with respect to the displacement x of the stage.

    The motion is a rotation or a translation. Each derivative is a 3 x 3 matrix.
    """
    c = stage.c[w]
    T = wp.identity(n=3, dtype=scalar)
    dv = c * T
    if tree.kind[e] == BALL:
        x = of_joint(tree, stage.x, w, e)
        T = cayley_tangent(x)
        dv = c * T + cayley_rate(x, c * x + of_joint(tree, stage.rate, w, e))
    return T, dv


@wp.func
def displace_element(robot: RobotArrays, stage: ImplicitStage, work: StepArrays, w: int, e: int):
    """Write the axes S of element e, the twists s of unit displacements, and the changes a and g in its subtree."""
    tree = robot.tree
    design = robot.design
    links = work.links
    kind = tree.kind[e]
    count = freedom_of(kind)
    n = w * tree.elements + e
    V_p = Twist()
    A_p = spatial(vec3(), -design.gravity[w])
    parent = tree.parent[e]
    if parent >= 0:
        V_p = links.twist[w * tree.elements + parent]
        A_p = links.acceleration[w * tree.elements + parent]
    c = stage.c[w]
    T, dv = chart(tree, stage, w, e)
    p = links.position[n]
    basis = links.basis[n]
    both = V_p + links.twist[n]
    for k in range(count):
        i = w * tree.freedom + tree.dof[e] + k
        one = vec3()
        one[k] = scalar(1.0)
        s = twist_along(kind, basis, p, T @ one)
        v = twist_along(kind, basis, p, dv @ one)
        drift = cross_motion(V_p, s)
        work.axis[i] = twist_along(kind, basis, p, one)
        work.displaced[i] = s
        work.drift[i] = drift + v
        work.lag[i] = cross_motion(A_p, s) + cross_motion(V_p, drift) + c * v + cross_motion(both, v)


@wp.func
def change(work: StepArrays, n: int, drift: Twist, lag: Twist):
    """Change I g + 2 B a of the wrench of subtree n, with a = `drift` and g = `lag`."""
    w = angular(drift)
    return momentum(work.mass[n], work.moment[n], work.inertia[n], lag) + spatial(
        work.coriolis[n] @ w, _TWO * wp.cross(w, work.momentum[n])
    )


@wp.func
def differentiate(robot: RobotArrays, work: StepArrays, w: int, e: int, k: int):
    """Write the residual of velocity k of element e, and entries of the Jacobian in the row and column of the velocity.

    The entries are for the velocities of e and of all elements that carry e.
    """
    tree = robot.tree
    n = w * tree.elements + e
    j = tree.dof[e] + k
    J = w * tree.freedom * tree.freedom
    at = w * tree.freedom
    S = work.axis[at + j]
    s = work.displaced[at + j]
    pushed = work.pushed[n]
    work.residual[at + j] = wp.dot(S, work.force[n] - pushed)
    D = change(work, n, work.drift[at + j], work.lag[at + j])
    for m in range(freedom_of(tree.kind[e])):
        i = tree.dof[e] + m
        work.jacobian[J + i * tree.freedom + j] = wp.dot(work.axis[at + i], D + cross_force(s, pushed))
    D = D + cross_force(s, work.force[n])
    # the row: S . (I g + 2 B a) = (I S) . g + (2 B)^T S . a
    IS = momentum(work.mass[n], work.moment[n], work.inertia[n], S)
    BS = wp.transpose(work.coriolis[n]) @ angular(S) + _TWO * wp.cross(work.momentum[n], linear(S))
    WS = cross_force(S, pushed)
    f = tree.parent[e]
    while f >= 0:
        for m in range(freedom_of(tree.kind[f])):
            i = tree.dof[f] + m
            work.jacobian[J + i * tree.freedom + j] = wp.dot(work.axis[at + i], D)
            lag = wp.dot(IS, work.lag[at + i]) + wp.dot(BS, angular(work.drift[at + i]))
            work.jacobian[J + j * tree.freedom + i] = lag - wp.dot(WS, work.displaced[at + i])
        f = tree.parent[f]


@wp.func
def element_of(tree: JointTree, body: int):
    """Index of the element that carries a body, or -1 if `body` is -1 (the world)."""
    e = int(-1)
    if body >= 0:
        e = tree.element[body]
    return e


@wp.func
def differentiate_pair(robot: RobotArrays, work: StepArrays, w: int, pair: int, j: int):
    """Add the derivatives of the contact wrench of a pair to column j of the Jacobian."""
    tree = robot.tree
    contacts = robot.contacts
    solids = robot.solids
    links = work.links
    pairs = work.pairs
    m = w * contacts.pairs + pair
    a = element_of(tree, contacts.group_body[contacts.pair_group[pair]])
    b = element_of(tree, solids.body[contacts.pair_solid[pair]])
    at = w * tree.freedom
    e = tree.of_dof[j]
    moves_a = int(0)
    moves_b = int(0)
    if a >= 0:
        moves_a = tree.carries[e * tree.elements + a]
    if b >= 0:
        moves_b = tree.carries[e * tree.elements + b]
    if moves_a + moves_b == 0:
        return
    s = work.displaced[at + j]
    drift = work.drift[at + j]
    dW = Twist()
    if moves_a == 1:
        dV = drift + cross_motion(s, links.twist[w * tree.elements + a])
        dW = apply(pairs.blocks, 12 * m, s) + apply(pairs.blocks, 12 * m + 8, dV)
    if moves_b == 1:
        dV = drift + cross_motion(s, links.twist[w * tree.elements + b])
        dW = dW - apply(pairs.blocks, 12 * m + 4, s) - apply(pairs.blocks, 12 * m + 8, dV)
    column = w * tree.freedom * tree.freedom + j
    for side in range(2):
        f = wp.where(side == 0, a, b)
        sign = wp.where(side == 0, scalar(-1.0), scalar(1.0))
        while f >= 0:
            for k in range(freedom_of(tree.kind[f])):
                i = tree.dof[f] + k
                work.jacobian[column + i * tree.freedom] += sign * wp.dot(work.axis[at + i], dW)
            f = tree.parent[f]


@wp.func
def add_passive(robot: RobotArrays, stage: ImplicitStage, work: StepArrays, w: int, e: int):
    """Add the forces of springs, dampers, limits and rotors of element e to the residual and to the Jacobian."""
    tree = robot.tree
    design = robot.design
    count = freedom_of(tree.kind[e])
    if count == 0:
        return
    T, dv = chart(tree, stage, w, e)
    stiff, slow = passive_tangents(tree, design, stage, w, e)
    tangent = stiff @ T + wp.diag(slow) @ dv
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
def clear(robot: RobotArrays, work: StepArrays, w: int, lane: int, lanes: int):
    """Clear the Jacobian, and the sums of pairs that had contacts in the last evaluation."""
    pairs = work.pairs
    size = robot.tree.freedom * robot.tree.freedom
    for i in range(lane, size, lanes):
        work.jacobian[w * size + i] = _ZERO
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
def add_contact_wrenches(robot: RobotArrays, work: StepArrays, w: int):
    """Add the contact wrench of each pair to the elements of both bodies, by one thread."""
    tree = robot.tree
    contacts = robot.contacts
    for pair in range(contacts.pairs):
        m = w * contacts.pairs + pair
        if work.pairs.active[m] > 0:
            W = work.pairs.wrench[m]
            a = element_of(tree, contacts.group_body[contacts.pair_group[pair]])
            if a >= 0:
                work.pushed[w * tree.elements + a] += W
            b = element_of(tree, robot.solids.body[contacts.pair_solid[pair]])
            if b >= 0:
                work.pushed[w * tree.elements + b] -= W


@wp.func
def add_children(tree: JointTree, work: StepArrays, w: int, i: int):
    """Add the sums over the subtrees of its children to the sums of the i-th element of `tree.order`."""
    n = w * tree.elements + tree.order[i]
    for back in range(tree.child[i + 1] - tree.child[i]):
        m = w * tree.elements + tree.order[tree.child[i + 1] - 1 - back]
        work.mass[n] += work.mass[m]
        work.moment[n] += work.moment[m]
        work.inertia[n] += work.inertia[m]
        work.momentum[n] += work.momentum[m]
        work.coriolis[n] += work.coriolis[m]
        work.force[n] += work.force[m]
        work.pushed[n] += work.pushed[m]


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
            move(tree, robot.design, stage, work.links, w, tree.order[i])
        sync()
    for e in range(lane, tree.elements, lanes):
        load_element(robot, work, w, e)
        displace_element(robot, stage, work, w, e)
    sum_contacts(robot, work, w, lane, lanes)
    sync()
    if lane == 0:
        add_contact_wrenches(robot, work, w)
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
    sync()
    for j in range(lane, tree.freedom, lanes):
        for i in range(tree.drive[j], tree.drive[j + 1]):
            add_motor(robot, stage, work, control, w, tree.motor[i])
    sync()
