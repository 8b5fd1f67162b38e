"""Sums over the bodies of each subtree: mass, moments, momentum, the matrix B (`residual`) and wrenches."""

import warp as wp

from warpbots.solvers.articulated.exchange import touches_matter
from warpbots.solvers.articulated.kinematics import external_wrench, first_moment, inertial_wrench, moments
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, momentum, outer_cross, scalar, vec3
from warpbots.solvers.articulated.step_arrays import StepArrays

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
    m = scalar(0.0)
    mc = vec3()
    J = mat33()
    h = vec3()
    B = mat33()
    F = Twist()
    E = Twist()
    if tree.last[e] == 1:
        k = w * tree.bodies + tree.body[e]
        m = design.mass[k]
        mc = first_moment(design, links, k)
        J = moments(design, links, k)
        omega = angular(V)
        h = linear(momentum(m, mc, J, V))
        B = _TWO * (wp.skew(omega) @ J - outer_cross(mc, linear(V))) - wp.trace(J) * wp.skew(omega)
        F = inertial_wrench(m, mc, J, V, links.acceleration[n])
        E = external_wrench(design, links, k)
    work.mass[n] = m
    work.moment[n] = mc
    work.inertia[n] = J
    work.momentum[n] = h
    work.coriolis[n] = B
    work.force[n] = F
    work.pushed[n] = E


@wp.func
def add_wrenches(robot: RobotArrays, work: StepArrays, w: int):
    """Add the wrenches of contacts and of matter to the elements of the bodies, by one thread."""
    tree = robot.tree
    contacts = robot.contacts
    for body in range(tree.bodies):
        if touches_matter(work, w * tree.bodies + body) == 1:
            work.pushed[w * tree.elements + tree.element[body]] += work.exchange.wrench[w * tree.bodies + body]
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
