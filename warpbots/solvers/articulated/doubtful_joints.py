"""Warnings about starts, limits and targets of joints that are probably mistakes."""

import math
from collections.abc import Iterator

import numpy as np

from warpbots.scene import JOINTS, Scene, Servo
from warpbots.solvers.articulated.joint_limits import GIVES
from warpbots.user_warning import warn_user

__all__ = ["warn_of_joints"]


def warn_of_joints(scene: Scene) -> None:
    """Warn of the first joint that starts far beyond its limits, of degrees, and of targets beyond limits."""
    _warn_of_starts(scene)
    if not _warn_of_degrees(scene):
        _warn_of_targets(scene)


def _warn_of_starts(scene: Scene) -> None:
    """Warn of the joints that start beyond a limit by more than the range of the limits or half a turn.

    Such a start has the wrong unit or belongs to another joint. Nearer ones are common: robots whose zero is not within
    the limits, and bodies that rest against a limit, which yields. A start beyond the only limit of a translation has
    no range to compare with.
    """
    found = []
    for joint in (j for j in scene.joints if j.lower is not None):
        start = JOINTS[joint.kind].zero if joint.start is None else joint.start
        turns = JOINTS[joint.kind].angular
        for value, lower, upper, angle in zip(start, joint.lower, joint.upper, turns, strict=False):
            if max(lower - value, value - upper) > min(upper - lower, math.pi if angle else math.inf):
                found.append((joint.name, value, lower, upper))
    if found:
        name, value, lower, upper = found[0]
        more = f", and {len(found) - 1} more start beyond theirs" if len(found) > 1 else ""
        warn_user(
            f"Joint {name!r} starts at {value:.4g}, beyond its limits {lower:.4g} to {upper:.4g}, whose springs throw "
            f"it back{more}; give Joint.start a value between them"
        )


def _warn_of_degrees(scene: Scene) -> bool:
    """Warn of limits, starts or targets that are usual angles in degrees, but would be many turns in radians.

    Several turns that are no multiples of 15, as in files of robots with wheels, are silent.

    Returns:
        Whether it warned.
    """
    for what, angles in _angles(scene):
        given = [abs(angle) for angle in angles if math.isfinite(angle) and angle != 0.0]
        if given and all(angle % 15.0 == 0.0 and angle <= 360.0 for angle in given):
            many, numbers = len(angles) > 1, " to ".join(f"{angle:g}" for angle in angles)
            warn_user(
                f"{what} {numbers} rad {'are up to' if many else 'is'} {max(given) / (2.0 * math.pi):.1f} turns, and "
                f"{'look' if many else 'looks'} like degrees: give radians, such as np.radians({max(given):g})"
            )
            return True
    return False


def _angles(scene: Scene) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The angles that joints and servos are given [rad], each with its name."""
    turns = {joint.name: JOINTS[joint.kind].angular for joint in scene.joints}
    for joint in scene.joints:
        for k in np.flatnonzero(turns[joint.name]):
            if joint.lower is not None:
                yield f"Joint {joint.name!r}: its limits", (joint.lower[k], joint.upper[k])
            if joint.start is not None and not JOINTS[joint.kind].ball:
                yield f"Joint {joint.name!r}: its start", (joint.start[k],)
    for servo in scene.actuators:
        if isinstance(servo, Servo) and turns[servo.joint][servo.axis]:
            yield f"Servo {servo.name!r}: its target", (servo.target,)
            yield f"Servo {servo.name!r}: its reach", (servo.reach,)


def _warn_of_targets(scene: Scene) -> None:
    """Warn of servos that push against a limit without end, because their target at u = 0 is beyond it.

    A target less than `GIVES` beyond the limit is silent: this is how far limits yield under motors. So is a target
    that only a signal moves beyond the limit, because it stays there only while the signal does.
    """
    joints, found = {joint.name: joint for joint in scene.joints}, []
    for servo in scene.actuators:
        joint = joints[servo.joint] if isinstance(servo, Servo) else None
        if joint is None or joint.lower is None:
            continue
        lower, upper = joint.lower[servo.axis], joint.upper[servo.axis]
        excess = max(lower - servo.target, servo.target - upper)
        if excess > GIVES[bool(JOINTS[joint.kind].angular[servo.axis])]:
            found.append((servo, lower, upper, excess > servo.reach))
    if found:
        servo, lower, upper, always = found[0]
        signals = "whatever its signal is" if always else "while its signal is 0"
        more = f", and so do {len(found) - 1} more" if len(found) > 1 else ""
        warn_user(
            f"Servo {servo.name!r}: its target {servo.target:.4g} is beyond the limits {lower:.4g} to {upper:.4g} of "
            f"Joint {servo.joint!r}, against which it pushes {signals}{more}; give a target between them, or other "
            f"limits"
        )
