"""Geometric prims of any program as shapes.

In a 2D scene, a prim stands for its section with the plane y = 0. A primitive becomes a mesh if its transform shears
it, or scales it so that it is no longer round. A cone always becomes a mesh.
"""

from collections.abc import Callable

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    Points,
    Posed,
    SceneError,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
)
from warpbots.scene.shapes.sampled import OpenMesh
from warpbots.usd.geometry import tessellation
from warpbots.usd.geometry.polygons import triangulated
from warpbots.usd.stage.attributes import at_rest, axis_number
from warpbots.usd.stage.transforms import rigid, snap, tidy, transform
from warpbots.usd.stage.units import START

__all__ = ["NoGeometry", "box", "has_holes", "mesh_points", "mesh_triangles", "plain_shape", "pose"]


_HOLES = "holeIndices"
"""Attribute of a mesh with the indices of the faces that are holes."""


class NoGeometry(SceneError):
    """Raised if a prim of a geometric type has no geometry."""


def plain_shape(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    """The shape of the geometry of `prim`; exact values that warpbots has stored on `prim` are not used.

    Args:
        prim: A geometric prim.
        matrix: Transform from local coordinates of the prim to lifted scene coordinates [m], shape (4, 4).
        dim: 2 or 3: dimension of the scene.

    Raises:
        SceneError: The geometry is not supported or not a solid; the message does not name the prim.
    """
    if prim.GetTypeName() not in _READ:
        raise SceneError(f"a {prim.GetTypeName() or 'prim without a type'} is not a supported solid")
    return _READ[prim.GetTypeName()](prim, matrix, dim)


def pose(matrix: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rotation (dim, dim), translation (dim,) and scale of `matrix`, shape (4, 4), which is a similarity.

    Raises:
        SceneError: The matrix is not a similarity, or rotates a 2D scene out of its plane.
    """
    turn, move, scale = rigid(matrix)
    if dim == 3:
        return turn, move, scale
    if abs(turn[1, 1] - 1.0) > 1e-6 or abs(move[1]) > 1e-6:
        raise SceneError("its transform leaves the plane y = 0 in which a 2D scene lies")
    return turn[np.ix_([0, 2], [0, 2])], move[[0, 2]], scale


def _get(prim: Usd.Prim, name: str, fallback: object = None) -> object:
    value = at_rest(prim, name)
    return fallback if value is None else value


def _axes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit directions (columns of a (3, 3) matrix) and scales (3,) of the local axes."""
    linear = matrix[:3, :3]
    scales = np.linalg.norm(linear, axis=0)
    if scales.min() <= 0.0:
        raise SceneError("its transform flattens it")
    directions = snap(linear / scales)
    if not np.allclose(directions.T @ directions, np.eye(3), atol=1e-5):
        raise _NoPrimitive("its transform shears it; apply the transform to its points instead")
    return directions, scales


class _NoPrimitive(SceneError):
    """Raised if the transform of a primitive turns the primitive into another kind of shape."""


def _uniform(scales: np.ndarray) -> float:
    if not np.allclose(scales, scales[0], rtol=1e-5):
        raise _NoPrimitive(
            f"it is scaled by {scales.tolist()} along its axes, so that it is no longer round; scale it uniformly or "
            f"turn it into a Mesh"
        )
    return float(scales[0])


def _or_mesh(reader: Callable, mesh: Callable) -> Callable:
    """A reader that calls `reader`.

    In 3D, if the transform changes the kind of shape, it reads the triangles of `mesh` instead.
    """

    def read(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
        try:
            return reader(prim, matrix, dim)
        except _NoPrimitive:
            if dim == 2:
                raise
            vertices, faces = mesh(prim)
            return TriangleMesh(transform(matrix, vertices), faces)

    return read


def _plane_only(dim: int, prim: Usd.Prim) -> None:
    if dim == 2:
        raise SceneError(f"a {prim.GetTypeName()} has no meaning in a 2D scene")


def _drop(vector: np.ndarray, dim: int) -> tuple[float, ...]:
    return tuple((vector if dim == 3 else vector[[0, 2]]).tolist())


def _cube(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    return box(matrix @ np.diag([*3 * [_half_size(prim)], 1.0]), dim)


def _half_size(prim: Usd.Prim) -> float:
    return 0.5 * float(_get(prim, "size", 2.0))


def _cube_mesh(prim: Usd.Prim) -> tuple[np.ndarray, np.ndarray]:
    corners, faces = tessellation.cube()
    return _half_size(prim) * corners, faces


def box(matrix: np.ndarray, dim: int) -> Shape:
    """The image of the cube from -1 to 1 under `matrix`.

    Raises:
        SceneError: The matrix flattens or shears the cube, or rotates a 2D scene out of its plane.
    """
    directions, half = _axes(matrix)
    center = matrix[:3, 3]
    if np.count_nonzero(directions) == 3:
        reach = np.abs(directions) @ half
        return Box(_drop(tidy(center - reach), dim), _drop(tidy(center + reach), dim))
    if np.linalg.det(directions) < 0.0:
        directions = directions * [1.0, 1.0, -1.0]  # a box looks the same in a mirror
    turned = np.eye(4)
    turned[:3, :3], turned[:3, 3] = directions, center
    rotation, translation, _ = pose(turned, dim)
    return Posed(Box(_drop(-half, dim), _drop(half, dim)), tuple(translation), rotation)


def _sphere(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    _, scales = _axes(matrix)
    return Sphere(_drop(matrix[:3, 3], dim), _radius_of_sphere(prim) * _uniform(scales))


def _radius_of_sphere(prim: Usd.Prim) -> float:
    return float(_get(prim, "radius", 1.0))


def _rod(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    directions, scales = _axes(matrix)
    k = axis_number(_get(prim, "axis", "Z"))
    across = np.delete(scales, k)
    capsule = prim.GetTypeName().startswith("Capsule")
    bottom, top = _radii(prim)
    if bottom != top:
        raise _NoPrimitive(f"its ends have different radii {bottom:g} and {top:g}; turn it into a Mesh")
    radius = bottom * _uniform(scales if capsule else across)
    along = directions[:, k]
    if dim == 2 and abs(along[1]) > 1.0 - 1e-9:  # seen along its axis, it is a disc
        return Sphere(_drop(matrix[:3, 3], dim), radius)
    half = 0.5 * float(_get(prim, "height", 1.0)) * scales[k]
    ends = [_drop(tidy(matrix[:3, 3] + sign * half * along), dim) for sign in (-1.0, 1.0)]
    if ends[0] == ends[1]:
        return Sphere(ends[0], radius)
    return (Capsule if capsule else Cylinder)(*ends, radius)


def _radii(prim: Usd.Prim) -> tuple[float, float]:
    """Radii of both ends of a capsule or cylinder."""
    if prim.GetTypeName().endswith("_1"):
        return float(_get(prim, "radiusBottom", 0.5)), float(_get(prim, "radiusTop", 0.5))
    radius = float(_get(prim, "radius", 1.0 if prim.GetTypeName() == "Cylinder" else 0.5))
    return radius, radius


def _cone(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    _plane_only(dim, prim)
    vertices, faces = tessellation.cone(prim)
    return TriangleMesh(transform(matrix, vertices), faces)


def _plane(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    k = axis_number(_get(prim, "axis", "Z"))
    normal = np.cross(matrix[:3, (k + 1) % 3], matrix[:3, (k + 2) % 3])
    if not normal.any():
        raise SceneError("its transform flattens it")
    if np.dot(normal, matrix[:3, k]) < 0.0:  # mirroring does not reverse the normal
        normal = -normal
    normal = snap(normal / np.linalg.norm(normal))
    return HalfSpace(_drop(matrix[:3, 3], dim), _drop(normal, dim))


def _mesh(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    _plane_only(dim, prim)
    vertices, faces = mesh_triangles(prim, matrix)
    try:
        return TriangleMesh(vertices, faces)
    except OpenMesh as error:
        if not has_holes(prim):
            raise
        left_out, count = len(_holes(prim)), len(_faces(prim)[0])
        raise OpenMesh(
            f"{error}; its {_HOLES} leave out {left_out} of {count} faces, remove them from the file to close the mesh"
        ) from None


def mesh_triangles(prim: Usd.Prim, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, shape (n, 3), and faces, counter-clockwise seen from outside, shape (m, 3), of the mesh `prim`.

    Faces that are holes are left out.

    Args:
        prim: A mesh of polygons.
        matrix: Transform from local coordinates of the prim to coordinates of the result, shape (4, 4).

    Raises:
        SceneError: The mesh has no points or faces, or they are inconsistent.
    """
    points = _all_points(prim)
    faces = triangulated(points, *_polygons(prim))
    left_handed = str(_get(prim, "orientation", "rightHanded")) == "leftHanded"
    mirrored = np.linalg.det(matrix[:3, :3]) < 0.0
    return transform(matrix, points), faces[:, ::-1] if left_handed != mirrored else faces


def mesh_points(prim: Usd.Prim) -> np.ndarray:
    """Points of the mesh `prim` in its own coordinates, without points between holes alone, shape (n, 3).

    Raises:
        SceneError: The mesh has no points, or its holes are not among its faces.
    """
    points = _all_points(prim)
    if not has_holes(prim):
        return points
    _, corners = _polygons(prim)
    _, every = _faces(prim)
    only_in_holes = np.setdiff1d(every, corners)
    return np.delete(points, only_in_holes[only_in_holes < len(points)], axis=0)


def has_holes(prim: Usd.Prim) -> bool:
    """Whether faces of `prim` are holes, which do not belong to its surface; False for other prims than meshes."""
    return prim.GetTypeName() == "Mesh" and len(_holes(prim)) > 0


def _holes(prim: Usd.Prim) -> np.ndarray:
    """Indices of the faces of the mesh `prim` that are holes, in rising order, shape (n,)."""
    return np.unique(np.asarray(_get(prim, _HOLES, []), dtype=np.int64))


def _all_points(prim: Usd.Prim) -> np.ndarray:
    points = np.asarray(_get(prim, "points", []), dtype=np.float64).reshape(-1, 3)
    if not len(points):
        raise NoGeometry("it is a mesh without points or faces")
    return points


def _faces(prim: Usd.Prim) -> tuple[np.ndarray, np.ndarray]:
    """Number of corners of each face, and points of the corners of all faces, holes included."""
    counts = np.asarray(_get(prim, "faceVertexCounts", []), dtype=np.int64)
    return counts, np.asarray(_get(prim, "faceVertexIndices", []), dtype=np.int64)


def _polygons(prim: Usd.Prim) -> tuple[np.ndarray, np.ndarray]:
    """Number of corners of each face, and points of the corners of all faces, without holes."""
    counts, corners = _faces(prim)
    if not len(corners):
        raise NoGeometry("it is a mesh without points or faces")
    if counts.sum() != len(corners) or counts.min() < 3:
        raise SceneError(f"its faces have {counts.sum()} corners by their counts and {len(corners)} by their indices")
    holes = _holes(prim)
    if not len(holes):
        return counts, corners
    if holes[0] < 0 or holes[-1] >= len(counts):
        raise SceneError(f"its {_HOLES} must index faces 0 to {len(counts) - 1}, got {holes[0]} to {holes[-1]}")
    if len(holes) == len(counts):
        raise SceneError(f"its {_HOLES} leave out all of its {len(counts)} faces; remove them from the file")
    kept = np.ones(len(counts), dtype=bool)
    kept[holes] = False
    return counts[kept], corners[np.repeat(kept, counts)]


def _tets(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    """The tetrahedra of `prim`, whose vertices may have any order in the file; unused points are left out."""
    _plane_only(dim, prim)
    points = np.asarray(_get(prim, "points", []), dtype=np.float64).reshape(-1, 3)
    tets = np.asarray(_get(prim, "tetVertexIndices", []), dtype=np.int64).reshape(-1, 4)
    if not len(points) or not len(tets):
        raise NoGeometry("it is a tetrahedral mesh without points or tetrahedra")
    if tets.min() < 0 or tets.max() >= len(points):
        raise SceneError(f"its tetrahedra must index points 0 to {len(points) - 1}, got {tets.min()} to {tets.max()}")
    used = np.unique(tets)
    if len(used) < len(points):
        points, tets = points[used], np.searchsorted(used, tets)
    return TetMesh.oriented(transform(matrix, points), tets)


def _points(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    _, scales = _axes(matrix)
    positions = np.asarray(_get(prim, "points", []), dtype=np.float64).reshape(-1, 3)
    widths = np.asarray(UsdGeom.Points(prim).GetWidthsAttr().Get(START) or [], dtype=np.float64)
    if not len(positions):
        raise NoGeometry("it has no points")
    if len(widths) not in (1, len(positions)):
        raise SceneError(
            f"it has {len(positions)} points and {len(widths)} widths; particles need one width, or one for each point"
        )
    volumes = np.broadcast_to((widths * _uniform(scales)) ** dim, len(positions))
    moved = transform(matrix, positions)
    return Points(moved if dim == 3 else moved[:, [0, 2]], volumes)


def _curves(prim: Usd.Prim, matrix: np.ndarray, dim: int) -> Shape:
    """A bar for each segment of each curve; coincident points become one joint."""
    _, scales = _axes(matrix)
    points = np.asarray(_get(prim, "points", []), dtype=np.float64).reshape(-1, 3)
    counts = np.asarray(_get(prim, "curveVertexCounts", []), dtype=np.int64)
    if str(_get(prim, "type", "cubic")) != "linear":
        raise SceneError("its curves are cubic; only straight bars are supported, set its type to linear")
    if not len(counts) or counts.sum() != len(points) or counts.min() < 2:
        raise SceneError(f"its curves have {counts.sum()} points by their counts, but there are {len(points)}")
    first, last = np.cumsum(counts) - counts, np.cumsum(counts) - 1
    bars = np.stack([np.delete(np.arange(len(points)), last), np.delete(np.arange(len(points)), first)], axis=1)
    curve = np.repeat(np.arange(len(counts)), counts - 1)
    if str(_get(prim, "wrap", "nonperiodic")) == "periodic":
        bars = np.concatenate([bars, np.stack([last, first], axis=1)])
        curve = np.append(curve, np.arange(len(counts)))
    width = _bar_widths(prim, bars, curve, len(points), len(counts)) * _uniform(scales)
    moved = transform(matrix, points)
    _, at, joint = np.unique(moved, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(at)  # joints in the order in which the file has them
    bars = np.argsort(order)[joint.reshape(-1)][bars]
    joints = moved[at[order]]
    return Truss(joints if dim == 3 else joints[:, [0, 2]], bars, 0.5 * width)


def _bar_widths(prim: Usd.Prim, bars: np.ndarray, curve: np.ndarray, points: int, curves: int) -> np.ndarray:
    """Width of every bar, shape (n_bars,), from one width for all curves, one for each curve, or one for each point."""
    widths = np.asarray(UsdGeom.Curves(prim).GetWidthsAttr().Get(START) or [], dtype=np.float64)
    if len(widths) == 1:
        return np.full(len(bars), widths[0])
    if len(widths) == curves and UsdGeom.Curves(prim).GetWidthsInterpolation() == UsdGeom.Tokens.uniform:
        return widths[curve]
    if len(widths) == points:
        return widths[bars].mean(axis=1)
    raise SceneError(
        f"it has {curves} curves, {points} points and {len(widths)} widths; bars need one width, or one for each "
        f"curve or point"
    )


_READ = {
    "Cube": _or_mesh(_cube, _cube_mesh),
    "Sphere": _or_mesh(_sphere, lambda prim: tessellation.sphere(_radius_of_sphere(prim))),
    **dict.fromkeys(
        ("Capsule", "Capsule_1", "Cylinder", "Cylinder_1"),
        _or_mesh(_rod, lambda prim: tessellation.rod(prim, *_radii(prim))),
    ),
    "Cone": _cone,
    "Plane": _plane,
    "Mesh": _mesh,
    "TetMesh": _tets,
    "Points": _points,
    "BasisCurves": _curves,
}
"""Readers by the USD type of the prim."""
