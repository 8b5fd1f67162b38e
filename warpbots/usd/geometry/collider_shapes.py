"""The solid that a collider stands for: its primitive, its mesh, or what `physics:approximation` makes of its mesh."""

from collections.abc import Callable

import numpy as np
from pxr import Usd

from warpbots.scene import Box, SceneError, Shape, Sphere, TriangleMesh
from warpbots.usd.geometry.gprim_reader import box, mesh_points, mesh_triangles, plain_shape
from warpbots.usd.geometry.tessellation import SIDES
from warpbots.usd.stage.attributes import authored, schemas
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.transforms import transform
from warpbots.usd.stage.units import Frame

__all__ = ["collider_shape"]

_APPROXIMATION = "physics:approximation"

_EXACT = ("none", "meshSimplification", "convexDecomposition", "sdf")
"""Approximations that stand for the mesh itself, if it is closed."""


def _hull_of_open(vertices: np.ndarray, faces: np.ndarray) -> tuple[TriangleMesh, str]:
    return _hull(vertices), "a mesh that is open and has no inside; its convex hull stands for it"


def collider_shape(
    prim: Usd.Prim, here: np.ndarray, frame: Frame, note: Note, opened: Callable = _hull_of_open
) -> Shape:
    """The solid that the geometry of the collider `prim` stands for.

    Args:
        prim: The collider.
        here: Its local coordinates to those of the solid [m], shape (4, 4).
        frame: Units and axes of the stage.
        note: Takes what is not as the file says it.
        opened: Makes a solid and words about it of the vertices and faces of a mesh without an inside.

    Raises:
        SceneError: It is no solid that warpbots knows; the message does not name the prim.
    """
    kind = prim.GetTypeName()
    if kind != "Mesh":
        shape = plain_shape(prim, here, frame.dim)
        if isinstance(shape, TriangleMesh):
            what = "a cone" if kind == "Cone" else f"a {kind} that its transform scales or shears out of shape"
            note(prim, f"{what}; a mesh{'' if kind == 'Cube' else f' of {SIDES} sides'} stands for it")
        return shape
    said = _approximation(prim)
    if said in ("boundingCube", "boundingSphere"):
        return _bounding(said, mesh_points(prim), here)
    if said in _EXACT:
        try:
            return plain_shape(prim, here, frame.dim)
        except SceneError as error:
            if "watertight" not in str(error):
                raise
            solid, words = opened(*mesh_triangles(prim, here))
            note(prim, words)
            return solid
    if said != "convexHull":
        note(prim, f"the unknown approximation {said!r} of a mesh; its convex hull stands for it")
    points = transform(here, mesh_points(prim))
    if opened is _hull_of_open or not _in_a_plane(points):
        return _hull(points)
    solid, words = opened(*mesh_triangles(prim, here))
    note(prim, words)
    return solid


def _approximation(prim: Usd.Prim) -> str:
    """What stands for the collider `prim`, by itself or by what is above it in its body."""
    while prim and not authored(prim, _APPROXIMATION) and "PhysicsRigidBodyAPI" not in schemas(prim):
        prim = prim.GetParent()
    return str(prim.GetAttribute(_APPROXIMATION).Get() or "none") if prim and authored(prim, _APPROXIMATION) else "none"


def _hull(points: np.ndarray) -> TriangleMesh:
    """The convex hull of points of shape (n, 3).

    Raises:
        SceneError: They lie in a plane.
    """
    import trimesh
    from scipy.spatial import QhullError

    try:
        mesh = None if _in_a_plane(points) else trimesh.convex.convex_hull(points)
    except (QhullError, ValueError):
        mesh = None
    if mesh is None:
        raise SceneError(
            f"its {len(points)} points lie in a plane, so that its convex hull has no volume; give the mesh a thickness"
        )
    return TriangleMesh(np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces))


def _in_a_plane(points: np.ndarray) -> bool:
    """Whether points are so nearly in a plane that USD, which keeps them in single precision, cannot mean otherwise."""
    widths = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return len(points) < 4 or bool(widths[2] <= 1e-6 * widths[0])


def _bounding(said: str, points: np.ndarray, here: np.ndarray) -> Box | Sphere | Shape:
    lower, upper = points.min(axis=0), points.max(axis=0)
    middle = np.eye(4)
    middle[:3, 3] = (lower + upper) / 2.0
    if said == "boundingCube":
        middle[:3, :3] = np.diag((upper - lower) / 2.0)
        return box(here @ middle, 3)
    moved = transform(here, points)
    center = (here @ middle)[:3, 3]
    return Sphere(tuple(center.tolist()), float(np.linalg.norm(moved - center, axis=1).max()))
