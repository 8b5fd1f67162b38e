"""A scene as a layer of USD."""

import functools
from pathlib import Path

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import Scene, SceneError
from warpbots.usd.geometry.obstacle_prims import read_obstacles, write_obstacle
from warpbots.usd.geometry.shape_surfaces import GROUND_REACH, write_surfaces
from warpbots.usd.geometry.solid_prims import remove_solid
from warpbots.usd.preserved_source import check, copy_of_source, relocate
from warpbots.usd.rigid.collision_filters import write_filters
from warpbots.usd.rigid.robot_reader import Robots, points_of, read_robots
from warpbots.usd.rigid.robot_writer import write_robots
from warpbots.usd.soft.soft_bodies import write_body
from warpbots.usd.stage.actuators_and_loads import read_part, remove_part, write_part
from warpbots.usd.stage.attributes import put
from warpbots.usd.stage.camera_and_lights import add_camera_and_lights
from warpbots.usd.stage.field_prims import write_field
from warpbots.usd.stage.inventory import Inventory, take_inventory
from warpbots.usd.stage.prim_editing import Target, editable, main_prim, read_name, rename
from warpbots.usd.stage.prim_roles import is_ours
from warpbots.usd.stage.scene_settings import write_settings
from warpbots.usd.stage.stage_files import sign
from warpbots.usd.stage.units import StageUnits, stage_frame

__all__ = ["scene_layer", "target_of"]

_FPS = 60.0


def scene_layer(scene: Scene, folder: Path, surfaces: bool = False) -> Sdf.Layer:
    """A layer with `scene` and the other content of its source, to be saved in `folder`.

    Args:
        scene: The scene.
        folder: The folder.
        surfaces: Whether every body and obstacle that warpbots wrote has a mesh beside its shape.

    Raises:
        SceneError: The other content of the source is inconsistent with the scene.
    """
    layer = _new_layer() if scene.source is None else copy_of_source(scene)
    _author(layer, scene, surfaces)
    sign(layer)
    relocate(layer, folder)  # after its stage is closed: the stage could not resolve relative paths
    return layer


def _author(layer: Sdf.Layer, scene: Scene, surfaces: bool) -> None:
    stage = Usd.Stage.Open(layer)
    found = take_inventory(stage)
    frame = stage_frame(stage, scene.dim)
    target = target_of(stage, scene, frame)
    _write_parts(target, scene, found)
    settings = found.settings or UsdPhysics.Scene.Define(stage, target.base.AppendChild("PhysicsScene")).GetPrim()
    write_settings(settings, scene, frame)
    if surfaces:
        _write_surfaces(target, scene)
    add_camera_and_lights(target, scene)
    if not (model := Usd.ModelAPI(stage.GetDefaultPrim())).GetAssetInfo():
        model.SetAssetName(scene.name)
    ends = [o.motion.times[-1] for o in scene.obstacles if o.motion is not None]
    if ends and not stage.HasAuthoredTimeCodeRange():
        stage.SetStartTimeCode(0.0)
        stage.SetEndTimeCode(float(np.ceil(max(ends) * stage.GetTimeCodesPerSecond())))
    if scene.source is not None:
        check(stage, scene)


def target_of(stage: Usd.Stage, scene: Scene, frame: StageUnits) -> Target:
    """`stage` as a place for prims of `scene`; its default prim gets the name of the scene."""
    return Target(stage, frame, _base(stage, scene), _extent(scene))


def _write_surfaces(target: Target, scene: Scene) -> None:
    """Give all bodies and obstacles that warpbots wrote a mesh beside their shape."""
    found = take_inventory(target.stage)
    lower, upper = (target.frame.lift(corner) for corner in scene.bounds)
    middle = np.where(np.isfinite(lower + upper), (lower + upper) / 2.0, 0.0)
    for prims, parts in ((found.bodies, scene.bodies), (found.obstacles, scene.obstacles)):
        for part in parts:
            if part.shape is not None and is_ours(prims[part.name]):
                write_surfaces(prims[part.name], part.shape, middle, GROUND_REACH * target.extent)


