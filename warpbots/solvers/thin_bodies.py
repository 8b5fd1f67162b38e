"""A warning of slender bodies that have too few cells across their thickness to bend correctly."""

from collections.abc import Callable

import numpy as np

from warpbots.contact import width
from warpbots.materials import FLUIDS
from warpbots.scene import Points, Scene, Sheet, SoftBody, Truss, parts_of
from warpbots.user_warning import warn_user

__all__ = ["SLENDER", "warn_of_thin_bodies"]

SLENDER = 2.9
"""Ratio of extent to thickness above which a part counts as slender: it bends [1]."""


def warn_of_thin_bodies(
    scene: Scene, size: float, fault: Callable[[float], str | None], option: str, enough: float
) -> None:
    """Warn once for a scene, of its thinnest slender body.

    Args:
        scene: The scene.
        size: Size of cells [m].
        fault: Function from the number of cells across a body to what is wrong with it; None for nothing.
        option: Name of the solver option for the cell size.
        enough: Number of cells across a body from which nothing is wrong.
    """
    found = [(t, body) for body in scene.soft if (t := _slender_width(body)) is not None]
    said = [(t, body, words) for t, body in found if (words := fault(t / size)) is not None]
    if not said:
        return
    t, body, words = min(said, key=lambda each: each[0])
    others = f" ({len(said) - 1} more bodies likewise)" if len(said) > 1 else ""
    warn_user(
        f"SoftBody {body.name!r}: {t / size:.2g} cells of {size:.2g} m fill its thickness of {t:.2g} m, and {words}"
        f"{others}; use {option} of at most {t / enough:.2g} m"
    )


def _slender_width(body: SoftBody) -> float | None:
    """Width of the thin part of a body [m]; None if it is not slender, or not an elastic solid."""
    soft = any(m.law in FLUIDS or m.plasticity is not None for m in body.materials)
    if soft or any(isinstance(part, Points | Sheet | Truss) for part in parts_of(body.shape)):
        return None
    lower, upper = body.shape.bounds
    t = width(body.shape)
    return t if float(np.max(upper - lower)) >= SLENDER * t else None
