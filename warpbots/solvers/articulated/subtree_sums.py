"""Sums over the bodies of each subtree: mass, moments, momentum, the matrix B (`residual`) and wrenches."""

import warp as wp

from warpbots.solvers.articulated.exchange import touches_matter
from warpbots.solvers.articulated.kinematics import external_wrench, first_moment, inertial_wrench, moments
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import (
    Twist,
    angular,
    cross_columns,
    linear,
    momentum,
    outer_cross,
    scalar,
)
from warpbots.solvers.articulated.step_arrays import StepArrays, Subtree

__all__ = ["add_children", "add_wrenches", "element_of", "is_loaded", "load_element"]

_TWO = wp.constant(scalar(2.0))
_ZERO = wp.constant(scalar(0.0))


@wp.func
def element_of(tree: JointTree, body: int):
    """Index of the element that carries a body, or -1 if `body` is -1 (the world)."""
    e = int(-1)
    if body >= 0:
        e = tree.element[body]
    return e


@wp.func
def is_loaded(robot: RobotArrays, w: int, body: int):
    """1 if an external force or torque acts on a body, else 0."""
    k = w * robot.tree.bodies + body
    size = wp.length_sq(robot.design.force[k]) + wp.length_sq(robot.design.torque[k])
    return wp.where(size == _ZERO, 0, 1)


@wp.func
def load_element(robot: RobotArrays, work: StepArrays, w: int, e: int):
    """Initialise the sums over the subtree of element e with the body that e carries directly, or with zeros."""
    tree = robot.tree
    design = robot.design
    links = work.links
    n = w * tree.elements + e
    V = links.twist[n]
    sums = Subtree()
    if tree.last[e] == 1:
        k = w * tree.bodies + tree.body[e]
        m = design.mass[k]
        mc = first_moment(design, links, k)
        J = moments(design, links, k)
        omega = angular(V)
        sums.mass = m
        sums.moment = mc
        sums.inertia = J
        sums.momentum = linear(momentum(m, mc, J, V))
        sums.coriolis = (
            _TWO * (cross_columns(omega, J) - outer_cross(mc, linear(V))) - wp.trace(J) * wp.skew(omega)
        )  # fmt: skip
        sums.force = inertial_wrench(m, mc, J, V, links.acceleration[n])
        sums.pushed = external_wrench(design, links, k)
    work.subtree[n] = sums


@wp.func
def push(work: StepArrays, n: int, W: Twist):
    """Add the wrench W to the wrenches on the subtree of element n of all worlds."""
    sums = work.subtree[n]
    sums.pushed += W
    work.subtree[n] = sums


@wp.func
def add_wrenches(robot: RobotArrays, work: StepArrays, w: int):
    """Add the wrenches of contacts and of matter to the elements of the bodies, by one thread."""
    tree = robot.tree
    contacts = robot.contacts
    for body in range(tree.bodies):
        if touches_matter(work, w * tree.bodies + body) == 1:
            push(work, w * tree.elements + tree.element[body], work.exchange.wrench[w * tree.bodies + body])
    for pair in range(contacts.pairs):
        m = w * contacts.pairs + pair
        if work.pairs.active[m] > 0:
            W = work.pairs.wrench[m]
            a = element_of(tree, contacts.group_body[contacts.pair_group[pair]])
            if a >= 0:
                push(work, w * tree.elements + a, W)
            b = element_of(tree, robot.solids.body[contacts.pair_solid[pair]])
            if b >= 0:
                push(work, w * tree.elements + b, -W)


@wp.func
def add_children(tree: JointTree, work: StepArrays, w: int, i: int):
    """Add the sums over the subtrees of its children to the sums of the i-th element of `tree.order`."""
    n = w * tree.elements + tree.order[i]
    sums = work.subtree[n]
    for back in range(tree.child[i + 1] - tree.child[i]):
        child = work.subtree[w * tree.elements + tree.order[tree.child[i + 1] - 1 - back]]
        sums.mass += child.mass
        sums.moment += child.moment
        sums.inertia += child.inertia
        sums.momentum += child.momentum
        sums.coriolis += child.coriolis
        sums.force += child.force
        sums.pushed += child.pushed
    work.subtree[n] = sums
