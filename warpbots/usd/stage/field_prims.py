"""Reads and writes fields of a scene: solver parameters as arrays of double precision, in SI units and scene axes.

Each field is a `Scope` with a schema of warpbots. Other programs see a field only as colours of a trajectory: see
`warpbots.quantities`.
"""

import numpy as np
from pxr import Sdf, Usd

from warpbots.scene import Field, SceneError
from warpbots.usd.stage.applied_schemas import FIELD_API
from warpbots.usd.stage.attributes import apply, authored, clear, create
from warpbots.usd.stage.exact_fields import EXACT, FIELD_ARRAYS
from warpbots.usd.stage.faults import Faults, LocatedError, attempt
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.prim_editing import Target, editable, rename

__all__ = ["read_fields", "write_field"]


def read_fields(found: Inventory, faults: Faults) -> list[Field | None]:
    """All fields of the stage.

    Args:
        found: The prims of the stage.
        faults: Receives the error of each field that cannot be read; the result has None for such a field.
    """
    return [attempt(faults, _read_field, prim, name) for name, prim in found.fields.items()]


def _read_field(prim: Usd.Prim, name: str) -> Field:
    arrays = {array: _load(prim, EXACT + array) for array in FIELD_ARRAYS if authored(prim, EXACT + array)}
    if "values" not in arrays:
        raise LocatedError(prim.GetPath(), f"a prim with {FIELD_API} needs the attribute {EXACT}values")
    try:
        return Field(name, **arrays)
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def _load(prim: Usd.Prim, name: str) -> np.ndarray:
    values = np.asarray(prim.GetAttribute(name).Get(), dtype=np.float64)
    size = tuple(prim.GetAttribute(f"{name}:size").Get() or ()) if authored(prim, f"{name}:size") else values.shape
    if int(np.prod(size)) != values.size:
        raise LocatedError(
            prim.GetPath(), f"{name} must have the shape {name}:size = {size}, got {values.size} numbers"
        )
    return values.reshape(size)


def write_field(target: Target, existing: Usd.Prim | None, field: Field) -> Sdf.Path:
    """Author `field`; arguments and result are as for `warpbots.usd.soft.soft_bodies.write_body`."""
    if existing is not None:
        prim = editable(existing)
    else:
        prim = target.stage.DefinePrim(target.path("Fields", field.name), "Scope")
        rename(prim, field.name)
    apply(prim, FIELD_API)
    for array in FIELD_ARRAYS:
        name, values = EXACT + array, getattr(field, array)
        clear(prim, name)
        clear(prim, f"{name}:size")
        if values is not None:
            create(prim, name, "double[]", values.ravel(), uniform=True)
            if values.ndim != 1:
                create(prim, f"{name}:size", "int[]", list(values.shape), uniform=True)
    return prim.GetPath()
