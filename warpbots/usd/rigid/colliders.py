"""Colliders of rigid bodies: which geometry moves with a body, and the solid that it stands for."""

from collections.abc import Callable

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.scene import Box, SceneError, Shape, Sphere, TriangleMesh
from warpbots.usd.geometry.foreign_shapes import box, mesh_points, mesh_triangles, plain_shape
from warpbots.usd.geometry.shape_prims import read_shape_in
from warpbots.usd.geometry.solid_prims import is_own
from warpbots.usd.geometry.tessellation import SIDES
from warpbots.usd.stage.schema import BODY_APIS, MOTION_API
from warpbots.usd.stage.units import START, Frame, local_matrix, transform
from warpbots.usd.stage.values import authored, enabled, schemas

__all__ = [
    "Note",
    "belonging",
    "body_of",
    "colliders",
    "collides",
    "is_moving",
    "is_rigid",
    "is_soft",
    "read_collider",
    "solid_of",
]

_SOFT_SWITCHES = (
    "omniphysics:deformableBodyEnabled", "physics:deformableBodyEnabled", "physics:bodyEnabled",
    "physxDeformable:deformableEnabled",
)  # fmt: skip

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


def is_soft(prim: Usd.Prim) -> bool:
    """Whether `prim` is a soft body that nobody has switched off."""
    return bool(schemas(prim) & set(BODY_APIS)) and all(enabled(prim, name) for name in _SOFT_SWITCHES)


def is_rigid(prim: Usd.Prim) -> bool:
    """Whether `prim` is a rigid body that is simulated, and no soft one."""
    return is_moving(prim) and not is_soft(prim)


def collides(prim: Usd.Prim) -> bool:
    """Whether `prim` is a collider that is switched on, and no trigger, which tells of contact and resists nothing."""
    said = "PhysicsCollisionAPI" in schemas(prim) and "PhysxTriggerAPI" not in schemas(prim)
    return said and enabled(prim, "physics:collisionEnabled")


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
    parts = belonging(body)
    said = [p for p in parts if "PhysicsCollisionAPI" in schemas(p)]
    found: list[Usd.Prim] = []
    for part in said:
        if not collides(part):
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
            return _moving_solid(prim, base, frame, note)
        parent = _to_body(body, base, prim.GetParent())
        if is_own(body) and prim == body.GetChild("Shape"):
            return read_shape_in(prim, parent, frame)
        return _moving_solid(prim, local_matrix(prim, parent, parent), frame, note)
    except SceneError as error:
        note(prim, f"a collider that is left out: {str(error).removeprefix(f'{prim.GetPath()}: ')}")
        return None


def belonging(body: Usd.Prim) -> list[Usd.Prim]:
    """`body` and all prims below it that belong to no other rigid body."""
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


def _approximation(prim: Usd.Prim) -> str:
    """What stands for the collider `prim`, by itself or by what is above it in its body."""
    while prim and not authored(prim, _APPROXIMATION) and "PhysicsRigidBodyAPI" not in schemas(prim):
        prim = prim.GetParent()
    return str(prim.GetAttribute(_APPROXIMATION).Get() or "none") if prim and authored(prim, _APPROXIMATION) else "none"


def _moving_solid(prim: Usd.Prim, here: np.ndarray, frame: Frame, note: Note) -> Shape:
    if prim.GetTypeName() == "Plane":
        raise SceneError("a plane without end cannot move; take a Cube")
    return solid_of(prim, here, frame, note)


def _hull_of_open(vertices: np.ndarray, faces: np.ndarray) -> tuple[TriangleMesh, str]:
    return hull(vertices), "a mesh that is open and has no inside; its convex hull stands for it"


def solid_of(prim: Usd.Prim, here: np.ndarray, frame: Frame, note: Note, opened: Callable = _hull_of_open) -> Shape:
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
        return hull(points)
    solid, words = opened(*mesh_triangles(prim, here))
    note(prim, words)
    return solid


def hull(points: np.ndarray) -> TriangleMesh:
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
