"""Shapes as prims: standard geometry for all programs, and exact values in attributes of warpbots.

A shape is a geometric prim; a `Union` or `Posed` shape is an Xform with other shapes below it. If reading the prim
would not give the shape to the last bit (as with a silhouette, a terrain or a distance grid), exact values of its
fields are stored on the prim as ``warpbots:exact:<field>`` in SI units. These exact values are used as long as the
geometry of the prim agrees with them. If the prim was moved, the shape moves with it; if the geometry was edited, the
geometry takes precedence over the exact values.
"""

from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom

from warpbots.scene import Posed, SceneError, Shape, Sheet, Union
from warpbots.usd.geometry.gprim_reader import has_holes, plain_shape, pose
from warpbots.usd.geometry.gprim_writer import author, describe, matrix, unchanged
from warpbots.usd.geometry.sheet_prims import is_sheet, read_bending, read_sheet, write_thickness
from warpbots.usd.stage.attributes import authored, create, value_of
from warpbots.usd.stage.exact_fields import EXACT, SHAPE_FIELDS, SHAPES
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.ledger import mark_solid
from warpbots.usd.stage.prim_roles import is_shape
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import StageUnits, local_matrix

__all__ = ["is_shape", "read_shape", "read_shape_in", "write_shape"]

_TOKEN = rows("shape")[0]

_PLACED = ("Box", "Sphere", "Capsule", "Cylinder", "HalfSpace")
"""Shapes whose position is in the transform of their prim: a moved prim is read as another shape of the same kind."""

_NUMBERS_ONLY = ("Silhouette", "Heightfield", "DistanceGrid")
"""Shapes that no geometric prim can represent; their drawn geometry is only for display."""


def read_shape(prim: Usd.Prim, frame: StageUnits) -> Shape:
    """The shape at `prim` in scene coordinates [m].

    Raises:
        SceneError: The shape is not supported, or not a solid; the message begins with the path of the prim.
    """
    return read_shape_in(prim, frame.matrix(prim.GetParent()), frame)


def read_shape_in(prim: Usd.Prim, parent: np.ndarray, frame: StageUnits) -> Shape:
    """The shape at `prim`; `parent` transforms coordinates of the parent prim to coordinates of the shape."""
    try:
        return _read(prim, parent, frame)
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def write_shape(
    stage: Usd.Stage, path: str, shape: Shape, frame: StageUnits, extent: float, parent: np.ndarray | None = None
) -> Usd.Prim:
    """Define `shape` at `path`.

    Args:
        stage: The stage.
        path: Path of the new prim.
        shape: The shape.
        frame: Units and axes of the stage.
        extent: Size of the scene [m], for drawing unbounded shapes.
        parent: Transform from local coordinates of the parent prim to coordinates of the shape, shape (4, 4). None if
            the shape is in lifted scene coordinates.
    """
    if parent is None:
        parent = frame.matrix(stage.GetPrimAtPath(str(path).rpartition("/")[0]))
    return _write(stage, path, shape, parent, frame, extent)


def _read(prim: Usd.Prim, parent: np.ndarray, frame: StageUnits) -> Shape:
    mark_solid(prim, None)
    here = local_matrix(prim, parent, frame.to_scene)
    name = str(value_of(prim, _TOKEN.name)) if authored(prim, _TOKEN.name) else ""
    if name and name not in SHAPES:
        raise SceneError(f"{_TOKEN.name} must be one of {', '.join(SHAPES)}, got {name!r}")
    if name == "Union":
        return Union(tuple(_read(child, here, frame) for child in prim.GetChildren() if is_shape(child)))
    if name == "Posed":
        return _read_posed(prim, here, frame)
    exact = _read_exact(prim, here, frame, name)
    if exact is None:
        return _read_plain(prim, here, frame, name)
    if not unchanged(prim, describe(exact)):
        return _read_plain(prim, here, frame, name)
    drawn = matrix(describe(exact))
    if np.allclose(here, drawn, rtol=1e-6, atol=1e-6 * max(1e-9, float(np.abs(drawn[:3]).max()))):
        return exact
    if name in _PLACED:
        return plain_shape(prim, here, frame.dim)
    turn, move, scale = pose(here @ np.linalg.inv(drawn), frame.dim)
    if abs(scale - 1.0) > 1e-6:
        return _read_plain(prim, here, frame, name)
    return Posed(exact, tuple(move), turn)


def _read_plain(prim: Usd.Prim, here: np.ndarray, frame: StageUnits, name: str) -> Shape:
    if name in _NUMBERS_ONLY:
        raise SceneError(
            f"a {name} is kept in the attributes {', '.join(EXACT + f for f in SHAPE_FIELDS[SHAPES[name]])}, which are "
            f"missing or no longer fit the geometry of the prim (another program has scaled or reshaped it); undo that "
            f"change or define the shape again"
        )
    return _plain(prim, here, frame)


def _plain(prim: Usd.Prim, here: np.ndarray, frame: StageUnits) -> Shape:
    return read_sheet(prim, here, frame) if is_sheet(prim) else plain_shape(prim, here, frame.dim)


def _read_posed(prim: Usd.Prim, here: np.ndarray, frame: StageUnits) -> Posed:
    turn, move, scale = pose(here, frame.dim)
    children = [child for child in prim.GetChildren() if is_shape(child)]
    if len(children) != 1:
        raise SceneError(f"a Posed shape needs one shape under it, got {len(children)}")
    shape = _read(children[0], np.diag([scale, scale, scale, 1.0]), frame)
    exact = {field: _load(prim, field, kind) for field, kind in SHAPE_FIELDS[Posed].items()}
    for field, plain in (("translation", move), ("rotation", turn)):
        if exact[field] is None or not np.allclose(exact[field], plain, rtol=1e-6, atol=1e-9):
            exact[field] = plain
    return Posed(shape, tuple(exact["translation"]), exact["rotation"])


