"""Reading: a USD file as a scene."""

import logging
import os
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.input_files import doubt_size
from warpbots.scene import Material, Scene, SceneError, Shape, Sheet, TetMesh, TriangleMesh
from warpbots.scene.field_types import checked
from warpbots.usd.geometry.obstacle_prims import read_obstacles
from warpbots.usd.geometry.shape_prims import read_shape
from warpbots.usd.rigid.robot_reader import Robots, read_robots
from warpbots.usd.soft.soft_bodies import lost_velocities, read_soft_bodies
from warpbots.usd.soft.unmarked_geometry import read_unmarked_geometry
from warpbots.usd.stage.actuators_and_loads import read_parts
from warpbots.usd.stage.inventory import Inventory, lines_of, take_inventory
from warpbots.usd.stage.point_instancers import expand
from warpbots.usd.stage.prim_editing import main_prim, read_name
from warpbots.usd.stage.roles import is_soft
from warpbots.usd.stage.scene_settings import read_dimension, read_settings
from warpbots.usd.stage.size_limits import MAX_PRIMS
from warpbots.usd.stage.stage_files import attempt, explained, open_stage
from warpbots.usd.stage.units import stage_frame

__all__ = ["CONTACT_POINTS", "read", "read_meshes", "read_stage"]

_logger = logging.getLogger("warpbots")

CONTACT_POINTS = 64
"""Points with which a rigid body of a file touches others, unless somebody says otherwise."""

