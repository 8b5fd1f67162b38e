"""Colliders of rigid bodies: which geometry moves with a body, and the solid that it stands for."""

from collections.abc import Callable

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.scene import Box, SceneError, Shape, Sphere, TriangleMesh
from warpbots.usd.frame import START, Frame, local_matrix, transform
from warpbots.usd.geometry import box, mesh_points, plain_shape
from warpbots.usd.schema import MOTION_API
from warpbots.usd.shapes import read_shape_in
from warpbots.usd.solids import is_own
from warpbots.usd.values import authored, axis_number, enabled, schemas

__all__ = ["Note", "body_of", "colliders", "is_moving", "read_collider"]

_SIDES = 48
"""Sides of the mesh that stands for a cone."""

_APPROXIMATION = "physics:approximation"
_EXACT = ("none", "meshSimplification", "convexDecomposition", "sdf")
"""Approximations that stand for the mesh itself, if it is closed."""

Note = Callable[[Usd.Prim, str], None]
"""Takes a prim and what about it is not simulated as the file says it."""


def is_moving(prim: Usd.Prim) -> bool:
    """Whether `prim` is a rigid body that is simulated: enabled and not kinematic."""
    if "PhysicsRigidBodyAPI" not in schemas(prim) or not enabled(prim, "physics:rigidBodyEnabled"):
        return False
    if MOTION_API in schemas(prim):  # kinematic, so that a player shows its motion
        return True
    return not (authored(prim, "physics:kinematicEnabled") and prim.GetAttribute("physics:kinematicEnabled").Get(START))


def body_of(prim: Usd.Prim) -> Usd.Prim | None:
    """The rigid body that `prim` moves with: itself or the nearest one above it, if that moves, or None."""
    while prim and not prim.IsPseudoRoot():
        if "PhysicsRigidBodyAPI" in schemas(prim):
            return prim if is_moving(prim) else None
        prim = prim.GetParent()
    return None


def colliders(body: Usd.Prim) -> list[Usd.Prim]:
    """Geometry that collides for `body`, without that of rigid bodies below it.

    A collider that is no geometry stands for all geometry below it, if that has none of its own.
    """
    if is_own(body):
        return [body.GetChild("Shape")]
    parts = _belonging(body)
    said = [p for p in parts if "PhysicsCollisionAPI" in schemas(p)]
    found: list[Usd.Prim] = []
    for part in said:
        if not enabled(part, "physics:collisionEnabled"):
            continue
        if part.IsA(UsdGeom.Gprim):
            found.append(part)
        elif not any(s != part and s.GetPath().HasPrefix(part.GetPath()) for s in said):
            found += [p for p in parts if p.IsA(UsdGeom.Gprim) and p.GetPath().HasPrefix(part.GetPath())]
    return found


def read_collider(body: Usd.Prim, base: np.ndarray, prim: Usd.Prim, frame: Frame, note: Note) -> Shape | None:
    """The solid of the collider `prim` in the frame of its body [m]; None, and a note, where there is none.

    Args:
        body: The rigid body.
        base: Local coordinates of the body's prim to its frame [m], shape (4, 4).
        prim: The collider, at or below the body.
        frame: Units and axes of the stage.
        note: Takes what is not as the file says it.
    """
    try:
        if prim == body:
            return _solid(prim, base, frame, note)
        parent = _to_body(body, base, prim.GetParent())
        if is_own(body) and prim == body.GetChild("Shape"):
            return read_shape_in(prim, parent, frame)
        return _solid(prim, local_matrix(prim, parent, parent), frame, note)
    except SceneError as error:
        note(prim, f"a collider that is left out: {str(error).removeprefix(f'{prim.GetPath()}: ')}")
        return None


def _belonging(body: Usd.Prim) -> list[Usd.Prim]:
    found, walk = [], iter(Usd.PrimRange(body, Usd.TraverseInstanceProxies()))
    for prim in walk:
        if prim != body and "PhysicsRigidBodyAPI" in schemas(prim):
            walk.PruneChildren()
        else:
            found.append(prim)
    return found


def _to_body(body: Usd.Prim, base: np.ndarray, prim: Usd.Prim) -> np.ndarray:
    """Local coordinates of `prim`, at or below `body`, to the frame of the body, shape (4, 4)."""
    result, way = base, []
    while prim != body:
        way.append(prim)
        prim = prim.GetParent()
    for step in reversed(way):
        result = local_matrix(step, result, result)
    return result


def _solid(prim: Usd.Prim, here: np.ndarray, frame: Frame, note: Note) -> Shape:
    kind = prim.GetTypeName()
    if kind == "Cone":
        note(prim, f"a cone; a mesh of {_SIDES} sides stands for it")
        return _cone(prim, here)
    if kind == "Plane":
        raise SceneError("a plane without end cannot move; take a Cube")
    if kind != "Mesh":
        return plain_shape(prim, here, frame.dim)
    said = str(prim.GetAttribute(_APPROXIMATION).Get() or "none") if authored(prim, _APPROXIMATION) else "none"
    if said in ("boundingCube", "boundingSphere"):
        return _bounding(said, mesh_points(prim), here)
    if said in _EXACT:
        try:
            return plain_shape(prim, here, frame.dim)
        except SceneError as error:
            if "watertight" not in str(error):
                raise
            note(prim, "a mesh that is open and has no inside; its convex hull stands for it")
    elif said != "convexHull":
        note(prim, f"the unknown approximation {said!r} of a mesh; its convex hull stands for it")
    return hull(transform(here, mesh_points(prim)))


def hull(points: np.ndarray) -> TriangleMesh:
    """The convex hull of points of shape (n, 3).

    Raises:
        SceneError: They lie in a plane.
    """
    import trimesh
    from scipy.spatial import QhullError

    try:
        mesh = trimesh.convex.convex_hull(points)
    except (QhullError, ValueError):
        raise SceneError(
            f"its {len(points)} points lie in a plane, so that its convex hull has no volume; give the mesh a thickness"
        ) from None
    return TriangleMesh(np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces))


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


def _cone(prim: Usd.Prim, here: np.ndarray) -> TriangleMesh:
    cone = UsdGeom.Cone(prim)
    radius, height = float(cone.GetRadiusAttr().Get(START)), float(cone.GetHeightAttr().Get(START))
    k = axis_number(cone.GetAxisAttr().Get(START))
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    radius *= np.sqrt(2.0 * np.pi / _SIDES / np.sin(2.0 * np.pi / _SIDES))  # of a polygon of the area of the circle
    points = np.zeros((_SIDES + 2, 3))
    points[:_SIDES, (k + 1) % 3], points[:_SIDES, (k + 2) % 3] = radius * np.cos(angle), radius * np.sin(angle)
    points[:, k] = -height / 2.0
    points[-1, k] = height / 2.0
    now = np.arange(_SIDES)
    after = (now + 1) % _SIDES
    base, top = np.full(_SIDES, _SIDES), np.full(_SIDES, _SIDES + 1)
    faces = np.concatenate([np.stack([after, now, base], axis=1), np.stack([now, after, top], axis=1)])
    return TriangleMesh(transform(here, points), faces)
