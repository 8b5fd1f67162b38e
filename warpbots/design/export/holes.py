"""Holes in printed parts: for the axles of joints, and for tendons."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.solids import MM, welded
from warpbots.scene import Joint, RigidBody, Scene, SceneError
from warpbots.scene.record import record
from warpbots.scene.shapes.field_checks import assign, finite_array, positive

if TYPE_CHECKING:
    from manifold3d import Manifold

__all__ = ["AxleHole", "Drilled", "TendonChannel", "drill"]

_SIDES, _ARCS = 64, 32
"""Sides of a round hole, and of the ball at a bend of a channel."""

_BEYOND = 0.01
"""How much longer a hole is at both ends, so that one which ends on a face leaves no film there [mm]."""


@record
class AxleHole:
    """A round hole along the axis of a joint, through its parent and its child.

    The facets of the hole lie outside of the circle: an axle of that diameter passes.

    Attributes:
        joint: Name of a revolute or prismatic joint.
        diameter: Diameter of the axle [m].
        clearance: By how much the hole in the child, which turns on the axle, is wider [m].
        grip: By how much the hole in the parent, which holds the axle, is narrower [m]; negative for a loose fit.
        length: Length of the hole, half to each side of the origin of the joint [m]; None for all the way.
        fastener: What the axle is, as the report counts it.

    Raises:
        SceneError: A value is out of range.
    """

    joint: str
    diameter: float
    clearance: float = 2e-4
    grip: float = 0.0
    length: float | None = None
    fastener: str = "axle"

    def __post_init__(self):
        what = f"AxleHole at {self.joint!r}"
        positive(self.diameter, f"{what}: diameter")
        if self.clearance < 0.0:
            raise SceneError(f"{what}: clearance must not be negative [m], got {self.clearance:g}")
        if not -self.diameter < self.grip < self.diameter:
            raise SceneError(f"{what}: grip must be smaller than the diameter {self.diameter:g} m, got {self.grip:g}")
        if self.length is not None:
            positive(self.length, f"{what}: length")


@record
class TendonChannel:
    """All points within half a diameter of a polyline, taken out of a body.

    Its ends are round: where the polyline ends on the surface, the channel opens there.

    Attributes:
        body: Name of the body.
        points: Corners of the polyline in the frame of the body [m], shape (n, 3), at least two.
        diameter: Diameter [m].
        name: Name of the tendon, as the report gives it.

    Raises:
        SceneError: There are fewer than two points, two that follow one another are one, or a value is out of range.
    """

    body: str
    points: np.ndarray
    diameter: float
    name: str = "tendon"

    def __post_init__(self):
        what = f"TendonChannel {self.name!r} in {self.body!r}"
        positive(self.diameter, f"{what}: diameter")
        points = finite_array(self.points, f"{what}: points", 2)
        if points.shape[1] != 3 or len(points) < 2:
            raise SceneError(f"{what}: points must have shape (n, 3) with n of at least 2, got {points.shape}")
        if not (np.linalg.norm(np.diff(points, axis=0), axis=1) > 0.0).all():
            raise SceneError(f"{what}: two points that follow one another must differ, got {points.tolist()}")
        assign(self, points=points)


@dataclasses.dataclass(frozen=True)
class Drilled:
    """What a hole took out of a part.

    Attributes:
        hole: The hole.
        part: Name of the part.
        diameter: Diameter of the hole [mm].
        volume: Volume that it took away [mm^3].
        start: For an axle, where its hole begins along the axis, from the origin of the joint [mm]; for a channel 0.
        end: Where it ends; for a channel the length of its polyline [mm].
    """

    hole: AxleHole | TendonChannel
    part: str
    diameter: float
    volume: float
    start: float
    end: float


def drill(
    solid: "Manifold", body: RigidBody, holes: Sequence[AxleHole | TendonChannel], scene: Scene
) -> tuple["Manifold", tuple[Drilled, ...]]:
    """A solid less its holes, and what each took away.

    Args:
        solid: Of the body, in its frame [mm].
        body: The body.
        holes: Holes of the whole scene.
        scene: The scene.

    Raises:
        SceneError: There is no such body or joint, a hole misses the part, or nothing of it is left.
    """
    joints = {j.name: j for j in scene.joints}
    done = []
    for hole in holes:
        if isinstance(hole, TendonChannel):
            if hole.body != body.name:
                continue
            cutter = _channel(hole)
        else:
            joint = joints[hole.joint]
            if body.name not in (joint.parent, joint.child):
                continue
            cutter = _bore(hole, joint, body, solid)
        done.append((hole, cutter))
    drilled = []
    for hole, cutter in done:
        taken = solid ^ cutter
        if not taken.volume() > 0.0:
            raise SceneError(f"{_named(hole)} misses the part {body.name!r}; move it, or leave it out")
        drilled.append(_drilled(hole, taken, body, joints))
    for _, cutter in done:
        solid = solid - cutter
    if not solid.volume() > 0.0:
        raise SceneError(f"RigidBody {body.name!r}: its holes leave nothing of it; make them narrower")
    return welded(solid) if done else solid, tuple(drilled)


def _named(hole: AxleHole | TendonChannel) -> str:
    if isinstance(hole, AxleHole):
        return f"AxleHole at {hole.joint!r}"
    return f"TendonChannel {hole.name!r}"


def _line(joint: Joint, body: RigidBody) -> tuple[np.ndarray, np.ndarray]:
    """Origin [mm] and axis of a joint in the frame of a body."""
    R = np.array(body.rotation)
    return MM * (np.array(joint.position) - body.position) @ R, np.array(joint.rotation) @ joint.axis @ R


def _width(hole: AxleHole, joint: Joint, body: RigidBody) -> float:
    """Diameter of an axle's hole in a body [mm]."""
    return MM * (hole.diameter + (hole.clearance if body.name == joint.child else -hole.grip))


