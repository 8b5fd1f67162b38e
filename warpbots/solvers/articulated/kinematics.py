"""Kinematics: poses, twists and accelerations from joint coordinates, element by element, starting at the roots."""

import warp as wp

from warpbots.solvers.articulated.joints import BALL, PRISMATIC, REVOLUTE, cayley, cayley_velocity, rotation_about
from warpbots.solvers.articulated.robot_arrays import JointTree, ModelParameters
from warpbots.solvers.articulated.spatial import (
    Twist,
    cross_force,
    cross_motion,
    mat33,
    momentum,
    outer_cross,
    quat,
    scalar,
    spatial,
    unit_quaternion,
    vec3,
)
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links

__all__ = [
    "ball",
    "body_frame",
    "center_of",
    "external_wrench",
    "first_moment",
    "inertial_wrench",
    "joint_acceleration",
    "joint_frame",
    "joint_velocity",
    "moments",
    "move",
    "of_joint",
    "twist_along",
]


@wp.func
def of_joint(tree: JointTree, values: wp.array[scalar], w: int, e: int):
    """Entries of `values` that belong to the velocities of element e, padded with zeros to three components.

    `values` has one entry for each joint velocity.
    """
    i = w * tree.freedom + tree.dof[e]
    kind = tree.kind[e]
    a = vec3()
    if kind == BALL:
        a = vec3(values[i], values[i + 1], values[i + 2])
    elif kind != 0:
        a = vec3(values[i], scalar(0.0), scalar(0.0))
    return a


@wp.func
def ball(tree: JointTree, stage: ImplicitStage, w: int, e: int):
    """Unit quaternion of element e, a ball joint, at the end of a stage."""
    i = w * tree.coordinates + tree.coordinate[e]
    q = quat(stage.q[i], stage.q[i + 1], stage.q[i + 2], stage.q[i + 3])
    return wp.normalize(q) * cayley(of_joint(tree, stage.x, w, e))


@wp.func
def joint_velocity(tree: JointTree, stage: ImplicitStage, w: int, e: int):
    """Joint velocities of element e at the end of a stage."""
    x = of_joint(tree, stage.x, w, e)
    rate = stage.c[w] * x + of_joint(tree, stage.rate, w, e)
    v = rate
    if tree.kind[e] == BALL:
        v = cayley_velocity(x, rate)
    return v


@wp.func
def joint_acceleration(tree: JointTree, stage: ImplicitStage, w: int, e: int, velocity: vec3):
    """Rates of the joint velocities of element e at the end of a stage."""
    return stage.c[w] * velocity + of_joint(tree, stage.accel, w, e)


@wp.func
def twist_along(kind: int, basis: mat33, p: vec3, rates: vec3):
    """Twist of an element relative to its parent, from the joint velocities `rates`.

    p is the origin of the element, and the columns of `basis` are the axes of its velocities.
    """
    d = rates[0] * vec3(basis[0, 0], basis[1, 0], basis[2, 0])
    if kind == BALL:
        d = basis @ rates
    twist = spatial(d, wp.cross(p, d))
    if kind == PRISMATIC:
        twist = spatial(vec3(), d)
    return twist


@wp.func
def joint_frame(design: ModelParameters, k: int):
    """Orientation of the frame of joint k of all worlds in the last element of its parent, with all joints at zero."""
    return unit_quaternion(design.joint_rotation[k])


@wp.func
def body_frame(design: ModelParameters, k: int):
    """Orientation of the frame of body k of all worlds in its element."""
    return unit_quaternion(design.body_rotation[k])


@wp.func
def move(
    tree: JointTree, design: ModelParameters, stage: ImplicitStage, joint: mat33, body: mat33, links: Links, w: int,
    e: int,
):  # fmt: skip
    """Write pose, twist and acceleration of element e, which follow from the motion of its parent.

    If e is the last element of its joint, the function also writes the pose of the body. `joint` and `body` are the
    orientations of the frames of this joint and this body.
    """
    n = w * tree.elements + e
    k = w * tree.bodies + tree.body[e]
    R = wp.identity(n=3, dtype=scalar)
    p = vec3()
    V = Twist()
    A = spatial(vec3(), -design.gravity[w])
    parent = tree.parent[e]
    if parent >= 0:
        m = w * tree.elements + parent
        R = links.rotation[m]
        p = links.position[m]
        V = links.twist[m]
        A = links.acceleration[m]
    if tree.first[e] == 1:
        p = p + R @ design.joint_position[k]
        R = R @ joint
    kind = tree.kind[e]
    axis = R @ tree.axis[e]
    basis = mat33(
        axis[0], scalar(0.0), scalar(0.0), axis[1], scalar(0.0), scalar(0.0), axis[2], scalar(0.0), scalar(0.0)
    )
    i = w * tree.coordinates + tree.coordinate[e]
    j = w * tree.freedom + tree.dof[e]
    if kind == PRISMATIC:
        p = p + (stage.q[i] + stage.x[j]) * axis
    if kind == REVOLUTE:
        R = R @ rotation_about(tree.axis[e], stage.q[i] + stage.x[j])
    if kind == BALL:
        R = R @ wp.quat_to_matrix(ball(tree, stage, w, e))
        basis = R
    v = joint_velocity(tree, stage, w, e)
    U = twist_along(kind, basis, p, v)
    a = twist_along(kind, basis, p, joint_acceleration(tree, stage, w, e, v))
    links.rotation[n] = R
    links.position[n] = p
    links.basis[n] = basis
    links.twist[n] = V + U
    links.acceleration[n] = A + a + cross_motion(V, U)
    if tree.last[e] == 1:
        links.body_rotation[k] = R @ body
        links.body_position[k] = p + R @ design.body_position[k]


@wp.func
def center_of(design: ModelParameters, links: Links, k: int):
    """Centre of mass of body k of all worlds [m]."""
    return links.body_position[k] + links.body_rotation[k] @ design.center[k]


@wp.func
def first_moment(design: ModelParameters, links: Links, k: int):
    """First moment of body k about the origin of the world: mass times centre of mass [kg m]."""
    return design.mass[k] * center_of(design, links, k)


@wp.func
def moments(design: ModelParameters, links: Links, k: int):
    """Moments of inertia of body k about the origin of the world [kg m^2]."""
    R = links.body_rotation[k]
    I = design.inertia[k]
    c = center_of(design, links, k)
    return scalar(0.5) * R @ (I + wp.transpose(I)) @ wp.transpose(R) - design.mass[k] * outer_cross(c, c)


@wp.func
def external_wrench(design: ModelParameters, links: Links, k: int):
    """External force and torque on body k, as a wrench about the origin of the world."""
    c = center_of(design, links, k)
    f = design.force[k]
    return spatial(design.torque[k] + wp.cross(c, f), f)


@wp.func
def inertial_wrench(m: scalar, mc: vec3, J: mat33, V: Twist, A: Twist):
    """Wrench I A + V x* I V that a body needs for the twist V and the acceleration A.

    The spatial inertia I consists of the mass m, the first moment mc and the moments of inertia J.
    """
    return momentum(m, mc, J, A) + cross_force(V, momentum(m, mc, J, V))
