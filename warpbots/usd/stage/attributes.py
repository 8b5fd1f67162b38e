"""Conversion of single values between fields of a scene and attributes of prims, without losing a bit.

Most standard attributes are single precision. Two rules preserve the values of a scene:

- A single-precision number is read as the decimal number that it prints as: 0.3 in a file is 0.3 in the scene, not
  0.30000001192.
- A value that the attribute still does not reproduce is also stored as ``warpbots:exact:<name>`` in double precision,
  in SI units and scene axes. This exact value is used only if it agrees with the standard attribute to single
  precision, so that an edit of the standard attribute in another program takes effect.
"""

import functools
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Tf, Usd

from warpbots.scene import SceneError
from warpbots.usd.stage.applied_schemas import MOTION_API
from warpbots.usd.stage.codecs import CODECS, Conversion
from warpbots.usd.stage.exact_fields import EXACT
from warpbots.usd.stage.faults import reason_of
from warpbots.usd.stage.ledger import mark_read
from warpbots.usd.stage.schema import OWN, Row, rows
from warpbots.usd.stage.units import START, StageUnits

__all__ = [
    "apply",
    "at_rest",
    "authored",
    "axis_number",
    "clear",
    "create",
    "enabled",
    "get",
    "get_row",
    "number",
    "put",
    "put_row",
    "same",
    "schemas",
    "targets_of",
    "value_of",
]

_AGREE = 1e-6
"""Largest relative difference between a value and its exact value: a little more than rounding to float32 (6e-8)."""


def get(prim: Usd.Prim, sets: str, frame: StageUnits) -> Any:
    """The value of the first row of `sets` whose attribute is authored on `prim`, or else the default.

    Returns:
        A float, an int, a text, or a tuple of floats of shape (dim,) or (n, dim), in SI units and scene axes.
    """
    said = [row for row in rows(sets) if authored(prim, row.name)]
    if not said:
        return rows(sets)[0].default
    first = _read(prim, said[0], frame)
    value = first if isinstance(first, str) else _exact(prim, said[0], first)
    mark_read(prim, *(row.name for row in said if row is said[0] or same(_read(prim, row, frame), first)))
    return value


def put(prim: Usd.Prim, sets: str, value: Any, frame: StageUnits) -> None:
    """Author `value` on `prim` for the rows of `sets`, with an exact value if needed; None removes the value."""
    for row in rows(sets):
        put_row(prim, row, value if row.written else None, frame, exactly=row is rows(sets)[0])


def get_row(prim: Usd.Prim, row: Row, frame: StageUnits) -> Any:
    """The authored value of one row on `prim`, as `get`."""
    mark_read(prim, row.name)
    return _exact(prim, row, _read(prim, row, frame))


def put_row(prim: Usd.Prim, row: Row, value: Any, frame: StageUnits, exactly: bool = True) -> None:
    """Author `value` on `prim` for one row, with an exact value if needed and `exactly` is set; None removes it.

    Raises:
        SceneError: The attribute cannot hold the value, because the row describes another type or kind.
    """
    clear(prim, row.name)
    clear(prim, EXACT + row.name)
    if value is None:
        return
    try:
        said = CODECS[row.kind].encode(value, row, _conversion(prim, frame))
        create(prim, row.name, row.type, said, row.uniform or row.origin == OWN)
    except (Tf.ErrorException, LookupError, TypeError, ValueError) as error:
        raise SceneError(
            f"{prim.GetPath()}: {row.sets} = {value!r} cannot be stored as {row.type} {row.name} of the kind "
            f"{row.kind!r} ({reason_of(error)}); correct the type and the kind in its Row"
        ) from error
    if exactly and not isinstance(value, str) and not same(get_row(prim, row, frame), value):
        exact = np.asarray(value, dtype=np.float64)
        create(prim, EXACT + row.name, "double" if exact.ndim == 0 else "double[]", exact.ravel() if exact.ndim else
               float(exact), uniform=True)  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """Whether two numbers, tuples or arrays are equal to the last bit; None equals only None."""
    return (a is None) == (b is None) and np.array_equal(np.asarray(a), np.asarray(b))


def authored(prim: Usd.Prim, name: str) -> bool:
    """Whether the attribute `name` of `prim` has an authored value other than "engine default"."""
    attribute = prim.GetAttribute(name)
    if not attribute or not attribute.HasAuthoredValue():
        return False
    value = attribute.Get(START)
    # newton-usd-schemas and UsdPhysics write -inf for "engine default"
    return value is not None and not (isinstance(value, float) and value == -np.inf)


def value_of(prim: Usd.Prim, name: str, time: Usd.TimeCode = START) -> Any:
    """The value of the attribute `name` of `prim`, or None; the attribute is entered in the ledger as read."""
    mark_read(prim, name)
    attribute = prim.GetAttribute(name)
    return attribute.Get(time) if attribute else None


