"""Shapes as geometric prims.

The description of a prim is separate from its authoring, so that the reader can check whether a prim has changed since
it was written. All coordinates are lifted scene coordinates in metres (see `warpbots.usd.stage.units`). A 2D
shape is drawn as a thin solid in the plane y = 0.
"""

from typing import Any, NamedTuple

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt

from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    dimension,
)
from warpbots.usd.stage.attributes import at_rest, create
from warpbots.usd.stage.transforms import tidy

__all__ = ["Gprim", "author", "describe", "face_normals", "matrix", "unchanged", "width"]

_THIN = 0.05
"""Thickness of a drawn 2D shape divided by its size."""

_AGREE = 1e-6
"""Largest relative difference between a prim and its description at which it counts as unchanged."""


class Gprim(NamedTuple):
    """One geometric prim.

    Attributes:
        type: USD type.
        values: Attributes that define the geometry: name to USD type and value.
        translate: Position [m], shape (3,).
        orient: Unit quaternion (w, x, y, z) or None.
        scale: Scale along the axes, shape (3,), or None.
        drawn: Attributes that are only for display: name to USD type and value.
    """

    type: str
    values: dict[str, tuple[str, Any]]
    translate: tuple[float, float, float] | None = None
    orient: tuple[float, float, float, float] | None = None
    scale: tuple[float, float, float] | None = None
    drawn: dict[str, tuple[str, Any]] = {}  # noqa: RUF012 (never written to)


def describe(shape: Shape, extent: float = 1.0) -> Gprim:
    """The prim for `shape`, which is neither a `Union` nor a `Posed`.

    Args:
        shape: The shape.
        extent: Size of the scene [m], which determines the drawn size of an unbounded plane.
    """
    lift = _lift(dimension(shape))
    return _DESCRIBE[type(shape)](shape, lift, extent)


def author(stage: Usd.Stage, path: str, gprim: Gprim) -> Usd.Prim:
    """Define the prim `gprim` at `path`, with its extent."""
    prim = stage.DefinePrim(path, gprim.type)
    for name, (type_name, value) in (gprim.values | gprim.drawn).items():
        create(prim, name, type_name, value)
    xformable, double = UsdGeom.Xformable(prim), UsdGeom.XformOp.PrecisionDouble
    if gprim.translate is not None:
        xformable.AddTranslateOp(double).Set(Gf.Vec3d(*gprim.translate))
    if gprim.orient is not None:
        xformable.AddOrientOp(double).Set(Gf.Quatd(*gprim.orient))
    if gprim.scale is not None:
        xformable.AddScaleOp(double).Set(Gf.Vec3d(*gprim.scale))
    if gprim.type == "Mesh":
        UsdGeom.Mesh(prim).SetNormalsInterpolation(UsdGeom.Tokens.uniform)
    if gprim.type == "Points":
        UsdGeom.Points(prim).SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    if gprim.type == "BasisCurves":
        UsdGeom.Curves(prim).SetWidthsInterpolation(UsdGeom.Tokens.uniform)
    boundable = UsdGeom.Boundable(prim)
    boundable.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(boundable, Usd.TimeCode.Default()))
    return prim


def unchanged(prim: Usd.Prim, gprim: Gprim) -> bool:
    """Whether the geometry of `prim`, apart from its transform, equals `gprim` to single precision."""
    if prim.GetTypeName() != gprim.type:
        return False
    for name, (_, value) in gprim.values.items():
        found = at_rest(prim, name)
        if isinstance(value, str) or found is None:
            if found != value:
                return False
            continue
        a, b = np.asarray(found), np.asarray(value)
        if a.shape != b.shape or not np.allclose(a, b, rtol=_AGREE, atol=_AGREE * np.abs(b).max(initial=0.0)):
            return False
    return True


def matrix(gprim: Gprim) -> np.ndarray:
    """Transform from local coordinates of `gprim` to lifted scene coordinates, shape (4, 4)."""
    result = np.eye(4)
    if gprim.scale is not None:
        result[:3, :3] = np.diag(gprim.scale)
    if gprim.orient is not None:
        result[:3, :3] = np.array(Gf.Matrix3d(Gf.Quatd(*gprim.orient))).T @ result[:3, :3]
    if gprim.translate is not None:
        result[:3, 3] = gprim.translate
    return result


def width(volumes: np.ndarray, dim: int) -> np.ndarray:
    """Widths of particles [m], shape (n,), by the convention of Newton: edges of cubes (squares in 2D) of equal volume.

    Args:
        volumes: Volumes of the particles [m^dim], shape (n,).
        dim: 2 or 3: dimension of the scene.
    """
    return np.asarray(volumes, dtype=np.float64) ** (1.0 / dim)


