"""Joint actuators: torque motors and position servos."""

from collections import Counter

import numpy as np

from warpbots.robots.records import ActuatorRecord, Keyframe, RobotRecord
from warpbots.scene import Joint, SceneError, Servo, Torque

__all__ = ["motors_of"]


def motors_of(robot: RobotRecord, joints: list[Joint], start: Keyframe, unknown: list[str]) -> list[Torque | Servo]:
    """Motors of a scene for the actuators of a robot file.

    Args:
        robot: The file.
        joints: The joints of the scene.
        start: The initial state; it contains controls only if it is a keyframe of the file.
        unknown: Receives a line for each actuator that is left out or changed on reading.
    """
    known = {j.name: j for j in joints}
    if robot.urdf and not robot.actuated:
        return _efforts(robot, known)
    found = []
    for actuator in robot.actuators:
        try:
            found.append(_motor(robot, actuator, known, start, unknown))
        except SceneError as fault:
            unknown.append(f"actuator {actuator.name!r}: {fault}")
    limited = {joint.name for joint in robot.joints if joint.effort is not None}
    for joint, count in Counter(motor.joint for motor in found if isinstance(motor, Torque)).items():
        if count > 1 and joint in limited:
            unknown.append(f"joint {joint!r}: the limit of its {count} motors together; here each has it on its own")
    return found


def _efforts(robot: RobotRecord, known: dict[str, Joint]) -> list[Torque]:
    """A `Torque` for every URDF joint with one degree of freedom and an effort limit above zero."""
    return [
        Torque(joint.name, joint.name, float(np.abs(joint.effort).max()))
        for joint in robot.joints
        if joint.effort is not None and joint.effort.any() and known[joint.name].freedom == 1
    ]


def _motor(
    robot: RobotRecord, actuator: ActuatorRecord, known: dict[str, Joint], start: Keyframe, unknown: list[str]
) -> Torque | Servo:
    what = f"actuator {actuator.name!r}"
    joint, axis, gear = _drive(robot, actuator, known)
    if actuator.dynamics != "none":
        raise SceneError("it has internal dynamics (dyntype); use a motor or a position actuator without dynamics")
    gain, bias = actuator.gain, actuator.bias
    kinds = actuator.gain_kind, actuator.bias_kind
    by_position = kinds == ("fixed", "affine") and bias[0] == 0.0 and gain[0] == -bias[1] and gain[0] > 0.0
    by_position = by_position and bias[2] <= 0.0
    if not by_position and (kinds != ("fixed", "none") or gain[0] == 0.0):
        raise SceneError("it is neither a motor nor a position actuator; replace it with one of these")
    if gear * gain[0] < 0.0:
        unknown.append(f"{what}: its gear is negative; here a positive control drives in the positive direction")
    if actuator.is_passive:
        unknown.append(f"{what}: its own damping and armature; specify them for the joint")
    effort = robot.joints[actuator.target].effort
    if by_position:
        return _servo(actuator, effort, known[joint], axis, gear, start, unknown)
    if start.ctrl is not None and start.ctrl[actuator.index] != 0.0:
        control = start.ctrl[actuator.index]
        unknown.append(f"{what}: its control {control:g} in the keyframe; here u = 0 means no torque")
    return Torque(actuator.name, joint, _torque(actuator, effort, gear * gain[0], unknown), axis)


def _drive(robot: RobotRecord, actuator: ActuatorRecord, known: dict[str, Joint]) -> tuple[str, int, float]:
    """Name of the joint that an actuator drives, index of the driven velocity in this joint, and gear."""
    if actuator.drives not in ("joint", "jointinparent"):
        raise SceneError(f"it drives a {actuator.drives}; only joints can be driven")
    name = robot.joints[actuator.target].name
    if name not in known:
        raise SceneError(f"joint {name!r} is removed, because its base is fixed")
    joint = known[name]
    if actuator.drives == "jointinparent" and joint.freedom > 1:
        raise SceneError(f"it drives the {joint.kind} joint {name!r} in axes of its parent; use joint=... instead")
    gears = actuator.gear[: joint.freedom]
    if np.count_nonzero(gears) != 1:
        raise SceneError(
            f"it drives {np.count_nonzero(gears)} velocities of joint {name!r} at once; a motor drives only one"
        )
    axis = int(np.flatnonzero(gears)[0])
    return name, axis, float(gears[axis])


def _torque(actuator: ActuatorRecord, effort: np.ndarray | None, scale: float, unknown: list[str]) -> float:
    """Torque of a motor at the end of its control range, or at a control of 1 if the file gives no control range.

    The torque is limited by the force limits of the actuator and of its joint.
    """
    reach = 1.0
    if actuator.control_range is not None:
        reach = np.abs(actuator.control_range).max()
        _name_lopsided(actuator, "control range", actuator.control_range, unknown)
    torque = abs(scale) * reach
    lever = abs(scale / actuator.gain[0])  # gear
    for what, limits, arm in (("force range", actuator.force_range, lever), ("joint's force range", effort, 1.0)):
        if limits is not None and arm * np.abs(limits).min() < torque:
            torque = min(torque, arm * np.abs(limits).max())
            _name_lopsided(actuator, what, limits, unknown)
    if not torque > 0.0:
        raise SceneError("its range is zero; give it a positive one")
    return float(torque)


def _name_lopsided(actuator: ActuatorRecord, what: str, limits: np.ndarray | None, unknown: list[str]) -> None:
    """Report a range of a motor that is not symmetric about zero, because a `Torque` has the larger side on both."""
    if limits is not None and not np.isclose(limits[0], -limits[1]):
        unknown.append(f"actuator {actuator.name!r}: its {what} [{limits[0]:g}, {limits[1]:g}]; here it is symmetric")


def _servo(
    actuator: ActuatorRecord, effort: np.ndarray | None, joint: Joint, axis: int, gear: float, start: Keyframe,
    unknown: list[str],
) -> Servo:  # fmt: skip
    """The `Servo` for a position actuator, without its force limit.

    The force of the actuator is gear (kp (control - gear q) - kv gear v).

    The target at u = 0 is the control of the keyframe. Without a keyframe it is the middle of the control range, else
    the middle of the range of the joint, else 0. At u = 1 or u = -1 the target is the farther end of the range.
    """
    if axis >= joint.straight:
        raise SceneError(f"it is a position actuator of the {joint.kind} joint {joint.name!r}; use motors there")
    if actuator.force_range is not None or effort is not None:
        unknown.append(f"actuator {actuator.name!r}: its force limit; a Servo has none")
    target, reach, ends = 0.0, 1.0 / abs(gear), None
    if actuator.control_range is not None:
        ends = actuator.control_range / gear
    elif joint.lower is not None:
        ends = np.array([joint.lower[0], joint.upper[0]])
    if ends is not None:
        target, reach = ends.mean(), np.ptp(ends) / 2.0
    if start.ctrl is not None:
        target = start.ctrl[actuator.index] / gear
        if actuator.control_range is not None:
            target = np.clip(target, *np.sort(ends))
        if ends is not None:
            reach = np.abs(ends - target).max()
    kp, kv = actuator.gain[0] * gear**2, -actuator.bias[2] * gear**2
    return Servo(actuator.name, joint.name, float(kp), max(0.0, float(kv)), float(target), float(reach), axis)
