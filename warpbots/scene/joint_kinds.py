"""Kinds of joints as chains of elementary joints, in one table for all solvers, readers and writers."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.record import record

__all__ = ["JOINTS", "ElementaryJoint", "JointKind"]

_TYPES = ("prismatic", "revolute", "ball")
_AXES = ("x", "y", "z")


@record
class ElementaryJoint:
    """An elementary joint: a translation along an axis, a rotation about an axis, or a free rotation (ball).

    Attributes:
        type: ``"prismatic"``, ``"revolute"`` or ``"ball"``.
        axis: Axis ``"x"``, ``"y"`` or ``"z"`` of the frame of the joint; None if the axis is `Joint.axis`, and for a
            ball.
    """

    type: str
    axis: str | None = None

    def __post_init__(self):
        if self.type not in _TYPES:
            raise ValueError(f"ElementaryJoint: type must be one of {', '.join(_TYPES)}, got {self.type!r}")
        if self.axis not in (*_AXES, None) or (self.type == "ball" and self.axis is not None):
            raise ValueError(
                f"ElementaryJoint: the axis of a {self.type} joint must be "
                f"{'None' if self.type == 'ball' else 'x, y, z or None'}, got {self.axis!r}"
            )

    @property
    def freedom(self) -> int:
        """Number of joint velocities."""
        return 3 if self.type == "ball" else 1

    @property
    def coordinates(self) -> int:
        """Number of joint coordinates."""
        return 4 if self.type == "ball" else 1

    def direction(self, axis: Sequence[float]) -> np.ndarray:
        """Axis of the elementary joint in the frame of the joint, shape (3,).

        For a ball, which has no axis, the result is the z axis.

        Args:
            axis: `Joint.axis`, a unit vector, shape (3,).
        """
        if self.axis is not None:
            return np.eye(3)[_AXES.index(self.axis)]
        return np.eye(3)[2] if self.type == "ball" else np.array(axis, dtype=np.float64)


@record
class JointKind:
    """A kind of joint, as a chain of elementary joints.

    Each elementary joint moves all elementary joints after it, and the last elementary joint moves the child. The
    coordinates and velocities of a joint are the coordinates and velocities of its elementary joints, in their order.

    Attributes:
        chain: The elementary joints; only the last elementary joint can be a ball.
    """

    chain: Sequence[ElementaryJoint] = ()

    def __post_init__(self):
        if any(joint.type == "ball" for joint in self.chain[:-1]):
            raise ValueError("JointKind: a ball can only be the last elementary joint; make it two joints")

    @property
    def freedom(self) -> int:
        """Number of joint velocities."""
        return sum(joint.freedom for joint in self.chain)

    @property
    def coordinates(self) -> int:
        """Number of joint coordinates; with a ball, the last four coordinates are a quaternion (x, y, z, w)."""
        return sum(joint.coordinates for joint in self.chain)

    @property
    def ball(self) -> bool:
        """Whether the last elementary joint is a ball."""
        return bool(self.chain) and self.chain[-1].type == "ball"

    @property
    def straight(self) -> int:
        """Number of joint velocities that are rates of a coordinate.

        These velocities come first; the angular velocity of a ball comes after them.
        """
        return self.freedom - 3 * self.ball

    @property
    def has_axis(self) -> bool:
        """Whether an elementary joint of this kind takes its axis from `Joint.axis`."""
        return any(joint.axis is None and joint.type != "ball" for joint in self.chain)

    @property
    def travels(self) -> bool:
        """Whether the child can move along a line."""
        return any(joint.type == "prismatic" for joint in self.chain)

    @property
    def floats(self) -> bool:
        """Whether the child can move along two axes or more, and turn, as a floating body does in a plane or space."""
        slides = {joint.axis for joint in self.chain if joint.type == "prismatic"}
        return len(slides) > 1 and any(self.angular)

    @property
    def angular(self) -> np.ndarray:
        """Whether each joint velocity is an angular velocity, shape (freedom,), bool."""
        return np.array([j.type != "prismatic" for j in self.chain for _ in range(j.freedom)], dtype=bool)

    @property
    def zero(self) -> np.ndarray:
        """Joint coordinates of a child that is not displaced, shape (coordinates,): zeros, (0, 0, 0, 1) for a ball."""
        q = np.zeros(self.coordinates)
        q[-1:] = self.ball
        return q


def _slides(axes: str) -> tuple[ElementaryJoint, ...]:
    return tuple(ElementaryJoint("prismatic", axis) for axis in axes)


JOINTS = {
    "fixed": JointKind(),
    "revolute": JointKind((ElementaryJoint("revolute"),)),
    "prismatic": JointKind((ElementaryJoint("prismatic"),)),
    "cylindrical": JointKind((ElementaryJoint("prismatic"), ElementaryJoint("revolute"))),
    "planar": JointKind(_slides("xy")),
    "translational": JointKind(_slides("xyz")),
    "ball": JointKind((ElementaryJoint("ball"),)),
    "free_2d": JointKind((*_slides("xy"), ElementaryJoint("revolute", "z"))),
    "free": JointKind((*_slides("xyz"), ElementaryJoint("ball"))),
}
"""Kinds of joints by name. To add one, add a line: see "A joint kind" in CONTRIBUTING.md."""
