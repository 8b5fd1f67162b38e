"""Motors at joints: torque and position control."""

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import positive

__all__ = ["Servo", "Torque"]


@record
class Torque:
    """A motor with torque control: it exerts the torque or force u max_torque along one velocity of a joint.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        joint: Name of the joint.
        max_torque: Torque [N m] or force [N] at u = 1, positive.
        axis: Index of the joint velocity within the joint, from 0.
    """

    name: str
    joint: str
    max_torque: float
    axis: int = 0

    def __post_init__(self):
        positive(self.max_torque, f"Torque {self.name!r}: max_torque")


@record
class Servo:
    """A motor with position control: it drives one coordinate q of a joint to a target.

    The motor exerts the torque or force stiffness (target + u reach - q) - damping qd along the joint velocity qd.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        joint: Name of the joint.
        stiffness: Proportional gain [N m/rad or N/m], positive.
        damping: Derivative gain [N m s/rad or N s/m].
        target: Target coordinate at u = 0 [rad or m]; a target beyond the limits of the joint causes a warning, because
            the servo then pushes against them without end.
        reach: Change of the target at u = 1 [rad or m]; with 0 the servo holds its target, and its signal has no
            effect.
        axis: Index of the joint velocity within the joint, from 0; a servo cannot drive the rotation of a ball or of a
            free joint.
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
