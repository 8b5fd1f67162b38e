"""A warning if slender bodies have too few cells across their thickness to bend correctly."""

from collections.abc import Callable

import numpy as np

from warpbots.contact import width, width_within
from warpbots.materials import FLUIDS
from warpbots.scene import Points, Scene, Sheet, SoftBody, Truss, parts_of
from warpbots.user_warning import warn_user

__all__ = ["SLENDER", "warn_of_thin_bodies"]

SLENDER = 2.9
"""Ratio of extent to thickness above which a part of a body counts as slender, so that bending matters [1]."""


def warn_of_thin_bodies(
    scene: Scene, size: float, fault: Callable[[float], str | None], option: str, enough: float
) -> None:
    """Warn about the thinnest slender body of a scene that has too few cells across its thickness.

    Args:
        scene: The scene.
        size: Size of cells [m].
        fault: Function that takes the number of cells across the thickness of a body, and returns in words what is
            inaccurate with so few cells; None if nothing is, as with any larger number.
        option: Name of the solver option for the cell size.
        enough: Number of cells across a body that suffices.
    """

    def wrong(t: float) -> str | None:
        return fault(t / size)

    found = [(t, body) for body in scene.soft if (t := _slender_width(body, wrong)) is not None]
    if not found:
        return
    t, body = min(found, key=lambda each: each[0])
    others = f" ({len(found) - 1} more bodies likewise)" if len(found) > 1 else ""
    warn_user(
        f"SoftBody {body.name!r}: {t / size:.2g} cells of {size:.2g} m fill its thickness of {t:.2g} m, and {wrong(t)}"
        f"{others}; use {option} of at most {t / enough:.2g} m"
    )


def _slender_width(body: SoftBody, wrong: Callable[[float], str | None]) -> float | None:
    """Width of the thinnest part of a slender elastic body [m] if something is `wrong` with it, else None.

    None for points, sheets and trusses, too.
    """
    soft = any(m.law in FLUIDS or m.plasticity is not None for m in body.materials)
    parts = parts_of(body.shape)
    if soft or any(isinstance(part, Points | Sheet | Truss) for part in parts):
        return None
    lower, upper = body.shape.bounds
    extent, thinnest = float(np.max(upper - lower)), np.inf
    for alone, part in sorted(((width(part), part) for part in parts), key=lambda each: each[0]):
        # other parts can only thicken a part, and width_within takes long
        if alone >= thinnest or extent < SLENDER * alone or wrong(alone) is None:
            break
        thinnest = min(thinnest, alone if len(parts) == 1 else width_within(part, body.shape))
    return thinnest if extent >= SLENDER * thinnest and wrong(thinnest) is not None else None
