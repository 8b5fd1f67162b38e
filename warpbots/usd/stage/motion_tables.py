"""Tables of prescribed motions as attributes of the obstacle or the constraint that they move."""

import numpy as np
from pxr import Usd

from warpbots.scene import PrescribedMotion
from warpbots.usd.stage.attributes import authored, get, put
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.schema import attributes_of, rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["has_table", "read_table", "write_table"]

_FIELDS = attributes_of(PrescribedMotion)
_ANGLES = "rotations in 2D"
_NAMES = [rows(sets)[0].name for sets in (*_FIELDS.values(), _ANGLES)]


def has_table(prim: Usd.Prim) -> bool:
    """Whether `prim` has an attribute of a table."""
    return any(authored(prim, name) for name in _NAMES)


def read_table(prim: Usd.Prim, frame: StageUnits) -> PrescribedMotion | None:
    """The prescribed motion in the attributes of `prim`, or None if it has none of them.

    Raises:
        SceneError: The times of the poses are missing, or the table is not valid.
    """
    if not has_table(prim):
        return None
    found = {field: get(prim, sets, frame) for field, sets in _field_rows(frame).items()}
    if found["times"] is None:
        raise LocatedError(prim.GetPath(), f"a prescribed motion needs {rows(_FIELDS['times'])[0].name} [s]")
    arrays = {k: None if found[k] is None else np.array(found[k]) for k in ("times", "positions", "rotations")}
    return PrescribedMotion(**found | arrays)


def write_table(prim: Usd.Prim, motion: PrescribedMotion | None, frame: StageUnits) -> None:
    """Author `motion` as attributes of `prim` and remove the attributes of another motion; None only removes."""
    for sets in (*_FIELDS.values(), _ANGLES):
        put(prim, sets, None, frame)
    if motion is not None:
        for field, sets in _field_rows(frame).items():
            put(prim, sets, getattr(motion, field), frame)


def _field_rows(frame: StageUnits) -> dict[str, str]:
    """The `Row.sets` of each field: rotations are vectors in 3D, and angles in 2D."""
    return _FIELDS | ({"rotations": _ANGLES} if frame.dim == 2 else {})
