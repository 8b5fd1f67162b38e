"""A scene as a layer of USD."""

from pathlib import Path

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import Scene
from warpbots.usd.bodies import write_body
from warpbots.usd.files import sign
from warpbots.usd.frame import stage_frame
from warpbots.usd.obstacles import write_obstacle
from warpbots.usd.parts import remove_part, write_part
from warpbots.usd.settings import write_settings
from warpbots.usd.solids import remove_solid
from warpbots.usd.source import check, copy_of_source, relocate
from warpbots.usd.survey import Survey, survey
from warpbots.usd.target import Target, editable, main_prim, read_name, rename
from warpbots.usd.values import put

__all__ = ["scene_layer"]

_FPS = 60.0


def scene_layer(scene: Scene, folder: Path) -> Sdf.Layer:
    """A layer with `scene` and what else is in its source, to be saved in `folder`.

    Raises:
        SceneError: What else is in the source of the scene does not fit the scene.
    """
    layer = _new_layer() if scene.source is None else copy_of_source(scene)
    _author(layer, scene)
    sign(layer)
    relocate(layer, folder)  # after its stage is closed, which would look for the relative paths in vain
    return layer


def _author(layer: Sdf.Layer, scene: Scene) -> None:
    stage = Usd.Stage.Open(layer)
    found = survey(stage)
    frame = stage_frame(stage, scene.dim)
    target = Target(stage, frame, _base(stage, scene), _extent(scene))
    _write_parts(target, scene, found)
    settings = found.settings or UsdPhysics.Scene.Define(stage, target.base.AppendChild("PhysicsScene")).GetPrim()
    write_settings(settings, scene, frame)
    if scene.source is not None:
        check(stage, scene)


def _new_layer() -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous()
    stage = Usd.Stage.Open(layer)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    layer.timeCodesPerSecond = layer.framesPerSecond = _FPS
    return layer


def _extent(scene: Scene) -> float:
    """Diagonal of the box about all bodies [m]; 1 where a body has no bounds."""
    lower, upper = scene.bounds
    size = float(np.linalg.norm(upper - lower))
    return size if np.isfinite(size) else 1.0


def _base(stage: Usd.Stage, scene: Scene) -> Sdf.Path:
    """Path of the prim below which new things go; the default prim, which also carries the name of the scene."""
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


def _write_parts(target: Target, scene: Scene, found: Survey) -> None:
    """All parts of `scene`: what is there is brought up to date, the rest is new."""
    stage = target.stage
    for kind, write, take_away in (
        ("bodies", write_body, remove_solid),
        ("obstacles", write_obstacle, remove_solid),
        ("actuators", write_part, remove_part),
        ("constraints", write_part, remove_part),
        ("loads", write_part, remove_part),
        ("attachments", write_part, remove_part),
    ):
        parts, old = getattr(scene, kind), getattr(found, kind)
        # paths, because prims of instances expire when one of them is changed
        paths = {name: prim.GetPath() for name, prim in ((found.loose if kind == "bodies" else {}) | old).items()}
        for name in old.keys() - {part.name for part in parts}:
            take_away(stage.GetPrimAtPath(paths[name]))
        written = {}
        for part in parts:
            existing = stage.GetPrimAtPath(paths[part.name]) if part.name in paths else None
            written[write(target, existing, part)] = part.name
        _settle(target, kind, written)


def _settle(target: Target, kind: str, written: dict[Sdf.Path, str]) -> None:
    """Say names and order of the prims `written` where the file does not say them already."""
    stage = target.stage
    names = {prim.GetPath(): name for name, prim in getattr(survey(stage), kind).items()}
    for path, name in written.items():
        if names.get(path) != name:
            rename(editable(stage.GetPrimAtPath(path)), name)
    if list(names) != list(written):
        for order, path in enumerate(written):
            put(editable(stage.GetPrimAtPath(path)), "order", order, target.frame)
