"""Primitive shapes."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.record import SceneError, direction, point, record
from warpbots.scene.shapes.field_checks import assign, positive

__all__ = ["Box", "Capsule", "Cylinder", "HalfSpace", "Sphere"]


@record
class Box:
    """Axis-aligned box (a rectangle in 2D).

    Attributes:
        lower: Corner with the smallest coordinates [m], shape (dim,).
        upper: Corner with the largest coordinates [m], shape (dim,).
    """

    lower: Sequence[float]
    upper: Sequence[float]

    def __post_init__(self):
        assign(self, lower=point(self.lower, "Box.lower"), upper=point(self.upper, "Box.upper"))
        if len(self.lower) != len(self.upper):
            raise SceneError(f"Box: lower {self.lower} and upper {self.upper} must have the same number of coordinates")
        if not all(a < b for a, b in zip(self.lower, self.upper, strict=True)):
            raise SceneError(f"Box: every coordinate of lower {self.lower} must be below upper {self.upper}")

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return np.array(self.lower), np.array(self.upper)


@record
class Sphere:
    """Ball (a disc in 2D).

    Attributes:
        center: Centre of the ball [m], shape (dim,).
        radius: Radius of the ball [m].
    """

    center: Sequence[float]
    radius: float

    def __post_init__(self):
        assign(self, center=point(self.center, "Sphere.center"), radius=positive(self.radius, "Sphere.radius"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return np.array(self.center) - self.radius, np.array(self.center) + self.radius


@record
class Capsule:
    """All points within `radius` of the segment from `start` to `end`.

    Attributes:
        start: One end of the segment [m], shape (dim,).
        end: Other end of the segment [m], shape (dim,).
        radius: Radius of the capsule [m].
    """

    start: Sequence[float]
    end: Sequence[float]
    radius: float

    def __post_init__(self):
        assign(self, **_axis(self, "Capsule"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        ends = np.array([self.start, self.end])
        return ends.min(0) - self.radius, ends.max(0) + self.radius


@record
class Cylinder:
    """Solid cylinder with flat ends, whose axis is the segment from `start` to `end` (an oriented rectangle in 2D).

    Attributes:
        start: Centre of one end face [m], shape (dim,).
        end: Centre of the other end face [m], shape (dim,).
        radius: Radius of the cylinder [m].
    """

    start: Sequence[float]
    end: Sequence[float]
    radius: float

    def __post_init__(self):
        assign(self, **_axis(self, "Cylinder"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        ends = np.array([self.start, self.end])
        axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        reach = self.radius * np.sqrt(np.maximum(0.0, 1.0 - axis**2))
        return ends.min(0) - reach, ends.max(0) + reach


def _axis(shape: "Capsule | Cylinder", name: str) -> dict:
    start, end = point(shape.start, f"{name}.start"), point(shape.end, f"{name}.end")
    if len(start) != len(end) or start == end:
        raise SceneError(f"{name}: start {start} and end {end} must be two different points of the same dimension")
    return {"start": start, "end": end, "radius": positive(shape.radius, f"{name}.radius")}


@record
class HalfSpace:
    """The half-space of all points x with normal . (x - point) <= 0, for floors, walls and regions.

    Attributes:
        point: A point of the boundary plane [m], shape (dim,).
        normal: Outward normal of the plane, shape (dim,); normalised on construction.
    """

    point: Sequence[float]
    normal: Sequence[float]

    def __post_init__(self):
        origin, normal = point(self.point, "HalfSpace.point"), direction(self.normal, "HalfSpace.normal")
        if len(origin) != len(normal):
            raise SceneError(f"HalfSpace: normal {normal} must have the dimension of point {origin}")
        assign(self, point=origin, normal=normal)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """A half-space has no bounds: -inf and +inf, each of shape (dim,)."""
        return np.full(len(self.point), -np.inf), np.full(len(self.point), np.inf)