def _bore(hole: AxleHole, joint: Joint, body: RigidBody, solid: "Manifold") -> "Manifold":
    origin, axis = _line(joint, body)
    corners = np.reshape(solid.bounding_box(), (2, 3))
    reach = np.linalg.norm(np.abs(corners - origin).max(axis=0)) + 1.0
    half = reach if hole.length is None else 0.5 * MM * hole.length
    return _cylinder(origin - half * axis, origin + half * axis, _width(hole, joint, body))


def _channel(channel: TendonChannel) -> "Manifold":
    from manifold3d import Manifold, OpType

    points, width = MM * channel.points, MM * channel.diameter
    tubes = [_cylinder(a, b, width) for a, b in zip(points[:-1], points[1:], strict=True)]
    ball = Manifold.sphere(0.5 * width, _ARCS)
    return Manifold.batch_boolean([*tubes, *(ball.translate(tuple(p)) for p in points)], OpType.Add)


def _cylinder(start: np.ndarray, end: np.ndarray, diameter: float) -> "Manifold":
    """A prism around a round cylinder, which its sides touch, a little longer."""
    import trimesh
    from manifold3d import Manifold

    length, radius = float(np.linalg.norm(end - start)), 0.5 * diameter / np.cos(np.pi / _SIDES)
    axis = (end - start) / length
    pose = trimesh.geometry.align_vectors((0.0, 0.0, 1.0), axis)
    pose[:3, 3] = start - _BEYOND * axis
    return Manifold.cylinder(length + 2.0 * _BEYOND, radius, radius, _SIDES).transform(pose[:3])


def _drilled(hole: AxleHole | TendonChannel, taken: "Manifold", body: RigidBody, joints: dict[str, Joint]) -> Drilled:
    if isinstance(hole, TendonChannel):
        length = MM * float(np.linalg.norm(np.diff(hole.points, axis=0), axis=1).sum())
        return Drilled(hole, body.name, MM * hole.diameter, taken.volume(), 0.0, length)
    joint = joints[hole.joint]
    origin, axis = _line(joint, body)
    along = (taken.to_mesh64().vert_properties[:, :3] - origin) @ axis
    return Drilled(hole, body.name, _width(hole, joint, body), taken.volume(), along.min(), along.max())
