"""Attachments between soft bodies."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.record import SceneError, record

__all__ = ["Attachment"]


@record
class Attachment:
    """Two soft bodies that are joined at common points.

    One point is a hinge in 2D and a ball joint in 3D. Two points are a weld in 2D and a hinge in 3D; three points that
    are not collinear are a weld in 3D.

    Attributes:
        name: Name of the attachment, unique in the scene.
        first: Name of a body.
        second: Name of another body.
        points: Positions of the common points at rest [m], shape (n, dim), n >= 1. `MassSpring` moves the nearest mass
            of each body to each point, and `ProjectiveDynamics` ties the bodies together at each point without moving
            nodes.

    Raises:
        SceneError: The bodies are the same, there are no points, or two points coincide.
    """

    name: str
    first: str
    second: str
    points: Sequence[Sequence[float]]

    def __post_init__(self):
        points = self.points
        if self.first == self.second:
            raise SceneError(f"Attachment {self.name!r}: it attaches {self.first!r} to itself; name two bodies")
        if {len(p) for p in points} not in ({2}, {3}):
            raise SceneError(f"Attachment {self.name!r}: points must be at least one of one space, got {points}")
        if len(np.unique(points, axis=0)) < len(points):
            raise SceneError(f"Attachment {self.name!r}: two of its points are at one place, got {points}")