_EXPANDED = "a point instancer; its {} instances stand for themselves, so that Scene.source does not name this file"
"""What is said of an instancer whose instances are bodies or obstacles."""


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

    Prims with `PhysicsDeformableBodyAPI` (or the one of Omniverse) become soft bodies, those with `PhysicsRigidBodyAPI`
    rigid ones, with their joints, drives and colliders; static colliders become obstacles, and what warpbots itself has
    written becomes what it was, to the last bit. Numbers are converted to SI units and z up. Physics that cannot be
    simulated, or not as the file says it, and files that are missing, are listed with their prims in one warning.

    Static meshes that are open, such as a quad for the ground or a terrain, get a solid behind them, or else a
    thickness; the warning says which. Round primitives that are not round any more by their scale, and cones, are
    meshes of 48 sides.

    Joints are at zero where both of their frames coincide, and start where the file has the bodies. A file knows of
    contact no more than friction: its rigid bodies touch with `contact_points` points each, by laws of
    `warpbots.scene.contacts_between` with the mean of both coefficients.

    Args:
        path: A .usd, .usda, .usdc or .usdz file.
        material: What bodies are made of for which the file does not say it. If the file marks no bodies, all its
            meshes and other solids that are no colliders become bodies of this material; what cannot is left out.
        meters_per_unit: Metres per unit of length of the file, for files that do not say it or say it wrongly.
        contact_points: Number of points with which a rigid body with colliders touches others; 0 for no contact. Files
            of warpbots say it themselves.
        thickness: Thickness [m] of the sheets that meshes of soft bodies become which are open and have no inside; None
            not to make any.
        ignore_loops: Whether to leave out joints that close loops; each is named in the warning.
        asset_root: Folder in which all must lie that the file refers to, be it by an absolute path, ``..`` or a link;
            None for the one above its own, or its own where that holds the home folder.
        max_prims: Prims that the stage may have, each counted once for every reference that it comes through.

    Returns:
        The scene. Its `source` is the file, unless `meters_per_unit` overrides what the file says, or instances of a
        `PointInstancer` became bodies or obstacles: then a file that is written from the scene shares nothing with this
        one.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is empty, no USD file, without unit of length, of a newer version of warpbots, or has
            nothing that can be simulated; every fault of its bodies, obstacles, joints and actuators is listed.
    """
    stage = open_stage(path, asset_root, max_prims)  # kept by name: without it the prims in `found` would be gone
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
    """All meshes of a USD file, whether or not it has any physics, to be used as shapes.

    Args:
        path: A USD file.
        meters_per_unit: Metres per unit of length of the file, for files that do not say it or say it wrongly.
        asset_root: Folder in which all must lie that the file refers to, as for `read`.
        max_prims: Prims that the stage may have, as for `read`.

    Returns:
        Path of the prim to closed triangle mesh [m], z up. The boundary of a `TetMesh` counts as a mesh.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file cannot be read, has no mesh, or has a mesh that is not watertight.
    """
    stage = open_stage(path, asset_root, max_prims)
    with explained(path, stage.GetPseudoRoot()):
        frame = stage_frame(stage, 3, meters_per_unit)
        prims = [p for p in stage.Traverse(Usd.TraverseInstanceProxies()) if p.GetTypeName() in ("Mesh", "TetMesh")]
        if not prims:
            raise SceneError(f"{path}: the file has no Mesh and no TetMesh")
        return {str(prim.GetPath()): _closed(prim, read_shape(prim, frame)) for prim in prims}


def _closed(prim: Usd.Prim, shape: Shape) -> Shape:
    """The boundary of tetrahedra, or the triangles of a sheet, as a `TriangleMesh`; other shapes as they are."""
    if not isinstance(shape, TetMesh | Sheet):
        return shape
    try:
        return TriangleMesh(shape.vertices, shape.surface if isinstance(shape, TetMesh) else shape.faces)
    except SceneError as error:
        raise SceneError(f"{prim.GetPath()}: {error}") from None


def read_stage(
    stage: Usd.Stage,
    material: Material | None = None,
    meters_per_unit: float | None = None,
    contact_points: int = CONTACT_POINTS,
    thickness: float | None = None,
    ignore_loops: bool = True,
) -> tuple[Scene, Inventory]:
    """The scene in `stage`, and the prims that it was read from; arguments and errors as for `read`."""
    name = stage.GetRootLayer().realPath or stage.GetRootLayer().identifier
    with explained(name, stage.GetPseudoRoot()):
        return _read(stage, name, material, meters_per_unit, contact_points, thickness, ignore_loops)


def _read(
    stage: Usd.Stage, name: str, material: Material | None, meters_per_unit: float | None, contact_points: int,
    thickness: float | None, ignore_loops: bool,
) -> tuple[Scene, Inventory]:  # fmt: skip
    _check_options(contact_points, thickness)
    found, instanced = _expanded_inventory(stage)
    frame = stage_frame(stage, read_dimension(found.settings), meters_per_unit)
    faults: list[str] = []
    if found.bodies:
        soft = read_soft_bodies(found, frame, material, thickness, faults)
    else:
        found, soft = read_unmarked_geometry(found, stage, name, frame, material, thickness)
    parts = read_parts(found, frame, faults)
    obstacles = attempt(faults, read_obstacles, found, frame) or []
    actuators = parts.pop("actuators")
    robots = attempt(faults, read_robots, found, frame, actuators, obstacles, int(contact_points), ignore_loops)
    robots = robots or Robots({}, (), (), tuple(actuators), ())
    root = main_prim(stage)
    values = parts | read_settings(found.settings, frame, faults) | {
        "bodies": [b for n in found.bodies for b in ([soft[n]] if n in soft else robots.bodies.get(n, ()))],
        "actuators": [*robots.actuators, *robots.motors],
        "obstacles": obstacles,
        "joints": robots.joints,
        "contacts": [*parts["contacts"], *robots.contacts],
        "name": read_name(root) if root else Path(name).stem,
        "source": None if instanced else _source(stage, meters_per_unit),
    }  # fmt: skip
    scene = None if faults else attempt(faults, Scene, **values)
    if faults:
        raise SceneError(f"{name}: " + "\n  ".join(faults))
    return scene, found


def _check_options(contact_points: int, thickness: float | None) -> None:
    if int(contact_points) != contact_points or contact_points < 0:
        raise SceneError(f"contact_points must be a number of points >= 0, got {contact_points!r}")
    if thickness is not None and not thickness > 0.0:
        raise SceneError(f"thickness must be positive [m], or None for no sheets, got {thickness!r}")


def _expanded_inventory(stage: Usd.Stage) -> tuple[Inventory, bool]:
    """The prims of `stage` with the instances of point instancers, and whether there are any such instances.

    Instancers without physics are expanded only where no prim is marked as a body.
    """
    expanded = expand(stage)
    found = take_inventory(stage)
    if not found.bodies:
        lost: list[tuple[str, str]] = []
        expanded |= expand(stage, lost)
        found = take_inventory(stage)
        found.left_out.extend(lost)
    found.left_out.extend((path, _EXPANDED.format(count)) for path, count in expanded.items())
    return found, bool(expanded)


def _source(stage: Usd.Stage, meters_per_unit: float | None) -> str | None:
    """The file of `stage`, unless its unit of length is another one than it says."""
    said = UsdGeom.GetStageMetersPerUnit(stage) if UsdGeom.StageHasAuthoredMetersPerUnit(stage) else None
    return stage.GetRootLayer().realPath or None if meters_per_unit in (None, said) else None


def _warn(scene: Scene, found: Inventory, name: str) -> None:
    """Say in one warning what was left out, and in another if the unit of length looks wrong."""
    for prim in found.bodies.values():
        if is_soft(prim) and lost_velocities(prim):
            found.left_out.append((str(prim.GetPath()), "velocities that differ from particle to particle"))
    if found.left_out:
        lines = "".join(f"\n  {line}" for line in lines_of(found.left_out))
        _logger.warning("%s: left out, or taken otherwise, what warpbots does not simulate:%s", name, lines)
    size = float(np.max(np.subtract(*scene.bounds[::-1])))
    doubt_size(name, "the robot", size, "meters_per_unit")
