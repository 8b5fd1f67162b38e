"""Motors at joints: by torque, or by position."""

import math

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.checks import assign, positive

__all__ = ["Servo", "Torque"]


@record
class Torque:
    """A motor whose torque, or force, is the control: u max_torque on one velocity of a joint.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        joint: Name of the joint.
        max_torque: Torque [N m] or force [N] at u = 1, positive.
        axis: Which velocity of the joint, from 0.
    """

    name: str
    joint: str
    max_torque: float
    axis: int = 0

    def __post_init__(self):
        assign(self, max_torque=positive(self.max_torque, f"Torque {self.name!r}: max_torque"))


@record
class Servo:
    """A motor whose position is the control: stiffness (target + u reach - q) - damping v on one velocity of a joint.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        joint: Name of the joint.
        stiffness: Proportional gain [N m/rad or N/m], positive.
        damping: Derivative gain [N m s/rad or N s/m].
        target: Coordinate to which it pulls at u = 0 [rad or m].
        reach: How far u = 1 moves the target [rad or m].
        axis: Which velocity of the joint, from 0; not the turns of balls and free joints.
    """

    name: str
    joint: str
    stiffness: float
    damping: float = 0.0
    target: float = 0.0
    reach: float = 1.0
    axis: int = 0

    def __post_init__(self):
        what = f"Servo {self.name!r}"
        assign(self, stiffness=positive(self.stiffness, f"{what}: stiffness"))
        if not (math.isfinite(self.damping) and self.damping >= 0.0):
            raise SceneError(f"{what}: damping must not be negative, got {self.damping:g}")
        if not (math.isfinite(self.target) and math.isfinite(self.reach) and self.reach >= 0.0):
            raise SceneError(f"{what}: target must be finite and reach >= 0, got {self.target:g} and {self.reach:g}")
