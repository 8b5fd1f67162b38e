"""Colliders as shapes: each collider is read as a primitive, as a mesh, or as the `physics:approximation` of a mesh."""

from collections.abc import Callable

import numpy as np
from pxr import Usd

from warpbots.scene import Box, SceneError, Shape, Sphere, TriangleMesh
from warpbots.scene.shapes.sampled import OpenMesh
from warpbots.usd.geometry.gprim_reader import box, mesh_points, mesh_triangles, plain_shape
from warpbots.usd.geometry.tessellation import SIDES
from warpbots.usd.stage.attributes import authored, schemas, value_of
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.transforms import transform
from warpbots.usd.stage.units import StageUnits

__all__ = ["collider_shape"]

_APPROXIMATION = "physics:approximation"

_EXACT = ("none", "meshSimplification", "convexDecomposition", "sdf")
"""Approximations for which the mesh itself is used, if it is closed."""


def _hull_of_open(vertices: np.ndarray, faces: np.ndarray) -> tuple[TriangleMesh, str]:
    return _hull(vertices), "an open mesh, which has no inside; its convex hull is used instead"


def collider_shape(
    prim: Usd.Prim, here: np.ndarray, frame: StageUnits, note: Note, opened: Callable = _hull_of_open
) -> Shape:
    """The solid of the collider `prim`.

    Args:
        prim: The collider.
        here: Transform from local coordinates of the prim to coordinates of the solid [m], shape (4, 4).
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.
        opened: Function that takes the vertices and faces of an open mesh, and returns a solid and a sentence for the
            note on this mesh.

    Raises:
        SceneError: The geometry of the collider is not supported; the message does not name the prim.
    """
    kind = prim.GetTypeName()
    if kind != "Mesh":
        shape = plain_shape(prim, here, frame.dim)
        if isinstance(shape, TriangleMesh):
            what = "a cone" if kind == "Cone" else f"a {kind} that its transform scales or shears out of shape"
            note(prim, f"{what}; a mesh{'' if kind == 'Cube' else f' of {SIDES} sides'} is used instead")
        return shape
    said = _approximation(prim)
    if said in ("boundingCube", "boundingSphere"):
        return _bounding(said, mesh_points(prim), here)
    if said in _EXACT:
        try:
            return plain_shape(prim, here, frame.dim)
        except OpenMesh:
            solid, words = opened(*mesh_triangles(prim, here))
            note(prim, words)
            return solid
    if said != "convexHull":
        note(prim, f"the unknown approximation {said!r} of a mesh; its convex hull is used instead")
    points = transform(here, mesh_points(prim))
    if opened is _hull_of_open or not _in_a_plane(points):
        return _hull(points)
    solid, words = opened(*mesh_triangles(prim, here))
    note(prim, words)
    return solid


def _approximation(prim: Usd.Prim) -> str:
    """The `physics:approximation` of the collider `prim`, set on `prim` or on a prim above `prim` in the same body."""
    while prim and not authored(prim, _APPROXIMATION) and "PhysicsRigidBodyAPI" not in schemas(prim):
        prim = prim.GetParent()
    return str(value_of(prim, _APPROXIMATION) or "none") if prim and authored(prim, _APPROXIMATION) else "none"


def _hull(points: np.ndarray) -> TriangleMesh:
    """The convex hull of points of shape (n, 3).

    Raises:
        SceneError: The points lie in a plane.
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
    """Whether points are coplanar to single precision, the precision in which USD stores points."""
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