def _new_layer() -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous()
    stage = Usd.Stage.Open(layer)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    layer.timeCodesPerSecond = layer.framesPerSecond = _FPS
    return layer


def _extent(scene: Scene) -> float:
    """Diagonal of the bounding box of all bodies [m]; 1 if a body is unbounded."""
    lower, upper = scene.bounds
    size = float(np.linalg.norm(upper - lower))
    return size if np.isfinite(size) else 1.0


def _base(stage: Usd.Stage, scene: Scene) -> Sdf.Path:
    """Path of the prim below which new prims go: the default prim if it can contain them, else ``/World``.

    The default prim gets the name of the scene.
    """
    default = main_prim(stage) or _world(stage)
    stage.SetDefaultPrim(default)
    if read_name(default) != scene.name:
        rename(default, scene.name)
    below_it = default.IsA(UsdGeom.Xformable) and not default.IsA(UsdGeom.Gprim) and not default.IsInstance()
    return (default if below_it else _world(stage)).GetPath()


def _world(stage: Usd.Stage) -> Usd.Prim:
    prim = stage.GetPrimAtPath("/World")
    if not prim:
        prim = stage.DefinePrim("/World", "Xform")
        Usd.ModelAPI(prim).SetKind("component")
    return prim


def _write_parts(target: Target, scene: Scene, found: Inventory) -> None:
    """Write all parts of `scene`: existing prims are updated, all others are defined."""
    stage = target.stage
    kept = write_robots(target, scene, found, _robots(target, found, points_of(scene)))
    rigid, colors = found.rigid, dict(zip((b.name for b in scene.bodies), scene.colors, strict=True))
    for kind, write, take_away in (
        ("bodies", functools.partial(write_body, colors=colors), remove_solid),
        ("obstacles", write_obstacle, remove_solid),
        ("actuators", write_part, remove_part),
        ("constraints", write_part, remove_part),
        ("loads", write_part, remove_part),
        ("attachments", write_part, remove_part),
        ("contacts", write_part, remove_part),
        ("fields", write_field, remove_part),
    ):
        parts, old = getattr(scene, kind) or (), getattr(found, kind)
        if kind == "bodies":
            parts, old = scene.soft, {name: prim for name, prim in old.items() if name not in rigid}
        parts = [p for p in parts if p.name not in {"actuators": kept.motors, "contacts": kept.contacts}.get(kind, ())]
        # paths, because prims of instances expire when one of them is changed
        paths = {name: prim.GetPath() for name, prim in ((found.loose if kind == "bodies" else {}) | old).items()}
        for name in old.keys() - {part.name for part in parts}:
            take_away(stage.GetPrimAtPath(paths[name]))
        written = {}
        for part in parts:
            existing = stage.GetPrimAtPath(paths[part.name]) if part.name in paths else None
            written[write(target, existing, part)] = part.name
        if kind == "bodies":
            order = {body.name: k for k, body in enumerate(scene.bodies)}
            written = dict(sorted((written | kept.bodies).items(), key=lambda item: order.get(item[1], len(order))))
        _settle(target, kind, written)
        if kind == "obstacles":
            write_filters(stage, scene, *({name: path for path, name in of.items()} for of in (kept.bodies, written)))


def _robots(target: Target, found: Inventory, points: int) -> Robots | None:
    """The robots that the reader obtains from the stage; None if there are none or they cannot be read."""
    if not found.rigid:
        return None
    try:
        actuators = [read_part(prim, name, target.frame) for name, prim in found.actuators.items()]
        return read_robots(found, target.frame, actuators, read_obstacles(found, target.frame), points)
    except SceneError:
        return None


def _settle(target: Target, kind: str, written: dict[Sdf.Path, str]) -> None:
    """Author the names and the order of the prims `written`, unless they already have these names and this order."""
    stage = target.stage
    names = {prim.GetPath(): name for name, prim in getattr(take_inventory(stage), kind).items()}
    for path, name in written.items():
        if names.get(path) != name:
            rename(editable(stage.GetPrimAtPath(path)), name)
    if list(names) != list(written):
        for order, path in enumerate(written):
            put(editable(stage.GetPrimAtPath(path)), "order", order, target.frame)
