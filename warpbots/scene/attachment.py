"""How bodies hang together."""

import numpy as np

from warpbots.scene.record import SceneError, record

__all__ = ["Attachment"]


@record
class Attachment:
    """Two bodies that share points.

    One point lets them turn about it: a hinge in 2D, a ball joint in 3D. Two make a hinge in 3D and a weld in 2D; three
    that are not in line weld in 3D.

    Attributes:
        name: Name of the attachment, unique in the scene.
        first: Name of a body.
        second: Name of another one.
        points: Where they meet at rest [m], shape (n, dim), n >= 1; the matter of both that is nearest moves there.

    Raises:
        SceneError: The bodies are the same, or there are no points or two at one place.
    """

    name: str
    first: str
    second: str
    points: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        points = self.points
        if self.first == self.second:
            raise SceneError(f"Attachment {self.name!r}: it attaches {self.first!r} to itself; name two bodies")
        if {len(p) for p in points} not in ({2}, {3}):
            raise SceneError(f"Attachment {self.name!r}: points must be at least one of one space, got {points}")
        if len(np.unique(points, axis=0)) < len(points):
            raise SceneError(f"Attachment {self.name!r}: two of its points are at one place, got {points}")