def targets_of(prim: Usd.Prim, name: str) -> list[Sdf.Path]:
    """Targets of the relationship `name` of `prim`, empty if there are none.

    The relationship is entered in the ledger as read.
    """
    mark_read(prim, name)
    link = prim.GetRelationship(name)
    return list(link.GetForwardedTargets()) if link else []


def enabled(prim: Usd.Prim, name: str) -> bool:
    """Whether the boolean attribute `name` of `prim` is true; it is true by default."""
    return not authored(prim, name) or bool(value_of(prim, name))


def number(prim: Usd.Prim, name: str) -> float | None:
    """The decimal number that the value of the attribute `name` of `prim` prints as, or None if it is not authored."""
    if not authored(prim, name):
        return None
    found = value_of(prim, name)
    single = prim.GetAttribute(name).GetTypeName() == Sdf.ValueTypeNames.Float
    return float(str(np.float32(found))) if single else float(found)


def axis_number(word: Any, what: str = "") -> int:
    """0, 1 or 2 for the axes X, Y and Z.

    Raises:
        SceneError: `word` is not an axis; the message begins with `what`.
    """
    if str(word) not in ("X", "Y", "Z"):
        raise SceneError(f"{what}its axis must be X, Y or Z, got {str(word)!r}")
    return "XYZ".index(str(word))


def create(prim: Usd.Prim, name: str, type_name: str, value: Any, uniform: bool = False) -> None:
    """Author an attribute, whether or not the plug-in that registers its schema is installed."""
    attribute = prim.GetAttribute(name)
    if not attribute:
        kind = Sdf.VariabilityUniform if uniform else Sdf.VariabilityVarying
        attribute = prim.CreateAttribute(name, Sdf.ValueTypeNames.Find(type_name), custom=False, variability=kind)
    attribute.Set(value)


def clear(prim: Usd.Prim, name: str) -> None:
    """Remove the value of the attribute `name`, even if it comes from a reference."""
    if authored(prim, name):
        prim.RemoveProperty(name)
    if authored(prim, name):  # it comes through a reference
        prim.GetAttribute(name).Block()


def apply(prim: Usd.Prim, *schemas: str) -> None:
    """Apply schemas by name, registered or not."""
    for schema in schemas:
        if schema not in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            prim.AddAppliedSchema(schema)


def schemas(prim: Usd.Prim) -> set[str]:
    """Names of the schemas applied to `prim`, registered or not."""
    return {*prim.GetPrimTypeInfo().GetAppliedAPISchemas(), *prim.GetAppliedSchemas()}


def at_rest(prim: Usd.Prim, name: str) -> Any:
    """The value of the attribute `name` of `prim`, or None.

    If `prim` shows results of a motion, the value is that without motion, at rest.
    """
    mark_read(prim, name)
    return _resting(prim, name)


def _resting(prim: Usd.Prim, name: str) -> Any:
    attribute = prim.GetAttribute(name)
    rest = attribute.Get(Usd.TimeCode.Default()) if attribute and MOTION_API in schemas(prim) else None
    return attribute.Get(START) if attribute and rest is None else rest


def _read(prim: Usd.Prim, row: Row, frame: StageUnits) -> Any:
    return CODECS[row.kind].decode(_resting(prim, row.name), row, _conversion(prim, frame))


def _conversion(prim: Usd.Prim, frame: StageUnits) -> Conversion:
    return Conversion(frame.factor, functools.partial(frame.matrix, prim), frame.lift, frame.drop)


def _exact(prim: Usd.Prim, row: Row, value: Any) -> Any:
    if not authored(prim, EXACT + row.name):
        return value
    exact, plain = np.asarray(prim.GetAttribute(EXACT + row.name).Get(), dtype=np.float64), np.asarray(value)
    if exact.size != plain.size:
        return value
    exact = exact.reshape(plain.shape)
    if not np.allclose(exact, plain, rtol=_AGREE, atol=_AGREE * np.abs(exact).max(initial=0.0)):
        return value
    return (
        float(exact)
        if exact.ndim == 0
        else tuple(map(tuple, exact.tolist()))
        if exact.ndim == 2
        else tuple(exact.tolist())
    )


def author_row(prim: Usd.Prim, row: Row, value: object) -> None:
    """Author the attribute of `row`, with a value in units of the file."""
    create(prim, row.name, row.type, value, row.uniform)


def quaternion(R: np.ndarray) -> Gf.Quatf:
    """A rotation matrix as a quaternion of single precision."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat(canonical=True).tolist()
    return Gf.Quatf(w, x, y, z)
