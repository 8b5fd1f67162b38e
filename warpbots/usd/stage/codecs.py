"""Conversion between values of attributes and values of fields; each kind of row of the table has one codec.

A codec handles units and axes. It does not handle missing prims, defaults or exact values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warpbots.usd.stage.schema import Row
from warpbots.usd.stage.transforms import rotation, transform

__all__ = ["CODECS", "Codec", "Conversion"]

_SINGLE = ("float", "float[]", "color3f[]", "vector3f", "point3f[]")


class Conversion(NamedTuple):
    """Units and axes that the conversion of a value on one prim needs.

    Attributes:
        factor: Function of a unit that returns the factor from units of the stage to SI units.
        matrix: Function that returns the transform from local coordinates of the prim to lifted scene coordinates [m],
            shape (4, 4).
        lift: Function from scene vectors, shape (..., dim), to lifted vectors, shape (..., 3).
        drop: Function from lifted vectors, shape (..., 3), to scene vectors, shape (..., dim).
    """

    factor: Callable[[str], float]
    matrix: Callable[[], np.ndarray]
    lift: Callable[[Any], np.ndarray]
    drop: Callable[[np.ndarray], np.ndarray]


class Codec(NamedTuple):
    """Conversion of one kind of value in both directions.

    Attributes:
        decode: Function from the value of an attribute to the value of a field [SI units, scene axes].
        encode: Function from the value of a field to the value of an attribute [units and axes of the stage].
    """

    decode: Callable[[Any, Row, Conversion], Any]
    encode: Callable[[Any, Row, Conversion], Any]


def _decimal(value: Any, row: Row) -> np.ndarray:
    """Values as the decimal numbers that they print as: single-precision 0.3 gives 0.3, not 0.30000001192."""
    array = np.asarray(value)
    return array.astype(np.float32).astype(str).astype(np.float64) if row.type in _SINGLE else array.astype(np.float64)


def _number(raw: Any, row: Row, at: Conversion) -> float:
    return float(_decimal(raw, row).reshape(-1)[0]) * at.factor(row.unit)


def _vector(raw: Any, row: Row, at: Conversion) -> tuple[float, ...]:
    return tuple((at.drop(rotation(at.matrix()) @ _decimal(raw, row)) * at.factor(row.unit)).tolist())


def _to_vector(value: Any, row: Row, at: Conversion) -> tuple[float, ...]:
    return tuple((rotation(at.matrix()).T @ at.lift(value) / at.factor(row.unit)).tolist())


def _vectors(raw: Any, row: Row, at: Conversion) -> tuple[tuple[float, ...], ...]:
    turned = _decimal(raw, row) @ rotation(at.matrix()).T
    return tuple(map(tuple, (at.drop(turned) * at.factor(row.unit)).tolist()))


def _to_vectors(value: Any, row: Row, at: Conversion) -> list[tuple[float, ...]]:
    turned = at.lift(value) @ rotation(at.matrix()) / at.factor(row.unit)
    return list(map(tuple, turned.tolist()))


def _point(raw: Any, row: Row, at: Conversion) -> tuple[float, ...]:
    return tuple(at.drop(transform(at.matrix(), _decimal(raw, row)[None])[0]).tolist())


def _to_point(value: Any, row: Row, at: Conversion) -> tuple[float, ...]:
    return tuple(transform(np.linalg.inv(at.matrix()), at.lift(value)[None])[0].tolist())


def _points(raw: Any, row: Row, at: Conversion) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, at.drop(transform(at.matrix(), _decimal(raw, row))).tolist()))


def _to_points(value: Any, row: Row, at: Conversion) -> list[tuple[float, ...]]:
    return list(map(tuple, transform(np.linalg.inv(at.matrix()), at.lift(value)).tolist()))


def _to_integer(value: Any, row: Row, at: Conversion) -> int | bool:
    if int(value) != value:
        raise ValueError("it is no integer")
    return bool(value) if row.type == "bool" else int(value)


CODECS = {
    "text": Codec(lambda raw, row, at: str(raw), lambda value, row, at: value),
    "integer": Codec(lambda raw, row, at: int(raw), _to_integer),
    "number": Codec(_number, lambda value, row, at: float(value) / at.factor(row.unit)),
    "constant": Codec(_number, lambda value, row, at: [float(value) / at.factor(row.unit)]),
    "numbers": Codec(
        lambda raw, row, at: tuple((_decimal(raw, row) * at.factor(row.unit)).tolist()),
        lambda value, row, at: [float(v) / at.factor(row.unit) for v in value],
    ),
    "color": Codec(lambda raw, row, at: tuple(_decimal(raw, row)[0].tolist()), lambda value, row, at: [tuple(value)]),
    "table": Codec(
        lambda raw, row, at: tuple(map(tuple, _decimal(raw, row).tolist())),
        lambda value, row, at: list(map(tuple, value)),
    ),
    "vector": Codec(_vector, _to_vector),
    "vectors": Codec(_vectors, _to_vectors),
    "point": Codec(_point, _to_point),
    "points": Codec(_points, _to_points),
}
"""Codecs by the `kind` of a row. The kind "local" has no codec: the module that reads the attribute converts it."""
