"""Reading a USD file as a scene."""

import os
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.file_warnings import warn_of_file
from warpbots.input_files import size_doubts
from warpbots.scene import Material, Scene, SceneError, Shape, Sheet, TetMesh, TriangleMesh
from warpbots.scene.field_types import checked
from warpbots.solvers.scene_parts import remedy, takers
from warpbots.usd.geometry.obstacle_prims import read_obstacles
from warpbots.usd.geometry.shape_prims import read_shape
from warpbots.usd.rigid.robot_reader import Robots, read_robots
from warpbots.usd.soft.friction_notes import note_friction
from warpbots.usd.soft.soft_bodies import read_soft_bodies
from warpbots.usd.soft.unmarked_geometry import read_unmarked_geometry
from warpbots.usd.stage.actuators_and_loads import read_parts
from warpbots.usd.stage.applied_schemas import RESULT_API
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.faults import Faults, LocatedError, attempt, explained, refuse
from warpbots.usd.stage.field_prims import read_fields
from warpbots.usd.stage.inventory import WHOLE, Inventory, expanded_inventory
from warpbots.usd.stage.ledger import keeping_ledger
from warpbots.usd.stage.prim_editing import main_prim, read_name
from warpbots.usd.stage.scene_settings import is_contactless, read_dimension, read_settings
from warpbots.usd.stage.size_limits import MAX_PRIMS
from warpbots.usd.stage.stage_files import open_stage
from warpbots.usd.stage.units import stage_frame
from warpbots.usd.stage.unread_physics import unread

__all__ = ["CONTACT_POINTS", "read", "read_meshes", "read_stage"]

CONTACT_POINTS = 64
"""Default number of contact points of a rigid body of a file."""


@checked
def read(
    path: str | os.PathLike,
    material: Material | None = None,
    meters_per_unit: float | None = None,
    contact_points: int = CONTACT_POINTS,
    thickness: float | None = None,
    ignore_loops: bool = False,
    asset_root: str | os.PathLike | None = None,
    max_prims: int = MAX_PRIMS,
) -> Scene:
    """The scene in a USD file.

    Prims with `PhysicsDeformableBodyAPI` (or its Omniverse form) become soft bodies, prims with `PhysicsRigidBodyAPI`
    rigid bodies, with their joints, drives and colliders; static and kinematic colliders become obstacles, which move
    if their transforms have time samples. Reading a file that warpbots wrote gives the same scene to the last bit.
    Numbers are converted to SI units and z up. Physics that is left out or changed on reading, and missing files, are
    listed with their prims in one `FileWarning`.

    An open static mesh, such as a quad for the ground or a terrain, gets a solid behind it, or else a thickness; the
    warning says which of the two. Round primitives with a non-uniform scale, and cones, become meshes of 48 sides.

    A file of static colliders alone gives a scene of obstacles without bodies.

    The coordinates of a joint are zero if its two frames coincide; the joint starts at the poses of its bodies in the
    file. A file specifies contact by friction and restitution only: each of its rigid bodies gets `contact_points`
    contact points, and laws of `warpbots.scene.contacts_between` with the mean of both friction coefficients. All
    colliders touch unless the file filters them, as in UsdPhysics; soft bodies need no laws.

    Args:
        path: A .usd, .usda, .usdc or .usdz file.
        material: Material of soft bodies for which the file has none. If the file marks no bodies, all its meshes and
            other solids that are not colliders become bodies of this material; prims that cannot become bodies are left
            out.
        meters_per_unit: Metres per unit of length, for files that do not define it or define it wrongly.
        contact_points: Number of contact points of a rigid body with colliders; 0 for no contact (``contacts=()``). For
            files written by warpbots, the number in the file is used instead.
        thickness: Thickness [m] of the sheets made of open meshes of soft bodies; None to refuse open meshes.
        ignore_loops: Whether to leave out joints that close loops; each is named in the warning.
        asset_root: Folder that must contain all files that the file refers to, including files referred to by an
            absolute path, by ``..`` or through a link. None for the parent of the file's folder, or for the file's
            folder itself if that parent contains the home folder.
        max_prims: Largest number of prims of the stage, each counted once for every reference to it.

    Returns:
        The scene. Its `source` is the file, unless `meters_per_unit` overrides the unit of the file, or instances of a
        `PointInstancer` became bodies or obstacles. If the scene has no `source`, a file written from it lacks the
        content of this file that warpbots does not read.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is empty, is not a USD file, has no unit of length, was written by a newer version of
            warpbots, or has nothing to simulate; all errors in its bodies, obstacles, joints and actuators are listed.
    """
    stage = open_stage(path, asset_root, max_prims)  # a name keeps the stage alive, and with it the prims in `found`
    scene, found = read_stage(stage, material, meters_per_unit, contact_points, thickness, ignore_loops)
    _warn(scene, found, str(path))
    return scene


