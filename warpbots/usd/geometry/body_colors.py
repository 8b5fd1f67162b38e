"""The colour of a body as ``primvars:displayColor``, also if the body has none of its own.

Such a body is shown in a colour of the palette of its scene, and custom data of the attribute say so. They are void as
soon as somebody changes the colour to one outside the palette.
"""

from collections.abc import Iterable

import numpy as np
from pxr import Usd

from warpbots.scene.color import in_range, within_range
from warpbots.scene.palette import RIGID, SOFT
from warpbots.usd.stage.applied_schemas import MOTION_API
from warpbots.usd.stage.attributes import authored, create, get, put, same, schemas
from warpbots.usd.stage.exact_fields import EXACT
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import START, StageUnits

__all__ = ["keep_color", "read_color", "shows_color", "write_color"]

_Color = tuple[float, float, float]

_PALETTE = "warpbots:palette"
"""Key of the custom data of a colour that the body does not own."""


def read_color(prims: Iterable[Usd.Prim], sets: str, frame: StageUnits, note: Note) -> _Color | None:
    """The own colour of a body, from the first of `prims` that has one colour; None if it has no colour of its own.

    USD allows colours brighter than a screen; they are read as colours of the same hue in [0, 1].

    Args:
        prims: The prim of the body and its shapes.
        sets: Name of the row of the schema, "SoftBody.color" or "RigidBody.color".
        frame: Units and axes of the stage.
        note: Called with a prim and a sentence if its colour is not in [0, 1].
    """
    name = rows(sets)[0].name
    for prim in prims:
        exact = prim.GetAttribute(EXACT + name).Get() if authored(prim, EXACT + name) else None
        if MOTION_API in schemas(prim) and exact is not None:  # results are drawn in other colours
            return tuple(exact) or None
        if authored(prim, name) and len(prim.GetAttribute(name).Get(START)) == 1:
            color = get(prim, sets, frame)
            if prim.GetAttribute(name).GetCustomDataByKey(_PALETTE) and _in_palette(color):
                return None
            shown = within_range(color)
            if not in_range(color):
                note(prim, f"{name} {color} is not in [0, 1] and is read as {_rounded(shown)}, of the same hue")
            return shown
    return None


def write_color(prim: Usd.Prim, sets: str, own: _Color | None, shown: _Color, frame: StageUnits) -> None:
    """Author the colour `shown` of the body `prim`, and whether it is the colour `own` of the body."""
    put(prim, sets, shown, frame)
    if own is None:
        prim.GetAttribute(rows(sets)[0].name).SetCustomDataByKey(_PALETTE, True)


def keep_color(prim: Usd.Prim, sets: str, own: _Color | None) -> None:
    """Store the own colour of a body beside the colours of a motion; an empty value if it has no colour of its own."""
    create(prim, EXACT + rows(sets)[0].name, "double[]", list(own or ()), uniform=True)


def shows_color(prim: Usd.Prim, sets: str, shown: _Color, frame: StageUnits) -> bool:
    """Whether the body `prim` is drawn in the colour `shown`, or in the colours of something else."""
    name = rows(sets)[0].name
    if not authored(prim, name) or len(prim.GetAttribute(name).Get(START)) != 1:
        return True
    return same(get(prim, sets, frame), shown)


def _rounded(color: _Color) -> _Color:
    return tuple(round(value, 3) for value in color)


def _in_palette(color: _Color) -> bool:
    return bool(np.isclose(np.array(SOFT + RIGID), color, rtol=0.0, atol=1e-6).all(axis=1).any())
