"""Writes the places of moving obstacles at every frame of a trajectory, as time samples on their prims."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from pxr import Sdf, Usd

from warpbots.scene.motion_checks import changes_place
from warpbots.trajectory import Trajectory, obstacles_at
from warpbots.usd.geometry.played_motion import PlayedPrim, played_prim
from warpbots.usd.geometry.surface_velocity import make_kinematic
from warpbots.usd.stage.motion_tables import has_table, write_table
from warpbots.usd.stage.units import StageUnits

__all__ = ["obstacle_frames"]


def obstacle_frames(
    stage: Usd.Stage,
    paths: dict[str, Sdf.Path],
    trajectory: Trajectory[Any],
    frame: StageUnits,
    states: Iterable[tuple[float, Any]],
) -> Iterator[tuple[float, Callable[[float], int]]]:
    """Prepare the prims of all obstacles that change their place, on the layer that is being edited; yield the frames.

    Args:
        stage: The stage.
        paths: Paths of the prims of all obstacles, by the names of the obstacles.
        trajectory: The motion.
        frame: Units and axes of the stage.
        states: Times [s] and states of the frames.

    Yields:
        Time [s], and a function that writes the frame at a time code and returns the number of its bytes.
    """
    scene = trajectory.scene
    shown: dict[int, PlayedPrim] = {}
    for k, obstacle in enumerate(scene.obstacles):
        if not changes_place(obstacle, scene.actuators):
            continue
        shown[k] = played_prim(stage.GetPrimAtPath(paths[obstacle.name]), frame)
        make_kinematic(shown[k].prim, True)
        if obstacle.motion is not None and not has_table(shown[k].prim):  # its table came from time samples
            write_table(shown[k].prim, obstacle.motion, frame)
    for time, state in states:
        position, rotation = obstacles_at(trajectory.simulation, state, **trajectory.parameters)
        yield float(time), functools.partial(_write, shown, position, rotation)


def _write(shown: dict[int, PlayedPrim], position: np.ndarray, rotation: np.ndarray, code: float) -> int:
    return sum(prim.write(rotation[k], position[k], code) for k, prim in shown.items())
