"""Forces of joints and motors at the end of a stage, and the derivatives of these forces."""

import warp as wp

from warpbots.solvers.articulated.joints import BALL, FIXED, logarithm, logarithm_tangent
from warpbots.solvers.articulated.kinematics import ball, joint_acceleration, joint_velocity, of_joint
from warpbots.solvers.articulated.robot_arrays import JointTree, ModelParameters
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage

__all__ = ["limit_margin", "motor_force", "motor_tangent", "passive_force", "passive_tangents"]

_LEAST = wp.constant(scalar(1e-13))  # depth up to which a coordinate is at its limit, for rounding [m or rad]


@wp.func
def limit_force(q: scalar, v: scalar, lower: scalar, upper: scalar, stiffness: scalar, damping: scalar):
    """Force that is needed to move a joint against its limits: a spring force plus a damping force.

    The spring force is proportional to the depth beyond a limit, and the damping force is at most as large as the
    spring force. So limits never pull, and their force is continuous at a limit.
    """
    depth = scalar(0.0)
    if q > upper:
        depth = q - upper
    if q < lower:
        depth = q - lower
    force = stiffness * depth
    if depth != scalar(0.0):
        most = wp.abs(force)
        force = force + wp.clamp(damping * v, -most, most)
    return force


@wp.func
def limit_tangent(q: scalar, v: scalar, lower: scalar, upper: scalar, stiffness: scalar, damping: scalar):
    """Derivatives of `limit_force` with respect to the coordinate q and the velocity v."""
    spring = scalar(0.0)
    slow = scalar(0.0)
    if q > upper or q < lower:
        side = wp.where(q > upper, scalar(1.0), scalar(-1.0))
        depth = wp.where(q > upper, q - upper, lower - q)
        most = stiffness * depth
        drag = side * damping * v
        spring = stiffness
        if drag > most:
            spring = scalar(2.0) * stiffness
        elif drag < -most:
            spring = scalar(0.0)
        else:
            slow = damping
    return spring, slow


@wp.func
def limit_margin(tree: JointTree, design: ModelParameters, stage: ImplicitStage, w: int):
    """Change of a coordinate that reaches or leaves a limit, or a bound of its damping [m or rad].

    Infinite without joints near a limit, and for coordinates that are at their limit within rounding errors.
    """
    margin = scalar(wp.inf)
    for e in range(tree.elements):
        if tree.kind[e] != BALL and tree.kind[e] != FIXED:
            i = w * tree.freedom + tree.dof[e]
            k = design.limit_stiffness[i]
            q = stage.q[w * tree.coordinates + tree.coordinate[e]] + stage.x[i]
            v = stage.c[w] * stage.x[i] + stage.rate[i]
            depth = wp.max(design.lower[i] - q, q - design.upper[i])
            if k > scalar(0.0) and wp.abs(depth) > _LEAST:
                margin = wp.min(margin, wp.abs(depth))
                drag = design.limit_damping[i]
                if depth > scalar(0.0) and drag > scalar(0.0):
                    margin = wp.min(margin, wp.abs(drag * wp.abs(v) - k * depth) / (k + drag * stage.c[w]))
    return margin


@wp.func
def passive_force(tree: JointTree, design: ModelParameters, stage: ImplicitStage, w: int, e: int):
    """Forces that are needed to move element e against its springs, dampers, limits and the inertia of its rotors."""
    kind = tree.kind[e]
    f = vec3()
    if kind == BALL:
        v = joint_velocity(tree, stage, w, e)
        a = joint_acceleration(tree, stage, w, e, v)
        f = wp.cw_mul(of_joint(tree, design.damping, w, e), v) + wp.cw_mul(of_joint(tree, design.armature, w, e), a)
        f = f + wp.cw_mul(of_joint(tree, design.stiffness, w, e), logarithm(ball(tree, stage, w, e)))
    elif kind != FIXED:
        i = w * tree.freedom + tree.dof[e]
        c = stage.c[w]
        q = stage.q[w * tree.coordinates + tree.coordinate[e]] + stage.x[i]
        v1 = c * stage.x[i] + stage.rate[i]
        a1 = c * v1 + stage.accel[i]
        spring = design.stiffness[i] * (q - design.neutral[i])
        limit = limit_force(q, v1, design.lower[i], design.upper[i], design.limit_stiffness[i], design.limit_damping[i])
        f = vec3(design.damping[i] * v1 + design.armature[i] * a1 + spring + limit, scalar(0.0), scalar(0.0))
    return f


@wp.func
def passive_tangents(tree: JointTree, design: ModelParameters, stage: ImplicitStage, w: int, e: int):
    """Derivatives of `passive_force` with respect to motions along the axes of the element, and to its velocities.

    A motion is a rotation about an axis or a translation along an axis. The derivative with respect to velocities is a
    diagonal matrix, returned as a vector.
    """
    tangent = mat33()
    slow = vec3()
    if tree.kind[e] == BALL:
        slow = of_joint(tree, design.damping, w, e) + stage.c[w] * of_joint(tree, design.armature, w, e)
        tangent = wp.diag(of_joint(tree, design.stiffness, w, e))
        tangent = tangent @ logarithm_tangent(logarithm(ball(tree, stage, w, e)))
    elif tree.kind[e] != FIXED:
        i = w * tree.freedom + tree.dof[e]
        q = stage.q[w * tree.coordinates + tree.coordinate[e]] + stage.x[i]
        v = stage.c[w] * stage.x[i] + stage.rate[i]
        spring, drag = limit_tangent(
            q, v, design.lower[i], design.upper[i], design.limit_stiffness[i], design.limit_damping[i]
        )
        tangent[0, 0] = design.stiffness[i] + spring
        slow[0] = design.damping[i] + stage.c[w] * design.armature[i] + drag
    return tangent, slow


@wp.func
def motor_force(
    tree: JointTree, design: ModelParameters, stage: ImplicitStage, control: wp.array2d[scalar], w: int, m: int
):
    """Force of motor m: u torque + stiffness (target + u reach - q) - damping v; at a ball joint only u torque."""
    i = w * tree.motors + m
    j = w * tree.freedom + tree.motor_dof[m]
    u = control[w, tree.motor_channel[m]]
    f = u * design.motor_torque[i]
    if tree.motor_coordinate[m] >= 0:
        q = stage.q[w * tree.coordinates + tree.motor_coordinate[m]] + stage.x[j]
        v = stage.c[w] * stage.x[j] + stage.rate[j]
        pull = design.motor_target[i] + u * design.motor_reach[i] - q
        f = f + design.motor_stiffness[i] * pull - design.motor_damping[i] * v
    return f


@wp.func
def motor_tangent(tree: JointTree, design: ModelParameters, stage: ImplicitStage, w: int, m: int):
    """Negative derivative of `motor_force` with respect to the displacement of the coordinate in the stage."""
    i = w * tree.motors + m
    slope = scalar(0.0)
    if tree.motor_coordinate[m] >= 0:
        slope = design.motor_stiffness[i] + stage.c[w] * design.motor_damping[i]
    return slope
