"""Meshes beside the shapes of rigid bodies and obstacles, for programs that draw materials on meshes alone.

Blender draws spheres, boxes and planes of USD without their materials, and no program draws tetrahedra reliably. The
shape itself becomes a guide.
"""

from collections.abc import Iterator

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpbots.scene import HalfSpace, Points, Posed, Shape, TetMesh, Truss, Union, dimension
from warpbots.surfaces.plates import plate
from warpbots.surfaces.triangles import creased, triangles_of, vertex_normals
from warpbots.usd.geometry.flat_shapes import laid
from warpbots.usd.stage.applied_schemas import RESULT_API
from warpbots.usd.stage.attributes import apply, schemas

__all__ = ["GROUND_REACH", "hide_walls", "renew_surfaces", "write_surfaces"]

GROUND_REACH = 6.0
"""Distance up to which the ground is drawn, relative to the size of the scene or the motion."""

_CELLS = 40
"""Number of cells along the longest edge of the plate of a 2D shape."""

_THIN = 0.11
"""Half of the thickness of such a plate, relative to its longest edge; in front of and behind the bodies."""

_STEEPEST = 0.3
"""Vertical component of the normal of a plane up to which it is a wall."""

_DEEP = 0.5
"""Extent of the ground of a 2D scene across the plane, relative to its extent along it."""


def renew_surfaces(prim: Usd.Prim, shape: Shape) -> None:
    """Define the mesh ``Surface`` beside tetrahedra, which neither Blender nor all versions of Omniverse draw.

    Other shapes are drawn as they are, so that an edit of them is seen. A mesh that is there already is replaced.

    Args:
        prim: The prim of a body or an obstacle that warpbots wrote.
        shape: The shape, in coordinates of `prim` [m].
    """
    there = prim.GetChild("Surface")
    if there and RESULT_API in schemas(there):
        prim.GetStage().RemovePrim(there.GetPath())
    leaves = list(_leaves(prim.GetChild("Shape"), shape, np.eye(4)))
    if any(isinstance(solid, TetMesh) for _, solid, _ in leaves):
        write_surfaces(prim, shape)


def hide_walls(prim: Usd.Prim, shape: Shape) -> None:
    """Make half-spaces guides that are not ground: a wall without end hides what is in front of it or behind it."""
    for leaf, solid, pose in _leaves(prim.GetChild("Shape"), shape, np.eye(4)):
        if isinstance(solid, HalfSpace) and _is_wall(solid, pose):
            UsdGeom.Imageable(leaf).CreatePurposeAttr(UsdGeom.Tokens.guide)


def _is_wall(shape: HalfSpace, pose: np.ndarray) -> bool:
    normal = np.array(shape.normal if len(shape.normal) == 3 else (shape.normal[0], 0.0, shape.normal[1]))
    return bool((pose[:3, :3] @ normal)[2] <= _STEEPEST * np.linalg.norm(normal))


def write_surfaces(prim: Usd.Prim, shape: Shape, middle: np.ndarray | None = None, reach: float = 0.0) -> None:
    """Define the mesh ``Surface`` of a body or an obstacle, and make the shapes that it shows guides.

    Args:
        prim: The prim of the body or obstacle, which has the shape ``Shape`` below it.
        shape: The shape, in coordinates of `prim` [m].
        middle: Point around which half-spaces are drawn, shape (3,); None to leave half-spaces as they are.
        reach: Distance up to which half-spaces are drawn [m].
    """
    stage, parts = prim.GetStage(), []
    for leaf, solid, pose in _leaves(prim.GetChild("Shape"), shape, laid(prim.GetChild("Shape"))):
        if isinstance(solid, Points | Truss) or leaf.GetTypeName() == "Mesh":
            continue
        if isinstance(solid, HalfSpace):
            if middle is None or _is_wall(solid, pose):
                continue
            vertices, faces = _plane(solid, middle, reach)
        else:
            vertices, faces = _triangles(solid)
        if len(faces):
            parts.append((leaf, vertices @ pose[:3, :3].T + pose[:3, 3], faces, isinstance(solid, HalfSpace)))
    path = prim.GetPath().AppendChild("Surface")
    if len(parts) > 1:
        apply(stage.DefinePrim(path, "Xform"), RESULT_API)
    for k, (leaf, vertices, faces, open_) in enumerate(parts):
        _mesh(stage, path.AppendChild(f"Part_{k}") if len(parts) > 1 else path, vertices, faces, open_)
        UsdGeom.Imageable(leaf).CreatePurposeAttr(UsdGeom.Tokens.guide)


def _leaves(prim: Usd.Prim, shape: Shape, pose: np.ndarray) -> Iterator[tuple[Usd.Prim, Shape, np.ndarray]]:
    """The parts of a shape that are neither unions nor posed, with their prims and their poses, shape (4, 4)."""
    if isinstance(shape, Union):
        for k, part in enumerate(shape.shapes):
            yield from _leaves(prim.GetChild(f"Shape_{k}"), part, pose)
    elif isinstance(shape, Posed):
        here, dim = np.eye(4), dimension(shape)
        keep = [0, 1, 2] if dim == 3 else [0, 2]
        here[np.ix_(keep, keep)], here[keep, 3] = np.array(shape.rotation), np.array(shape.translation)
        yield from _leaves(prim.GetChild("Shape"), shape.shape, pose @ here)
    else:
        yield prim, shape, pose


def _triangles(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    if dimension(shape) == 3:
        import trimesh

        mesh = trimesh.Trimesh(*triangles_of(shape), process=False)
        mesh.merge_vertices()
        return np.array(mesh.vertices), np.array(mesh.faces)
    size = float(np.subtract(*shape.bounds[::-1]).max())
    flat, side, faces = plate(shape, size / _CELLS)
    vertices = np.tile(np.insert(flat, 1, 0.0, axis=1), (2, 1))
    vertices[:, 1] = _THIN * size * side
    return vertices, faces


def _plane(shape: HalfSpace, middle: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """A square of the plane of a half-space around the point of the plane that is nearest to `middle`."""
    flat = len(shape.point) == 2
    n, p = (np.insert(np.array(v), 1, 0.0) if flat else np.array(v) for v in (shape.normal, shape.point))
    n = n / np.linalg.norm(n)
    across = np.array([0.0, 1.0, 0.0]) if flat else np.eye(3)[np.abs(n).argmin()]
    across = across - n * (n @ across)
    across = across / np.linalg.norm(across)
    along, center = np.cross(across, n), middle - n * (n @ (middle - p))
    across = across * (_DEEP if flat else 1.0)
    corners = center + reach * np.array([-along - across, along - across, along + across, -along + across])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])


def _mesh(stage: Usd.Stage, path: Sdf.Path, vertices: np.ndarray, faces: np.ndarray, open_: bool) -> None:
    """Define a mesh with normals at the corners of its faces, which are smooth except at creases."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    apply(mesh.GetPrim(), RESULT_API)
    values = np.ascontiguousarray(vertices, dtype=np.float32)
    origin, split = creased(vertices, faces)
    normals = vertex_normals(vertices[origin], split)[split.ravel()].astype(np.float32)
    normals[~normals.any(axis=1)] = (0.0, 0.0, 1.0)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(values))
    mesh.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([values.min(0), values.max(0)])))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray(len(faces), 3))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.ravel().astype(np.int32)))
    mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(normals))
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.faceVarying)
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(open_)
