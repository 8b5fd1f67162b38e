"""Parameters of the motion of obstacles and constraints: as fields of models, from a scene, and back into a scene."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import warp as wp

from warpbots.numerics.parameters import ANY, NOT_NEGATIVE, parameter, parametric
from warpbots.scene import Constraint, Obstacle, Scene
from warpbots.scene.motion_checks import drives_of, moves
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.records import changed, number, numbers

__all__ = ["MotionParameters", "motion_parameters", "moving_parts", "with_motions"]


@parametric
class MotionParameters:
    """Parameters of the motion of obstacles and constraints, which every model has.

    Attributes:
        worlds: Number of worlds.
    """

    worlds: int
    motion_position: wp.array = parameter(
        "m", ANY, "pose", "displacement of a prescribed motion", axes="n_poses, dim",
        meaning="displacement of the pivot at each pose of the prescribed motions, double precision",
    )  # fmt: skip
    motion_rotation: wp.array = parameter(
        "rad", ANY, "pose", "rotation of a prescribed motion", axes="n_poses, 1 or 3",
        meaning="rotation vector, or angle in 2D, at each pose of the prescribed motions, double precision",
    )  # fmt: skip
    drive_speed: wp.array = parameter(
        "m/s or rad/s", NOT_NEGATIVE, "drive", "speed of a drive of an obstacle or a constraint",
        meaning="speed of each `VelocityDrive` at u = 1, double precision",
    )  # fmt: skip
    surface_velocity: wp.array = parameter(
        "m/s", ANY, "obstacle that moves", "velocity of a surface", axes="n_moving_obstacles, dim",
        meaning="velocity of the surface of each obstacle that moves, relative to the obstacle, double precision",
    )  # fmt: skip


def _column(rows: np.ndarray | None, count: int, columns: int) -> np.ndarray:
    return np.zeros((count, columns)) if rows is None else rows.reshape(count, columns)


def motion_parameters(scene: Scene, worlds: int, device: wp.Device) -> dict[str, wp.array]:
    """Arrays of the parameters of motion by name, in double precision, each of shape (worlds, ...).

    Args:
        scene: The scene.
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    dim = scene.dim
    turns = 1 if dim == 2 else 3
    motions = [f.motion for f in moving_parts(scene) if f.motion is not None]
    positions = [_column(m.positions, len(m.times), dim) for m in motions]
    rotations = [_column(m.rotations, len(m.times), turns) for m in motions]
    drives = [d for f in moving_parts(scene) for _, d in drives_of(f.name, scene.actuators)]
    surface = [o.surface_velocity or (0.0,) * dim for o in moving_parts(scene) if isinstance(o, Obstacle)]
    values = {
        "motion_position": np.concatenate([np.zeros((0, dim)), *positions]),
        "motion_rotation": np.concatenate([np.zeros((0, turns)), *rotations]),
        "drive_speed": np.array([d.max_speed for d in drives]),
        "surface_velocity": np.array(surface).reshape(-1, dim),
    }
    return {name: tiled(value, worlds, device, wp.float64) for name, value in values.items()}


def moving_parts(scene: Scene) -> list[Obstacle | Constraint]:
    """Obstacles, then constraints, that move: each has a frame."""
    return [p for p in (*scene.obstacles, *scene.constraints) if moves(p, scene.actuators)]


def with_motions(scene: Scene, values: Mapping[str, np.ndarray]) -> Scene:
    """`scene` with the parameters of motion in `values`, each of shape (...) as in one world."""
    first, drive = 0, 0
    new: dict[int, Obstacle | Constraint] = {}
    actuators = list(scene.actuators)
    for part in moving_parts(scene):
        fields = {}
        if part.motion is not None:
            rows = slice(first, first + len(part.motion.times))
            first = rows.stop
            own = {}
            for field, name in (("positions", "motion_position"), ("rotations", "motion_rotation")):
                before = getattr(part.motion, field)
                if name in values and (before is not None or np.any(values[name][rows])):
                    own[field] = values[name][rows] if before is None else values[name][rows].reshape(before.shape)
            if "rotations" in own and part.motion.pivot is None:
                own["pivot"] = (0.0,) * scene.dim
            fields["motion"] = changed(part.motion, **own)
        if isinstance(part, Obstacle) and "surface_velocity" in values:
            velocity = numbers(values["surface_velocity"][len(new)], part.surface_velocity or (0.0,) * scene.dim)
            if part.surface_velocity is not None or any(velocity):
                fields["surface_velocity"] = velocity
        new[id(part)] = changed(part, **fields)
        for channel, own_drive in drives_of(part.name, scene.actuators):
            if "drive_speed" in values:
                speed = number(values["drive_speed"][drive], own_drive.max_speed)
                actuators[channel] = changed(own_drive, max_speed=speed)
            drive += 1
    obstacles = [new.get(id(o), o) for o in scene.obstacles]
    constraints = [new.get(id(c), c) for c in scene.constraints]
    return dataclasses.replace(scene, actuators=actuators, obstacles=obstacles, constraints=constraints)
