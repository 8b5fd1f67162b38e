"""The Jacobian of the residual: displacements of the subtrees, and the changes of their wrenches (`residual`)."""

import warp as wp

from warpbots.solvers.articulated.cloud_contact import apply
from warpbots.solvers.articulated.joints import BALL, cayley_rate, cayley_tangent, freedom_of
from warpbots.solvers.articulated.kinematics import center_of, of_joint, twist_along
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import (
    Twist,
    angular,
    cross_force,
    cross_motion,
    linear,
    mat33,
    momentum,
    scalar,
    spatial,
    vec3,
)
from warpbots.solvers.articulated.step_arrays import Change, ImplicitStage, StepArrays, Subtree
from warpbots.solvers.articulated.subtree_sums import element_of

__all__ = ["chart", "differentiate", "differentiate_load", "differentiate_pair", "displace_element"]

_TWO = wp.constant(scalar(2.0))


@wp.func
def chart(tree: JointTree, stage: ImplicitStage, w: int, e: int):
    """Derivatives of the rotation of element e, a ball joint, and of its velocity with respect to the displacement x.

    Each derivative is a 3 x 3 matrix; for one coordinate they are 1 and c.
    """
    c = stage.c[w]
    x = of_joint(tree, stage.x, w, e)
    T = cayley_tangent(x)
    return T, c * T + cayley_rate(x, c * x + of_joint(tree, stage.rate, w, e))


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
    p = links.position[n]
    basis = links.basis[n]
    both = V_p + links.twist[n]
    T = mat33()
    dv = mat33()
    if kind == BALL:
        T, dv = chart(tree, stage, w, e)
    for k in range(count):
        i = w * tree.freedom + tree.dof[e] + k
        one = vec3()
        one[k] = scalar(1.0)
        S = twist_along(kind, basis, p, one)
        s = S
        v = c * S
        if kind == BALL:
            s = twist_along(kind, basis, p, T @ one)
            v = twist_along(kind, basis, p, dv @ one)
        drift = cross_motion(V_p, s)
        work.axis[i] = S
        by = Change()
        by.displaced = s
        by.drift = drift + v
        by.lag = cross_motion(A_p, s) + cross_motion(V_p, drift) + c * v + cross_motion(both, v)
        work.change[i] = by


@wp.func
def changed_wrench(subtree: Subtree, by: Change):
    """Change I g + 2 B a of the wrench of a subtree, with a = `by.drift` and g = `by.lag`."""
    w = angular(by.drift)
    return momentum(subtree.mass, subtree.moment, subtree.inertia, by.lag) + spatial(
        subtree.coriolis @ w, _TWO * wp.cross(w, subtree.momentum)
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
    subtree = work.subtree[n]
    by = work.change[at + j]
    s = by.displaced
    pushed = subtree.pushed
    work.residual[at + j] = wp.dot(S, subtree.force - pushed)
    D = changed_wrench(subtree, by)
    for m in range(freedom_of(tree.kind[e])):
        i = tree.dof[e] + m
        work.jacobian[J + i * tree.freedom + j] = wp.dot(work.axis[at + i], D + cross_force(s, pushed))
    D = D + cross_force(s, subtree.force)
    # the row: S . (I g + 2 B a) = (I S) . g + (2 B)^T S . a
    IS = momentum(subtree.mass, subtree.moment, subtree.inertia, S)
    BS = wp.transpose(subtree.coriolis) @ angular(S) + _TWO * wp.cross(subtree.momentum, linear(S))
    WS = cross_force(S, pushed)
    f = tree.parent[e]
    while f >= 0:
        for m in range(freedom_of(tree.kind[f])):
            i = tree.dof[f] + m
            work.jacobian[J + i * tree.freedom + j] = wp.dot(work.axis[at + i], D)
            above = work.change[at + i]
            lag = wp.dot(IS, above.lag) + wp.dot(BS, angular(above.drift))
            work.jacobian[J + j * tree.freedom + i] = lag - wp.dot(WS, above.displaced)
        f = tree.parent[f]


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
    by = work.change[at + j]
    s = by.displaced
    drift = by.drift
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
def differentiate_load(robot: RobotArrays, work: StepArrays, w: int, body: int, j: int):
    """Add the derivatives of the external wrench of a body to column j of the Jacobian.

    Force and torque keep their axes; the force moves with the centre of mass.
    """
    tree = robot.tree
    at = w * tree.freedom
    f = tree.element[body]
    if tree.carries[tree.of_dof[j] * tree.elements + f] == 0:
        return
    k = w * tree.bodies + body
    s = work.change[at + j].displaced
    c = center_of(robot.design, work.links, k)
    moment = wp.cross(linear(s) + wp.cross(angular(s), c), robot.design.force[k])
    column = w * tree.freedom * tree.freedom + j
    while f >= 0:
        for m in range(freedom_of(tree.kind[f])):
            i = tree.dof[f] + m
            work.jacobian[column + i * tree.freedom] -= wp.dot(angular(work.axis[at + i]), moment)
        f = tree.parent[f]
