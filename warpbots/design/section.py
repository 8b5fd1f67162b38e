"""Rectangles in which parts join."""

import dataclasses

__all__ = ["Section"]


@dataclasses.dataclass(frozen=True)
class Section:
    """A rectangle across the x axis of a part, in which it joins another one.

    Attributes:
        width: Its size along y [m].
        height: Its size along z [m].

    Raises:
        ValueError: It is not positive.
    """

    width: float
    height: float

    def __post_init__(self):
        if not (self.width > 0.0 and self.height > 0.0):
            raise ValueError(f"Section: width and height must be positive, got {self.width:g} and {self.height:g} m")