def _lift(dim: int):
    def lift(vector: Any, depth: float = 0.0) -> tuple[float, ...]:
        return tuple(vector) if dim == 3 else (vector[0], depth, vector[1])

    return lift


def _box(shape: Box, lift, extent: float) -> Gprim:
    lower, upper = np.array(shape.lower), np.array(shape.upper)
    half = tidy(0.5 * (upper - lower))
    scale = lift(half, depth=float(tidy(_THIN * half.max())))
    return Gprim("Cube", {"size": ("double", 2.0)}, translate=lift(tidy(0.5 * (lower + upper))), scale=scale)


def _sphere(shape: Sphere, lift, extent: float) -> Gprim:
    if len(shape.center) == 3:
        return Gprim("Sphere", {"radius": ("double", shape.radius)}, translate=shape.center)
    height = 2.0 * _THIN * shape.radius
    values = {"radius": ("double", shape.radius), "height": ("double", height), "axis": ("token", "Y")}
    return Gprim("Cylinder", values, translate=lift(shape.center))


def _rod(shape: Capsule | Cylinder, lift, extent: float) -> Gprim:
    start, end = np.array(lift(shape.start)), np.array(lift(shape.end))
    along = end - start
    axis, orient = _orientation(along)
    values = {
        "radius": ("double", shape.radius),
        "height": ("double", float(tidy(np.linalg.norm(along)))),
        "axis": ("token", axis),
    }
    return Gprim(type(shape).__name__, values, translate=tuple(tidy(0.5 * (start + end))), orient=orient)


def _half_space(shape: HalfSpace, lift, extent: float) -> Gprim:
    axis, orient = _orientation(np.array(lift(shape.normal)))
    size = 4.0 * extent
    depth = size if len(shape.point) == 3 else _THIN * size
    # the length of a plane of axis X or Z lies along y
    drawn = {"width": ("double", size), "length": ("double", depth), "doubleSided": ("bool", True)}
    return Gprim("Plane", {"axis": ("token", axis)}, translate=lift(shape.point), orient=orient, drawn=drawn)


def _heightfield(shape: Heightfield, lift, extent: float) -> Gprim:
    heights = shape.heights
    x = shape.origin[0] + shape.spacing * np.arange(len(heights))
    if heights.ndim == 1:
        reach = 0.5 * _THIN * (x[-1] - x[0])
        y, z = np.array([-reach, reach]), np.repeat(heights[:, None], 2, axis=1)
    else:
        y, z = shape.origin[1] + shape.spacing * np.arange(heights.shape[1]), heights
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), z], axis=-1).reshape(-1, 3)
    corner = np.arange(z.size).reshape(z.shape)
    quads = np.stack([corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]], axis=-1).reshape(-1, 4)
    return _mesh(points, quads, closed=False)


def _silhouette(shape: Silhouette, lift, extent: float) -> Gprim:
    """A mesh with one rectangle for each run of inside pixels in a row of the mask.

    The rectangles of neighbouring rows lie alternately in front of and behind the plane, so that no two rectangles
    share a corner or have coincident corners: validators report both as errors.
    """
    padded = np.pad(shape.mask.astype(np.int8), ((0, 0), (1, 1)))
    change = np.diff(padded, axis=1)
    row, left = np.nonzero(change == 1)
    _, right = np.nonzero(change == -1)
    low = len(shape.mask) - 1 - row
    corners = np.stack([[left, low], [right, low], [right, low + 1], [left, low + 1]])  # (4, 2, runs)
    plane = np.array(shape.lower) + shape.pixel * corners.transpose(2, 0, 1).reshape(-1, 2)
    depth = _THIN * shape.pixel * np.where(np.repeat(row, 4) % 2, 1.0, -1.0)
    points = np.stack([plane[:, 0], depth, plane[:, 1]], axis=1)
    return _mesh(points, np.arange(len(points)).reshape(-1, 4), closed=False)


def _triangles(shape: TriangleMesh, lift, extent: float) -> Gprim:
    return _mesh(shape.vertices, shape.faces, closed=True)


def _tets(shape: TetMesh, lift, extent: float) -> Gprim:
    values = {
        "points": ("point3f[]", Vt.Vec3fArray.FromNumpy(shape.vertices.astype(np.float32))),
        "tetVertexIndices": ("int4[]", Vt.Vec4iArray.FromNumpy(shape.tets.astype(np.int32))),
    }
    surface = Vt.Vec3iArray.FromNumpy(shape.surface.astype(np.int32))
    return Gprim("TetMesh", values, drawn={"surfaceFaceVertexIndices": ("int3[]", surface)})