def _read_exact(prim: Usd.Prim, here: np.ndarray, frame: StageUnits, name: str) -> Shape | None:
    """The shape with its exact fields, or None if the prim has no exact fields that fit its geometry."""
    if not name or has_holes(prim):  # warpbots writes no holes
        return None
    kinds = SHAPE_FIELDS[SHAPES[name]]
    fields = {field: _load(prim, field, kind) for field, kind in kinds.items()}
    if all(value is None for value in fields.values()):
        return None
    if any(value is None for value in fields.values()):
        # fields that the geometry reproduces exactly were not written
        plain = _plain(prim, here, frame)
        if type(plain) is not SHAPES[name]:
            return None
        fields = {f: getattr(plain, f) if v is None else v for f, v in fields.items()}
    if name == "Sheet":
        fields["bending"] = read_bending(prim, frame, fields["bending"])
    return SHAPES[name](**fields)


def _write(stage: Usd.Stage, path: str, shape: Shape, parent: np.ndarray, frame: StageUnits, extent: float) -> Usd.Prim:
    if isinstance(shape, Union):
        prim = stage.DefinePrim(path, "Xform")
        for k, part in enumerate(shape.shapes):
            _write(stage, f"{path}/Shape_{k}", part, parent, frame, extent)
    elif isinstance(shape, Posed):
        prim = _write_pose(stage, path, shape, frame)
        _write(stage, f"{path}/Shape", shape.shape, np.eye(4), frame, extent)
    else:
        prim = author(stage, path, describe(shape, extent))
    create(prim, _TOKEN.name, _TOKEN.type, type(shape).__name__, uniform=True)
    if isinstance(shape, Sheet):
        write_thickness(prim, shape, frame)
    for field, kind in _missing(prim, shape, parent, frame).items():
        if getattr(shape, field) is not None:
            _store(prim, field, kind, getattr(shape, field))
    return prim


def _write_pose(stage: Usd.Stage, path: str, shape: Posed, frame: StageUnits) -> Usd.Prim:
    turn, result = np.array(shape.rotation), np.eye(4)
    keep = [0, 1, 2] if frame.dim == 3 else [0, 2]
    result[np.ix_(keep, keep)] = turn
    result[:3, 3] = frame.lift(np.array(shape.translation))
    prim = stage.DefinePrim(path, "Xform")
    UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(result.T.tolist()))
    return prim


def _missing(prim: Usd.Prim, shape: Shape, parent: np.ndarray, frame: StageUnits) -> dict[str, str]:
    """Names and kinds of the fields of `shape` that must be stored, because reading `prim` would change the shape.

    For a shape with large arrays, these are the fields that reading does not reproduce to the last bit; for any other
    shape, all fields if reading does not reproduce one of them.
    """
    kinds = SHAPE_FIELDS[type(shape)]
    if not kinds or type(shape).__name__ in _NUMBERS_ONLY:
        return kinds
    try:
        back = _read(prim, parent, frame)
    except SceneError:
        return kinds
    if type(back) is not type(shape):
        return kinds
    missing = {f: kind for f, kind in kinds.items() if not np.array_equal(getattr(back, f), getattr(shape, f))}
    # large arrays are stored one by one; a few numbers together, so that they stay consistent if the prim is moved
    return missing if "points" in kinds.values() or not missing else kinds


def _store(prim: Usd.Prim, field: str, kind: str, value: Any) -> None:
    """Author the exact value of one field of a shape on `prim`."""
    name = EXACT + field
    if kind == "number":
        create(prim, name, "double", float(value), uniform=True)
    elif kind == "rows":
        lines = ["".join(".#"[int(pixel)] for pixel in row) for row in value]
        create(prim, name, "string[]", lines, uniform=True)
    elif kind == "indices":
        create(prim, name, f"int{value.shape[1]}[]", np.asarray(value, dtype=np.int32), uniform=True)
    elif kind == "points":
        create(prim, name, f"double{value.shape[1]}[]", np.asarray(value, dtype=np.float64), uniform=True)
    else:
        array = np.asarray(value, dtype=np.float64)
        create(prim, name, "double[]", array.ravel(), uniform=True)
        if kind == "grid":
            create(prim, name + ":size", "int[]", list(array.shape), uniform=True)


def _load(prim: Usd.Prim, field: str, kind: str) -> Any:
    """The exact value of one field of a shape, as written by `_store`, or None if it is not authored.

    Raises:
        SceneError: A grid has the wrong number of values, or rows differ in length.
    """
    name = EXACT + field
    if not authored(prim, name):
        return None
    value = prim.GetAttribute(name).Get()
    if kind == "number":
        return float(value)
    if kind == "rows":
        if len(set(map(len, value))) > 1:
            raise SceneError(f"{name} must have rows of equal length, got {sorted(set(map(len, value)))}")
        return np.array([[pixel == "#" for pixel in row] for row in value])
    if kind == "indices":
        return np.asarray(value, dtype=np.int64)
    array = np.asarray(value, dtype=np.float64)
    if kind != "grid":
        return array
    size = tuple(prim.GetAttribute(name + ":size").Get() or ()) if authored(prim, name + ":size") else ()
    if int(np.prod(size)) != array.size:
        raise SceneError(f"{name} must fill a grid of {name}:size = {size}, got {array.size} values")
    return array.reshape(size)
