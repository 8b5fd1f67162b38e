"""Reading: a USD file as a scene."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.reading import doubt_size
from warpbots.scene import Material, Scene, SceneError, Shape, Sheet, SoftBody, TetMesh, TriangleMesh
from warpbots.scene.field_types import checked
from warpbots.usd.geometry.foreign_shapes import NoGeometry
from warpbots.usd.geometry.obstacle_prims import read_obstacle
from warpbots.usd.geometry.shape_prims import read_shape
from warpbots.usd.rigid.colliders import is_rigid, is_soft
from warpbots.usd.rigid.robot_reader import Robots, read_robots
from warpbots.usd.soft.soft_bodies import lost_velocities, read_body
from warpbots.usd.stage.instancers import expand
from warpbots.usd.stage.inventory import Survey, survey
from warpbots.usd.stage.parts import read_part
from warpbots.usd.stage.schema import REGION_API, RESULT_API
from warpbots.usd.stage.settings import read_dimension, read_domain, read_fluid, read_gravity, read_task
from warpbots.usd.stage.size_limits import MAX_PRIMS
from warpbots.usd.stage.stage_files import attempt, explained, open_stage
from warpbots.usd.stage.target import main_prim, read_name
from warpbots.usd.stage.units import Frame, stage_frame
from warpbots.usd.stage.values import schemas

__all__ = ["CONTACT_POINTS", "read", "read_meshes", "read_obstacles", "read_stage"]

_logger = logging.getLogger("warpbots")

CONTACT_POINTS = 64
"""Points with which a rigid body of a file touches others, unless somebody says otherwise."""

_EXPANDED = "a point instancer; its {} instances stand for themselves, so that Scene.source does not name this file"
"""What is said of an instancer whose instances are bodies or obstacles."""

_MANY = 3
"""Prims that are listed one by one where the same is to be said of all."""


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
) -> tuple[Scene, Survey]:
    """The scene in `stage`, and the prims that it was read from; arguments and errors as for `read`."""
    name = stage.GetRootLayer().realPath or stage.GetRootLayer().identifier
    with explained(name, stage.GetPseudoRoot()):
        return _read(stage, name, material, meters_per_unit, contact_points, thickness, ignore_loops)


def _read(
    stage: Usd.Stage, name: str, material: Material | None, meters_per_unit: float | None, contact_points: int,
    thickness: float | None, ignore_loops: bool,
) -> tuple[Scene, Survey]:  # fmt: skip
    expanded = expand(stage)
    found = survey(stage)
    if not found.bodies:
        lost: list[tuple[str, str]] = []
        expanded |= expand(stage, lost)
        found = survey(stage)
        found.left_out.extend(lost)
    found.left_out.extend((path, _EXPANDED.format(count)) for path, count in expanded.items())
    frame = stage_frame(stage, read_dimension(found.settings), meters_per_unit)
    if int(contact_points) != contact_points or contact_points < 0:
        raise SceneError(f"contact_points must be a number of points >= 0, got {contact_points!r}")
    if thickness is not None and not thickness > 0.0:
        raise SceneError(f"thickness must be positive [m], or None for no sheets, got {thickness!r}")
    faults: list[str] = []
    if found.bodies:
        soft = {
            n: attempt(faults, read_body, prim, n, frame, material, thickness)
            for n, prim in found.bodies.items() if not is_rigid(prim)
        }  # fmt: skip
    else:
        found, soft = _loose_bodies(found, _no_solids(stage), name, frame, material, thickness)
    actuators = [attempt(faults, read_part, prim, n, frame) for n, prim in found.actuators.items()]
    obstacles = attempt(faults, read_obstacles, found, frame) or []
    robots = attempt(faults, read_robots, found, frame, actuators, obstacles, int(contact_points), ignore_loops)
    robots = robots or Robots({}, (), (), tuple(actuators), ())
    contacts = [attempt(faults, read_part, prim, n, frame) for n, prim in found.contacts.items()]
    task = attempt(faults, read_task, found.settings, frame)
    root = main_prim(stage)
    values = {
        "bodies": [b for n in found.bodies for b in ([soft[n]] if n in soft else robots.bodies.get(n, ()))],
        "actuators": [*robots.actuators, *robots.motors],
        "obstacles": obstacles,
        "constraints": [attempt(faults, read_part, prim, n, frame) for n, prim in found.constraints.items()],
        "loads": [attempt(faults, read_part, prim, n, frame) for n, prim in found.loads.items()],
        "attachments": [attempt(faults, read_part, prim, n, frame) for n, prim in found.attachments.items()],
        "joints": robots.joints,
        "contacts": [*contacts, *robots.contacts],
        "gravity": read_gravity(found.settings, frame),
        "domain": read_domain(found.settings, frame),
        "fluid": attempt(faults, read_fluid, found.settings, frame),
        "task": task,
        "name": read_name(root) if root else Path(name).stem,
        "source": None if expanded else _source(stage, meters_per_unit),
    }
    scene = None if faults else attempt(faults, Scene, **values)
    if faults:
        raise SceneError(f"{name}: " + "\n  ".join(faults))
    return scene, found


def _loose_bodies(
    found: Survey, other: list[Usd.Prim], name: str, frame: Frame, material: Material | None, thickness: float | None
) -> tuple[Survey, dict[str, SoftBody]]:
    """`found` with its loose geometry as bodies of `material`; what can be none is left out, and so is `other`.

    Raises:
        SceneError: There is no such geometry, or no material for it.
    """
    paths = [str(prim.GetPath()) for prim in found.loose.values()]
    if paths and material is None:
        which = ", ".join(paths[:9]) + (f" and {len(paths) - 9} more" if len(paths) > 9 else "")
        raise SceneError(
            f"{name}: no prim is marked as a body (PhysicsDeformableBodyAPI or PhysicsRigidBodyAPI); pass "
            f"material=Material(youngs_modulus=...) to make bodies of {which}"
        )
    soft: dict[str, SoftBody] = {}
    found.left_out.extend((str(prim.GetPath()), f"a {prim.GetTypeName()}, which is no solid") for prim in other)
    for n, prim in found.loose.items():
        faults: list[str] = []
        body = attempt(faults, read_body, prim, n, frame, material, thickness)
        if body is not None:
            soft[n] = body
        path = str(prim.GetPath())
        found.left_out.extend((path, fault.removeprefix(f"{path}: ")) for fault in faults)
    if not soft:
        reasons = "".join(f"\n  {line}" for line in _by_reason(found.left_out))
        raise SceneError(f"{name}: the file has no body and no solid that could become one{reasons}")
    return found._replace(bodies={n: found.loose[n] for n in soft}, loose={}), soft


def _no_solids(stage: Usd.Stage) -> list[Usd.Prim]:
    """Geometry that fills no space: curves, and surfaces other than meshes."""
    prims = stage.Traverse(Usd.TraverseInstanceProxies())
    curves = (UsdGeom.Curves, UsdGeom.NurbsPatch)
    return [p for p in prims if any(p.IsA(kind) for kind in curves) and not schemas(p) & {REGION_API, RESULT_API}]


def read_obstacles(found: Survey, frame: Frame) -> list:
    """All obstacles; those without any geometry are added to what is left out.

    Raises:
        SceneError: A line for each that is no solid which warpbots knows: what stands on it would fall.
    """
    obstacles: list = []
    faults: list[str] = []

    def note(prim: Usd.Prim, reason: str) -> None:
        found.left_out.append((str(prim.GetPath()), reason))

    for n, prim in list(found.obstacles.items()):
        try:
            with explained(prim.GetPath(), prim):
                obstacles.append(read_obstacle(prim, n, frame, note))
        except NoGeometry:
            del found.obstacles[n]
            note(prim, "a collider without a solid at or below it that warpbots knows")
        except SceneError as error:
            faults.append(f"{error}; to read the file without this collider, switch it off (physics:collisionEnabled)")
    if faults:
        raise SceneError("\n  ".join(faults))
    return obstacles


def _source(stage: Usd.Stage, meters_per_unit: float | None) -> str | None:
    """The file of `stage`, unless its unit of length is another one than it says."""
    said = UsdGeom.GetStageMetersPerUnit(stage) if UsdGeom.StageHasAuthoredMetersPerUnit(stage) else None
    return stage.GetRootLayer().realPath or None if meters_per_unit in (None, said) else None


def _by_reason(left_out: list[tuple[str, str]]) -> Iterator[str]:
    """A line for each prim, or for all that share a reason if they are many."""
    paths: dict[str, list[str]] = {}
    for path, reason in left_out:
        paths.setdefault(reason, []).append(path)
    for reason, where in paths.items():
        if len(where) > _MANY:
            yield f"{where[0]} and {len(where) - 1} others: {reason}"
        else:
            yield from (f"{path}: {reason}" for path in where)


def _warn(scene: Scene, found: Survey, name: str) -> None:
    """Say in one warning what was left out, and in another if the unit of length looks wrong."""
    for prim in found.bodies.values():
        if is_soft(prim) and lost_velocities(prim):
            found.left_out.append((str(prim.GetPath()), "velocities that differ from particle to particle"))
    if found.left_out:
        lines = "".join(f"\n  {line}" for line in _by_reason(found.left_out))
        _logger.warning("%s: left out, or taken otherwise, what warpbots does not simulate:%s", name, lines)
    size = float(np.max(np.subtract(*scene.bounds[::-1])))
    doubt_size(name, "the robot", size, "meters_per_unit")
