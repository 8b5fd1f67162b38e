"""Rectangles in which components join."""

import dataclasses
import math

from warpbots.scene.field_types import conform

__all__ = ["Section"]


@dataclasses.dataclass(frozen=True)
class Section:
    """A rectangle perpendicular to the x axis of a component, in which another component joins this component.

    Attributes:
        width: Size of the rectangle along y [m].
        height: Size of the rectangle along z [m].

    Raises:
        ValueError: A size is not positive.
    """

    width: float
    height: float

    def __post_init__(self):
        conform(self)
        if not (0.0 < self.width < math.inf and 0.0 < self.height < math.inf):
            raise ValueError(f"Section: width and height must be positive, got {self.width:g} and {self.height:g} m")
