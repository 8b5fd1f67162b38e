"""Refusal of solids that are too thin for their samples."""

import numpy as np

from warpbots.contact.sample_grid import SampleGrid, lost_surface
from warpbots.scene import SceneError, Shape
from warpbots.user_warning import warn_user

__all__ = ["refuse_thin_walls"]

_GONE, _THIN = 0.5, 0.1
"""Fractions of the surface of a solid whose loss between samples is refused, and causes a warning."""


def refuse_thin_walls(grid: SampleGrid, coefficients: np.ndarray, shape: Shape, name: str) -> None:
    """Raise an error if most of the surface of a thin sampled solid is lost between samples; warn if a part is lost.

    Args:
        grid: Samples of the solid.
        coefficients: Coefficients of the splines through the samples [m], shape (n,).
        shape: Shape of the solid.
        name: Name of the solid.

    Raises:
        SceneError: Most of the surface of the solid is lost.
    """
    lost = lost_surface(grid, coefficients.reshape(grid.counts), shape)
    words = (
        f"{type(shape).__name__} of {name!r}: {lost:.0%} of its surface cannot be in contact, because it is thinner "
        f"there than the distance of its samples, {grid.spacing:.2g} m; use Articulated(samples=...) with more of "
        f"them, thicker walls, or a Union of boxes and other closed forms"
    )
    if lost > _GONE:
        raise SceneError(words)
    if lost > _THIN:
        warn_user(words)
