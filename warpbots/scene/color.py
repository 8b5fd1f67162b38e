"""The range of colours of bodies, and colours of files that leave it."""

from collections.abc import Sequence
from typing import Any

from warpbots.scene.record import SceneError

__all__ = ["in_range", "require_color", "within_range"]

_ROUNDING = 1e-6
"""Excess over the range that single precision leaves in colours that were computed, for example by interpolation."""


def in_range(color: Sequence[float]) -> bool:
    """Whether red, green and blue are in [0, 1], apart from rounding."""
    return all(-_ROUNDING <= value <= 1.0 + _ROUNDING for value in color)


def require_color(body: Any) -> None:
    """Check the colour of a body, and remove an excess over the range that is only rounding.

    Raises:
        SceneError: Red, green or blue is not in [0, 1].
    """
    if body.color is None:
        return
    if in_range(body.color):
        object.__setattr__(body, "color", within_range(body.color))
    else:
        raise SceneError(
            f"{type(body).__name__} {body.name!r}: color must be red, green and blue in [0, 1], got {body.color}; "
            f"divide values from 0 to 255 by 255"
        )


def within_range(color: Sequence[float]) -> tuple[float, ...]:
    """A colour of the same hue with components in [0, 1]; a colour in this range is returned unchanged.

    Values above 1 are brighter than a screen, or count from 0 to 255; all are divided by the largest of them. Values
    below 0 are colours that a screen cannot show; they become 0.
    """
    brightest = max(1.0, *color)
    return tuple(max(0.0, value) / brightest for value in color)