def _sheet(shape: Sheet, lift, extent: float) -> Gprim:
    return _mesh(shape.vertices, shape.faces, closed=False)


def _points(shape: Points, lift, extent: float) -> Gprim:
    dim = shape.positions.shape[1]
    positions = shape.positions if dim == 3 else np.insert(shape.positions, 1, 0.0, axis=1)
    return _cloud(positions, width(shape.volumes, dim))


def _truss(shape: Truss, lift, extent: float) -> Gprim:
    dim = shape.joints.shape[1]
    ends = shape.joints[shape.bars].reshape(-1, dim)
    ends = ends if dim == 3 else np.insert(ends, 1, 0.0, axis=1)
    values = {
        "points": ("point3f[]", Vt.Vec3fArray.FromNumpy(ends.astype(np.float32))),
        "curveVertexCounts": ("int[]", Vt.IntArray(len(shape.bars), 2)),
        "widths": ("float[]", Vt.FloatArray.FromNumpy((2.0 * shape.radius).astype(np.float32))),
        "type": ("token", "linear"),
    }
    return Gprim("BasisCurves", values)


def _distance_grid(shape: DistanceGrid, lift, extent: float) -> Gprim:
    """Particles at the samples just inside the surface, each as wide as a cell of the grid."""
    inside = (shape.values <= 0.0) & (shape.values > -2.0 * shape.spacing)
    if not inside.any():
        inside = shape.values == shape.values.min()
    positions = np.array(shape.lower) + shape.spacing * np.argwhere(inside)
    if positions.shape[1] == 2:
        positions = np.insert(positions, 1, 0.0, axis=1)
    return _cloud(positions, np.full(len(positions), shape.spacing))


_DESCRIBE = {
    Box: _box,
    Sphere: _sphere,
    Capsule: _rod,
    Cylinder: _rod,
    HalfSpace: _half_space,
    Heightfield: _heightfield,
    Silhouette: _silhouette,
    TriangleMesh: _triangles,
    TetMesh: _tets,
    Sheet: _sheet,
    Points: _points,
    Truss: _truss,
    DistanceGrid: _distance_grid,
}


def _orientation(direction: np.ndarray) -> tuple[str, tuple[float, ...] | None]:
    """An axis token, and the quaternion (w, x, y, z) of the rotation from this axis to `direction`.

    If `direction` is parallel to a coordinate axis, the token names this axis, and the rotation is None or an exact
    half turn. Otherwise the token is Z, and the rotation is the shortest one.
    """
    n = direction / np.linalg.norm(direction)
    if np.count_nonzero(n) == 1:
        k = int(np.flatnonzero(n)[0])
        half_turn = (0.0, 1.0, 0.0, 0.0) if k == 1 else (0.0, 0.0, 1.0, 0.0)
        return "XYZ"[k], None if n[k] > 0.0 else half_turn
    q = np.array([1.0 + n[2], -n[1], n[0], 0.0])  # shortest arc from z: (1 + z.n, z x n)
    return "Z", tuple((q / np.linalg.norm(q)).tolist())


def _mesh(points: np.ndarray, faces: np.ndarray, closed: bool) -> Gprim:
    values = {
        "points": ("point3f[]", Vt.Vec3fArray.FromNumpy(points.astype(np.float32))),
        "faceVertexIndices": ("int[]", Vt.IntArray.FromNumpy(faces.ravel().astype(np.int32))),
    }
    drawn = {
        "faceVertexCounts": ("int[]", Vt.IntArray.FromNumpy(np.full(len(faces), faces.shape[1], dtype=np.int32))),
        "subdivisionScheme": ("token", "none"),
        "normals": ("normal3f[]", Vt.Vec3fArray.FromNumpy(face_normals(points, faces).astype(np.float32))),
        "doubleSided": ("bool", not closed),
    }
    return Gprim("Mesh", values, drawn=drawn)


def face_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit normal of each face, shape (n_faces, 3); a face without area gets +z."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.where(length > 0.0, normals / np.where(length > 0.0, length, 1.0), [0.0, 0.0, 1.0])


def _cloud(positions: np.ndarray, widths: np.ndarray) -> Gprim:
    values = {
        "points": ("point3f[]", Vt.Vec3fArray.FromNumpy(positions.astype(np.float32))),
        "widths": ("float[]", Vt.FloatArray.FromNumpy(widths.astype(np.float32))),
    }
    return Gprim("Points", values, drawn={"ids": ("int64[]", Vt.Int64Array(range(len(positions))))})
