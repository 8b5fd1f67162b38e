"""Joint actuators: torque motors and position servos."""

import numpy as np

from warpbots.robots.kinematic_tree import Start
from warpbots.robots.mujoco_source import Source
from warpbots.robots.mujoco_versions import field
from warpbots.scene import JOINTS, Joint, SceneError, Servo, Torque

__all__ = ["motors_of"]


def motors_of(source: Source, joints: list[Joint], start: Start, unknown: list[str]) -> list[Torque | Servo]:
    """Motors of a file; at u = 0 they hold the start.

    Args:
        source: The file.
        joints: Its joints.
        start: Its initial state, with controls if that is a keyframe.
        unknown: Takes a line for each actuator that is left out or read differently.
    """
    known = {j.name: j for j in joints}
    if source.urdf and not source.model.nu:
        return _efforts(source, known)
    found = []
    for k in sorted(set(range(source.model.nu)) - source.idle):
        name = source.model.actuator(k).name or f"actuator {k}"
        try:
            found.append(_motor(source, k, name, known, start, unknown))
        except SceneError as fault:
            unknown.append(f"actuator {name!r}: {fault}")
    return found


def _efforts(source: Source, known: dict[str, Joint]) -> list[Torque]:
    """A motor for every joint of URDF with an effort limit above zero."""
    model, found = source.model, []
    for j, name in enumerate(source.joints):
        effort = float(np.abs(model.jnt_actfrcrange[j]).max())
        if model.jnt_actfrclimited[j] and effort > 0.0 and known[name].freedom == 1:
            found.append(Torque(name, name, effort))
    return found


def _motor(
    source: Source, k: int, name: str, known: dict[str, Joint], start: Start, unknown: list[str]
) -> Torque | Servo:
    model = source.model
    joint, axis, gear = _drive(source, k, known)
    if source.kind("mjtDyn", model.actuator_dyntype[k]) != "none":
        raise SceneError("it has internal dynamics (dyntype); use a motor or a position actuator without dynamics")
    gain, bias = model.actuator_gainprm[k], model.actuator_biasprm[k]
    kinds = source.kind("mjtGain", model.actuator_gaintype[k]), source.kind("mjtBias", model.actuator_biastype[k])
    by_position = kinds == ("fixed", "affine") and bias[0] == 0.0 and gain[0] == -bias[1] and gain[0] > 0.0
    by_position = by_position and bias[2] <= 0.0
    if not by_position and (kinds != ("fixed", "none") or gain[0] == 0.0):
        raise SceneError("it is neither a motor nor a position actuator; replace it with one of these")
    if gear * gain[0] < 0.0:
        unknown.append(
            f"actuator {name!r}: its gear is negative; here a positive control drives in the positive direction"
        )
    if any(np.any(field(model, name)[k]) for name in ("actuator_damping", "actuator_armature")):
        unknown.append(f"actuator {name!r}: its own damping and armature; specify them for the joint")
    if by_position:
        return _servo(source, k, name, known[joint], axis, gear, start, unknown)
    if start.ctrl is not None and start.ctrl[k] != 0.0:
        unknown.append(f"actuator {name!r}: its control {start.ctrl[k]:g} in the keyframe; here u = 0 means no torque")
    return Torque(name, joint, _torque(source, k, name, gear * gain[0], unknown), axis)


def _drive(source: Source, k: int, known: dict[str, Joint]) -> tuple[str, int, float]:
    """Joint, index of its velocity, and gear of an actuator."""
    model, kind = source.model, source.kind("mjtTrn", source.model.actuator_trntype[k])
    if kind not in ("joint", "jointinparent"):
        raise SceneError(f"it drives a {kind}; only joints can be driven")
    name = source.joints[model.actuator_trnid[k, 0]]
    if name not in known:
        raise SceneError(f"joint {name!r} is removed, because its base is fixed")
    joint = known[name]
    if kind == "jointinparent" and joint.freedom > 1:
        raise SceneError(f"it drives the {joint.kind} joint {name!r} in axes of its parent; use joint=... instead")
    gears = model.actuator_gear[k, : JOINTS[joint.kind][0]]
    if np.count_nonzero(gears) != 1:
        raise SceneError(
            f"it drives {np.count_nonzero(gears)} velocities of joint {name!r} at once; a motor drives only one"
        )
    axis = int(np.flatnonzero(gears)[0])
    return name, axis, float(gears[axis])


def _torque(source: Source, k: int, name: str, scale: float, unknown: list[str]) -> float:
    """Torque at the largest control, or at a control of 1, within the limits of the actuator and of its joint."""
    model = source.model
    reach = 1.0
    if model.actuator_ctrllimited[k]:
        lower, upper = model.actuator_ctrlrange[k]
        reach = max(abs(lower), abs(upper))
        if not np.isclose(lower, -upper):
            unknown.append(f"actuator {name!r}: its control range [{lower:g}, {upper:g}]; here it is symmetric")
    torque = abs(scale) * reach
    if model.actuator_forcelimited[k]:
        torque = min(torque, abs(scale / model.actuator_gainprm[k, 0]) * np.abs(model.actuator_forcerange[k]).max())
    j = model.actuator_trnid[k, 0]
    if model.jnt_actfrclimited[j]:
        torque = min(torque, np.abs(model.jnt_actfrcrange[j]).max())
    if not torque > 0.0:
        raise SceneError("its range is zero; give it a positive one")
    return float(torque)


def _servo(
    source: Source, k: int, name: str, joint: Joint, axis: int, gear: float, start: Start, unknown: list[str]
) -> Servo:
    """A position actuator; its force gear (kp (control - gear q) - kv gear v) has no limit here.

    At u = 0 its target is that of the keyframe, or else the middle of its range; u = 1 moves it to the farther end.
    """
    model = source.model
    if axis >= joint.straight:
        raise SceneError(f"it is a position actuator of the {joint.kind} joint {joint.name!r}; use motors there")
    if model.actuator_forcelimited[k] or model.jnt_actfrclimited[model.actuator_trnid[k, 0]]:
        unknown.append(f"actuator {name!r}: its force limit; a Servo has none")
    target, reach, ends = 0.0, 1.0 / abs(gear), None
    if model.actuator_ctrllimited[k]:
        ends = model.actuator_ctrlrange[k] / gear
    elif joint.lower is not None:
        ends = np.array([joint.lower[0], joint.upper[0]])
    if ends is not None:
        target, reach = ends.mean(), np.ptp(ends) / 2.0
    if start.ctrl is not None:
        target = start.ctrl[k] / gear
        if model.actuator_ctrllimited[k]:
            target = np.clip(target, *np.sort(ends))
        if ends is not None:
            reach = np.abs(ends - target).max()
    kp, kv = model.actuator_gainprm[k, 0] * gear**2, -model.actuator_biasprm[k, 2] * gear**2
    return Servo(name, joint.name, float(kp), max(0.0, float(kv)), float(target), float(reach), axis)