@checked
def read_meshes(
    path: str | os.PathLike,
    meters_per_unit: float | None = None,
    asset_root: str | os.PathLike | None = None,
    max_prims: int = MAX_PRIMS,
) -> dict[str, TriangleMesh]:
    """All meshes of a USD file as shapes, whether or not the file has any physics.

    Args:
        path: A USD file.
        meters_per_unit: Metres per unit of length, for files that do not define it or define it wrongly.
        asset_root: Folder that must contain all files that the file refers to, as for `read`.
        max_prims: Largest number of prims of the stage, as for `read`.

    Returns:
        Closed triangle meshes [m], z up, by the paths of their prims. The boundary of a `TetMesh` counts as a mesh.
        Meshes that warpbots has added for display, such as skins of particles, are left out.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file cannot be read, has no mesh, or has a mesh that is not watertight.
    """
    stage = open_stage(path, asset_root, max_prims)
    with explained(path, stage.GetPseudoRoot()):
        frame = stage_frame(stage, 3, meters_per_unit)
        prims = [p for p in stage.Traverse(Usd.TraverseInstanceProxies()) if p.GetTypeName() in ("Mesh", "TetMesh")]
        prims = [p for p in prims if RESULT_API not in schemas(p)]
        if not prims:
            raise SceneError(f"{path}: the file has no Mesh and no TetMesh")
        return {str(prim.GetPath()): _closed(prim, read_shape(prim, frame)) for prim in prims}


def _closed(prim: Usd.Prim, shape: Shape) -> Shape:
    """The boundary of a `TetMesh`, or the triangles of a `Sheet`, as a `TriangleMesh`; other shapes are unchanged."""
    if not isinstance(shape, TetMesh | Sheet):
        return shape
    try:
        return TriangleMesh(shape.vertices, shape.surface if isinstance(shape, TetMesh) else shape.faces)
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def read_stage(
    stage: Usd.Stage,
    material: Material | None = None,
    meters_per_unit: float | None = None,
    contact_points: int = CONTACT_POINTS,
    thickness: float | None = None,
    ignore_loops: bool = True,
) -> tuple[Scene, Inventory]:
    """The scene in `stage`, and the inventory of its prims; arguments and errors are as for `read`."""
    file = stage.GetRootLayer().realPath or stage.GetRootLayer().identifier
    _check_options(contact_points, thickness)
    source = _source(stage, meters_per_unit)
    with explained(file, stage.GetPseudoRoot()), keeping_ledger() as ledger:
        found, instanced = expanded_inventory(stage)
        frame = stage_frame(stage, read_dimension(found.settings), meters_per_unit)
        faults: Faults = []
        if found.bodies:
            soft = read_soft_bodies(found, frame, material, thickness, faults)
        else:
            found, soft = read_unmarked_geometry(found, stage, file, frame, material, thickness)
        parts = read_parts(found, frame, faults)
        obstacles = attempt(faults, read_obstacles, found, frame) or []
        note_friction(soft.values(), obstacles, found.note)
        actuators = parts.pop("actuators")
        robots = attempt(faults, read_robots, found, frame, actuators, obstacles, int(contact_points), ignore_loops)
        robots = robots or Robots({}, (), (), tuple(actuators), None)
        laws = [*parts["contacts"], *(robots.contacts or ())]
        given = bool(laws) or robots.contacts is not None or is_contactless(found.settings, frame)
        values = parts | read_settings(found.settings, frame, faults)
        fields, root = read_fields(found, faults), main_prim(stage)
        refuse(faults, file)
        values |= {
            "bodies": [b for n in found.bodies for b in ([soft[n].body] if n in soft else robots.bodies.get(n, ()))],
            "actuators": [*robots.actuators, *robots.motors],
            "obstacles": obstacles,
            "joints": robots.joints,
            "contacts": laws if given else None,
            "fields": fields,
            "name": read_name(root) if root else Path(file).stem,
            "source": None if instanced else source,
        }
        scene = attempt(faults, Scene, **values)
        refuse(faults, file)
        found.left_out.extend(unread(stage, ledger, found.settings))
        return scene, found


def _check_options(contact_points: int, thickness: float | None) -> None:
    if int(contact_points) != contact_points or contact_points < 0:
        raise SceneError(f"contact_points must be a number of points >= 0, got {contact_points!r}")
    if thickness is not None and not thickness > 0.0:
        raise SceneError(f"thickness must be positive [m], or None for no sheets, got {thickness!r}")


def _source(stage: Usd.Stage, meters_per_unit: float | None) -> str | None:
    """Path of the file of `stage`, or None if the unit of length of the file is overridden."""
    said = UsdGeom.GetStageMetersPerUnit(stage) if UsdGeom.StageHasAuthoredMetersPerUnit(stage) else None
    return stage.GetRootLayer().realPath or None if meters_per_unit in (None, said) else None


def _warn(scene: Scene, found: Inventory, name: str) -> None:
    """Issue one warning that lists everything left out, and doubts about the unit of length."""
    if scene.bodies and not takers(scene):
        found.note(None, remedy(scene, ""))
    size = float(np.max(np.subtract(*scene.bounds[::-1])))
    found.left_out.sort(key=lambda note: note[0] != WHOLE)  # notes on the whole file come first
    warn_of_file(name, [*found.left_out, *size_doubts("the robot", size, "meters_per_unit")])
