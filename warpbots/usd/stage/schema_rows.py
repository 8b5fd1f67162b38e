"""Rows of the table of attributes (`schema`): what a row says, their declaration and their use."""

import dataclasses
from typing import Any, NamedTuple

from warpbots.scene import SceneError
from warpbots.usd.stage.units import UNITS

__all__ = ["KINDS", "TABLE", "Row", "attributes_of", "declare", "rows"]

KINDS = {
    "text": ("string", "token"),
    "integer": ("int", "bool"),
    "number": ("double", "float"),
    "constant": ("double[]", "float[]"),
    "numbers": ("double[]", "float[]"),
    "color": ("color3f[]",),
    "table": ("double2[]",),
    "vector": ("double3", "vector3f"),
    "vectors": ("double3[]",),
    "point": ("double3", "point3f"),
    "points": ("double3[]", "point3f[]"),
    "local": (),
}
"""Kinds of rows, with the USD types that hold a value of each; any type if there are none."""


class Row(NamedTuple):
    """One row of the table: a USD attribute.

    Attributes:
        sets: The field of a class of `warpbots.scene` that the attribute sets, or a description of what else it sets.
        name: Name of the USD attribute.
        type: USD type of the attribute, one of the types of its kind.
        kind: The conversion of the value, a key of `KINDS`. A "number", "numbers" (an array)
            and a "constant" (an array of one number) are converted to SI units. A "vector" and "vectors" (an array) are
            also rotated from the axes of the prim; a "point" and "points" (an array) are transformed from the
            coordinates of the prim.
            "integer", "text", "color" and "table" (pairs of numbers) are not converted. A "local" value has no codec:
            the modules that read and write it convert it.
        unit: Unit of the value, a key of `warpbots.usd.stage.units.UNITS`.
        prim: The prim or the applied schema that has the attribute.
        origin: The specification or program that defines the name.
        default: Value if nothing is authored; `...` if there is no default.
        written: Whether warpbots also writes the attribute.
        uniform: Whether its schema makes it uniform (not animated); all attributes of warpbots are uniform.
        reader: The module of `warpbots.usd` that reads the attribute.
        writer: The module of `warpbots.usd` that writes the attribute; "" if no module does.
    """

    sets: str
    name: str
    type: str
    kind: str
    unit: str
    prim: str
    origin: str
    default: Any = ...
    written: bool = True
    uniform: bool = False
    reader: str = ""
    writer: str = ""


TABLE: list[Row] = []
"""All attributes, in the order in which they are declared."""

_ROWS: dict[str, tuple[Row, ...]] = {}


def declare(reader: str, *new: Row, writer: str | None = None) -> None:
    """Add rows to the table.

    Args:
        reader: The module of `warpbots.usd` that reads these attributes.
        *new: The rows. If several rows have the same `sets`, the first one whose attribute the file authors is used.
        writer: The module that writes these attributes; None for `reader`.

    Raises:
        SceneError: The kind or unit of a row is unknown, its type does not hold its kind, or another row has the same
            attribute of the same prim. A row that is declared once more, as by a cell of a notebook, is no fault.
    """
    for row in new:
        by = reader if writer is None else writer
        complete = row._replace(reader=reader, writer=by if row.written else "")
        if complete in TABLE:
            continue
        _refuse_wrong(complete)
        TABLE.append(complete)
        _ROWS[row.sets] = (*_ROWS.get(row.sets, ()), complete)


def _refuse_wrong(row: Row) -> None:
    """Raise a `SceneError` if a row contradicts itself or another row."""
    who, units = f"Row {row.sets!r}, {row.name}", (*UNITS, "kg/m^dim")
    if row.kind not in KINDS:
        raise SceneError(f"{who}: kind must be one of {', '.join(KINDS)}, got {row.kind!r}")
    if KINDS[row.kind] and row.type not in KINDS[row.kind]:
        raise SceneError(
            f"{who}: type of the kind {row.kind!r} must be one of {', '.join(KINDS[row.kind])}, got {row.type!r}"
        )
    if row.kind != "local" and row.unit not in units:
        raise SceneError(
            f"{who}: unit must be one of {', '.join(units)}, got {row.unit!r}; add yours to UNITS in usd/stage/units.py"
        )
    for other in TABLE:
        if (other.name, other.prim) == (row.name, row.prim):
            remedy = "declare it once; a notebook with a corrected row must be restarted"
            remedy = remedy if other.sets == row.sets else "give it another name"
            raise SceneError(f"{who}: attribute {row.name} of {row.prim} already holds {other.sets}; {remedy}")


def rows(sets: str) -> tuple[Row, ...]:
    """The rows that set `sets`, in the order in which they are read."""
    return _ROWS[sets]


def attributes_of(cls: type, *otherwise: str) -> dict[str, str]:
    """The `Row.sets` of each field of a class: ``<class>.<field>``, or ``<field>`` if several classes share the rows.

    Args:
        cls: A dataclass of a scene.
        *otherwise: Fields that a file does not store as an attribute.

    Raises:
        SceneError: A field has no row; a file would lose it.
    """
    found = {f.name: f"{cls.__name__}.{f.name}" for f in dataclasses.fields(cls) if f.name not in otherwise}
    found = {name: sets if sets in _ROWS else name for name, sets in found.items()}
    for name, sets in found.items():
        if sets not in _ROWS:
            raise SceneError(
                f"{cls.__name__}.{name}: no attribute of a file holds it; declare a Row in usd/stage/schema.py, as "
                f"CONTRIBUTING says"
            )
    return found
