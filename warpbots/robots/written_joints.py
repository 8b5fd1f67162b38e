"""Converts joints to the form of robot files: slides, hinges and balls (a body may have several), and free joints."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from warpbots.robots.names import distinct
from warpbots.robots.quaternions import matrix, quaternion
from warpbots.scene import JOINTS, ElementaryJoint, Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.solvers.articulated.robot import ArticulatedRobot, robot_of

__all__ = ["JointFrame", "FileJoint", "WrittenJoint", "numbers", "written_joints"]


_TYPES = {"prismatic": "slide", "revolute": "hinge", "ball": "ball"}


def numbers(*values: object) -> str:
    """The text of an XML attribute that holds `values`, with all digits."""
    flat = np.concatenate([np.asarray(value, dtype=np.float64).ravel() for value in values])
    return " ".join(repr(float(value) + 0.0).removesuffix(".0") for value in flat)


@dataclasses.dataclass(frozen=True, eq=False)
class JointFrame:
    """A frame in the world with all joint coordinates at zero.

    Attributes:
        position: Origin of the frame [m], shape (3,).
        rotation: Axes of the frame as columns, shape (3, 3).
    """

    position: np.ndarray
    rotation: np.ndarray

    @classmethod
    def of(cls, part: Joint | RigidBody | None) -> "JointFrame":
        """The frame of a joint, a body, or the world."""
        if part is None:
            return cls(np.zeros(3), np.eye(3))
        return cls(np.array(part.position), np.array(part.rotation))

    def seen_from(self, other: "JointFrame") -> "JointFrame":
        """This frame relative to the frame `other`."""
        back = other.rotation.T
        return JointFrame(back @ (self.position - other.position), back @ self.rotation)

    def then(self, inner: "JointFrame") -> "JointFrame":
        """The frame `inner`, which is given relative to this frame, converted to the world frame."""
        return JointFrame(self.position + self.rotation @ inner.position, self.rotation @ inner.rotation)


@dataclasses.dataclass(frozen=True, eq=False)
class FileJoint:
    """A joint of a robot file.

    Attributes:
        name: Name of the joint in the file.
        kind: Kind of the joint: ``"slide"``, ``"hinge"``, ``"ball"`` or ``"free"``.
        axis: Axis of a slide or hinge in the frame of the joint of the scene, shape (3,).
        first: Index of the first velocity, and of the first coordinate, of this joint within the joint of the scene.
    """

    name: str
    kind: str
    axis: np.ndarray
    first: int

    @property
    def freedom(self) -> int:
        """Number of velocities of the joint."""
        return {"ball": 3, "free": 6}.get(self.kind, 1)

    @property
    def coordinates(self) -> int:
        """Number of coordinates of the joint."""
        return {"ball": 4, "free": 7}.get(self.kind, 1)


@dataclasses.dataclass(frozen=True, eq=False)
class WrittenJoint:
    """A joint of the scene, and the joints of the file that represent it.

    Attributes:
        joint: The joint of the scene; a free joint for a body without a joint.
        child: The child of the joint.
        parent: The parent of the joint, or None for the world.
        pieces: The joints of the file that represent `joint`, in the order in which they move the child.
        start: Coordinates at time 0, shape (coordinates,).
        velocity: Velocities at time 0, shape (velocities,).
        coordinates: Slice of the coordinates of `joint` in a state of `warpbots.Articulated`.
    """

    joint: Joint
    child: RigidBody
    parent: RigidBody | None
    pieces: tuple[FileJoint, ...]
    start: np.ndarray
    velocity: np.ndarray
    coordinates: slice

    @property
    def turn(self) -> np.ndarray:
        """Axes of the joint in the frame of the child with all coordinates at zero, as columns, shape (3, 3)."""
        return JointFrame.of(self.joint).seen_from(JointFrame.of(self.child)).rotation

    @property
    def anchor(self) -> np.ndarray:
        """Origin of the joint in the frame of the child [m], shape (3,)."""
        return JointFrame.of(self.joint).seen_from(JointFrame.of(self.child)).position

    def to_file(self, piece: FileJoint, q: np.ndarray) -> np.ndarray:
        """Coordinates of `piece` in MuJoCo, quaternions (w, x, y, z), from the coordinates `q` of the joint."""
        own = q[piece.first : piece.first + piece.coordinates]
        if piece.kind == "ball":
            return np.concatenate([own[3:], self.turn @ own[:3]])
        if piece.kind == "free":
            pose = self._pose(own)
            return np.concatenate([pose.position, quaternion(pose.rotation)])
        return own

    def from_file(self, piece: FileJoint, qpos: np.ndarray) -> np.ndarray:
        """Coordinates of `piece` in the scene, converted from its coordinates `qpos` in MuJoCo."""
        if piece.kind == "ball":
            return np.concatenate([self.turn.T @ qpos[1:], qpos[:1]])
        if piece.kind == "free":
            own = JointFrame.of(self.joint)
            pose = JointFrame(qpos[:3], matrix(qpos[3:]))
            moved = pose.then(own.seen_from(JointFrame.of(self.child))).seen_from(own)
            return np.concatenate([moved.position, np.roll(quaternion(moved.rotation), -1)])
        return qpos

    def velocity_to_file(self, piece: FileJoint) -> np.ndarray:
        """Initial velocities of `piece` in MuJoCo."""
        own = self.velocity[piece.first : piece.first + piece.freedom]
        if piece.kind == "ball":
            return self.turn @ own
        if piece.kind == "free":
            axes = np.array(self.joint.rotation)
            turned = axes @ matrix(np.roll(self.start[3:], 1))
            origin = JointFrame.of(self.child).seen_from(JointFrame.of(self.joint)).position
            return np.concatenate([axes @ own[:3] + turned @ np.cross(own[3:], origin), self.turn @ own[3:]])
        return own

    def _pose(self, q: np.ndarray) -> JointFrame:
        """Pose in the world of the child of a free joint."""
        own = JointFrame.of(self.joint)
        moved = JointFrame(q[:3], matrix(np.roll(q[3:], 1)))
        return own.then(moved).then(JointFrame.of(self.child).seen_from(own))

    @property
    def free_pose(self) -> JointFrame:
        """Pose at time 0 of the child of a free joint."""
        return self._pose(self.start)


def written_joints(scene: Scene) -> list[WrittenJoint]:
    """All joints of a scene, in the order of the joint numbers of MuJoCo.

    Raises:
        SceneError: The stiffness, damping or armature of a ball joint differs between its axes.
    """
    robot = robot_of(scene)
    first = [next(e for e in robot.elements if e.body == k) for k in range(len(robot.bodies))]
    order = sorted(range(len(robot.bodies)), key=lambda k: robot.elements.index(first[k]))
    return [_written(scene, robot, k) for k in order]


def _written(scene: Scene, robot: ArticulatedRobot, k: int) -> WrittenJoint:
    joint, child, up = robot.joints[k], scene.rigid[k], robot.parents[k]
    pieces = _pieces(joint, child, scene)
    for piece in (p for p in pieces if p.kind in ("ball", "free")):
        for field in ("stiffness", "damping", "armature"):
            values = getattr(joint, field)[piece.first : piece.first + piece.freedom]
            if len(set(values)) > 1:
                raise SceneError(
                    f"Joint {joint.name!r}: a ball has the same {field} about all axes in MJCF, got {values}; make "
                    f"them equal, or make it three revolute joints"
                )
    place = robot.coordinates[joint.name]
    return WrittenJoint(
        joint, child, None if up < 0 else scene.rigid[up], pieces, robot.start[place],
        robot.start_velocity[robot.velocities[joint.name]], place,
    )  # fmt: skip


def _pieces(joint: Joint, child: RigidBody, scene: Scene) -> tuple[FileJoint, ...]:
    if joint.kind == "free" and _is_free_body(joint, child, scene):
        return (FileJoint(joint.name, "free", np.eye(3)[2], 0),)
    chain = JOINTS[joint.kind].chain
    names = distinct((f"{joint.name}/{_word(chain, i)}" for i in range(len(chain))), set())
    return tuple(
        FileJoint(joint.name if len(chain) == 1 else name, _TYPES[part.type], part.direction(joint.axis), i)
        for i, (name, part) in enumerate(zip(names, chain, strict=True))
    )


def _word(chain: Sequence[ElementaryJoint], i: int) -> str:
    """Suffix of the name of joint `i` of `chain`: the axis of a translation, ``angle`` or ``rotation``."""
    part = chain[i]
    if part.type == "prismatic":
        return part.axis or "length"
    several = sum(other.type == "revolute" for other in chain) > 1
    return "rotation" if part.type == "ball" else f"angle_{part.axis or 'axis'}" if several else "angle"


def _is_free_body(joint: Joint, child: RigidBody, scene: Scene) -> bool:
    """Whether a free joint of the scene can be written as MuJoCo's free joint.

    The coordinates of MuJoCo's free joint are the pose of the body in the world. The damping and the armature of this
    joint are the same for all velocities and refer to the origin of the body, and it has no spring with a given rest
    pose.
    """
    motors = [m for m in scene.actuators if isinstance(m, Torque | Servo) and m.joint == joint.name]
    if joint.parent is not None or any(joint.stiffness) or any(isinstance(m, Servo) for m in motors):
        return False
    if not (motors or any(joint.damping) or any(joint.armature)):
        return True
    uniform = len(set(joint.damping)) == len(set(joint.armature)) == 1
    return uniform and math.dist(joint.position, child.position) == 0.0
