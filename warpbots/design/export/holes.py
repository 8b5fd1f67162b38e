"""Holes in printed parts: for the axles of joints, and for tendons."""

import dataclasses

import numpy as np

from warpbots.scene import SceneError
from warpbots.scene.record import record
from warpbots.scene.shapes.field_checks import assign, finite_array, positive

__all__ = ["AxleHole", "Drilled", "TendonChannel"]


@record
class AxleHole:
    """A round hole along the axis of a joint, through the parent and the child of the joint.

    The hole goes through the whole child along the axis. In the parent it goes through the walls beside the child: all
    walls between the two ends of the hole in the child, and the next wall beyond each end. The facets of the hole lie
    outside the circle, so that an axle of the given diameter passes.

    Attributes:
        joint: Name of a revolute or prismatic joint.
        diameter: Diameter of the axle [m].
        clearance: Increase of the diameter in the child, which turns on the axle [m].
        grip: Decrease of the diameter in the parent, which holds the axle [m]; negative for a loose fit.
        length: Length of the hole, of which one half lies on each side of the origin of the joint [m]; None for a hole
            through the walls described above.
        fastener: Name of the kind of axle, which the report counts.

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
    """A channel for a tendon: all points within half a diameter of a polyline are removed from a body.

    The ends of the channel are round; if the polyline ends on the surface, the channel is open at this end.

    Attributes:
        body: Name of the body.
        points: Corners of the polyline in the frame of the body [m], shape (n, 3), at least two.
        diameter: Diameter of the channel [m].
        name: Name of the tendon in the report.

    Raises:
        SceneError: There are fewer than two points, two successive points coincide, or a value is out of range.
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
    """The cut of a hole in a part.

    Attributes:
        hole: The axle hole or tendon channel to which the cut belongs.
        part: Name of the part.
        diameter: Diameter of the hole [mm].
        volume: Removed volume [mm^3].
        start: Start of an axle hole along the axis, measured from the origin of the joint [mm]; 0 for a channel.
        end: End of an axle hole, measured as `start` [mm]; length of the polyline for a channel [mm].
    """

    hole: AxleHole | TendonChannel
    part: str
    diameter: float
    volume: float
    start: float
    end: float
