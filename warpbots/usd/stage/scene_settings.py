"""Settings of the whole scene on the `PhysicsScene` prim: gravity, domain, dimension, contact, fluid and task."""

from typing import Any

import numpy as np
from pxr import Usd

from warpbots.scene import Fluid, Scene, SceneError, Task
from warpbots.usd.stage.applied_schemas import SCENE_APIS
from warpbots.usd.stage.attributes import apply, authored, clear, create, get, put, same, value_of
from warpbots.usd.stage.exact_fields import EXACT
from warpbots.usd.stage.faults import Faults, LocatedError, attempt
from warpbots.usd.stage.schema import OWN, attributes_of, rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["is_contactless", "read_dimension", "read_settings", "write_settings"]

_DIRECTION, _MAGNITUDE = (rows(f"Scene.gravity {part}")[0].name for part in ("direction", "magnitude"))
_EARTH = 9.81
_FLUID, _TASK = attributes_of(Fluid), attributes_of(Task)


def read_dimension(scene_prim: Usd.Prim | None) -> int:
    """Dimension of the scene whose `PhysicsScene` is `scene_prim`, 2 or 3; 3 by default."""
    name = rows("dimension")[0].name
    if not scene_prim or not authored(scene_prim, name):
        return 3
    return int(value_of(scene_prim, name))


def is_contactless(scene_prim: Usd.Prim | None, frame: StageUnits) -> bool:
    """Whether the file says that rigid bodies touch only under contact laws, of which it has none; False by default."""
    return bool(scene_prim and get(scene_prim, "contactless", frame))


def read_settings(prim: Usd.Prim | None, frame: StageUnits, faults: Faults) -> dict[str, Any]:
    """Gravity, domain, fluid and task, by the names of the fields of a scene.

    Args:
        prim: The `PhysicsScene`, or None.
        frame: Units and axes of the stage.
        faults: Receives the error of each setting that cannot be read; the result has None for such a setting.
    """
    gravity = _read_gravity(prim, frame)
    domain = None if prim is None else get(prim, "Scene.domain", frame)
    if domain is not None:
        domain = tuple(np.min(domain, axis=0).tolist()), tuple(np.max(domain, axis=0).tolist())
    return {
        "gravity": gravity,
        "domain": domain,
        "fluid": attempt(faults, _read_fluid, prim, frame),
        "task": attempt(faults, _read_task, prim, frame),
    }


def _read_gravity(prim: Usd.Prim | None, frame: StageUnits) -> tuple[float, ...]:
    """Gravity [m/s^2], shape (dim,), in scene axes; 9.81 downwards by default.

    In UsdPhysics any negative magnitude asks for the gravity of the earth.
    """
    down = np.array([0.0, 0.0, -1.0])
    if prim is None:
        return tuple(frame.drop(_EARTH * down).tolist())
    if not get(prim, "gravity enabled", frame):
        return (0.0,) * frame.dim
    magnitude = get(prim, "Scene.gravity magnitude", frame)
    magnitude = _EARTH if magnitude is None or magnitude < 0.0 else magnitude
    direction = np.zeros(3)
    if authored(prim, _DIRECTION):
        raw = np.asarray(value_of(prim, _DIRECTION)).astype(str).astype(np.float64)
        direction = frame.to_scene[:3, :3] @ raw / frame.meters  # in stage axes, whatever the transform of the prim
    length = np.linalg.norm(direction)
    plain = magnitude * (direction / length if length > 0.0 else down)
    if authored(prim, EXACT + "gravity"):
        exact = np.asarray(prim.GetAttribute(EXACT + "gravity").Get())
        if exact.shape == (frame.dim,) and np.allclose(exact, frame.drop(plain), rtol=1e-6, atol=1e-6 * magnitude):
            return tuple(exact.tolist())
    return tuple(frame.drop(plain).tolist())


def _read_task(prim: Usd.Prim | None, frame: StageUnits) -> Task | None:
    """The task of the scene, or None if the file has none."""
    if prim is None or not authored(prim, rows("Task.control_interval")[0].name):
        return None
    values = {field: get(prim, sets, frame) for field, sets in _TASK.items()}
    missing = [rows(_TASK[field])[0].name for field, value in values.items() if value is ...]
    if missing:
        raise LocatedError(prim.GetPath(), f"a task needs the attributes {', '.join(missing)}")
    return Task(**values)


def _read_fluid(prim: Usd.Prim | None, frame: StageUnits) -> Fluid | None:
    """The fluid around the bodies, or None if the file has none."""
    if prim is None or not authored(prim, rows("Fluid.density")[0].name):
        return None
    try:
        return Fluid(**{field: get(prim, sets, frame) for field, sets in _FLUID.items()})
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def write_settings(prim: Usd.Prim, scene: Scene, frame: StageUnits) -> None:
    """Author gravity, domain, dimension, contact, fluid and task of `scene` on the `PhysicsScene` at `prim`."""
    put(prim, "dimension", scene.dim, frame)
    if not same(_read_gravity(prim, frame), scene.gravity) or not authored(prim, _MAGNITUDE):
        _write_gravity(prim, scene.gravity, frame)
    put(prim, "Scene.domain", scene.domain, frame)
    put(prim, "contactless", True if scene.contacts == () else None, frame)
    for field, sets in _FLUID.items():
        put(prim, sets, scene.fluid and getattr(scene.fluid, field), frame)
    task = scene.task
    if task is not None:
        apply(prim, *SCENE_APIS)
        # for other engines; warpbots reads the control interval and its substeps
        put(prim, "steps per second", max(1, round(task.substeps / task.control_interval)), frame)
    for field, sets in _TASK.items():
        if task is not None or rows(sets)[0].origin == OWN:  # values set by another engine stay
            put(prim, sets, task and getattr(task, field), frame)


def _write_gravity(prim: Usd.Prim, gravity: tuple[float, ...], frame: StageUnits) -> None:
    lifted = frame.lift(gravity)
    magnitude = float(np.linalg.norm(lifted))
    direction = lifted / magnitude if magnitude > 0.0 else np.array([0.0, 0.0, -1.0])
    in_stage = frame.to_scene[:3, :3].T @ direction / frame.meters
    for name in (rows("gravity enabled")[0].name, EXACT + "gravity"):
        clear(prim, name)
    create(prim, _DIRECTION, "vector3f", tuple(in_stage.tolist()))
    create(prim, _MAGNITUDE, "float", magnitude / frame.factor("m/s^2"))
    if not same(_read_gravity(prim, frame), gravity):
        create(prim, EXACT + "gravity", "double[]", list(gravity), uniform=True)
