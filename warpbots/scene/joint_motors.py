"""Motors at joints: by torque, or by position."""

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import positive

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
        positive(self.max_torque, f"Torque {self.name!r}: max_torque")


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
        positive(self.stiffness, f"{what}: stiffness")
        for field in ("damping", "reach"):
            if getattr(self, field) < 0.0:
                raise SceneError(f"{what}: {field} must not be negative, got {getattr(self, field):g}")
