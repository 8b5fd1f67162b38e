"""Writing: a scene, or what became of it, as a USD file."""

import os
from pathlib import Path
from typing import Any

from warpbots.scene import Scene
from warpbots.scene.field_types import checked, shown
from warpbots.trajectory import Trajectory
from warpbots.usd.scene_writer import scene_layer
from warpbots.usd.stage.stage_files import export, replacing_layers
from warpbots.usd.trajectory_writer import write_trajectory

__all__ = ["write"]


@checked
def write(
    path: str | os.PathLike,
    what: Any,
    fps: float = 60.0,
    every: int = 1,
    velocities: bool = False,
    springs: bool = False,
) -> None:
    """Write a scene or a trajectory to a USD file.

    A scene that was read from a file keeps what warpbots does not understand there: the file is written from a copy of
    its `source`, in the units and axes of that file. Any other scene is written in metres and kilograms with z up.
    `read` gives an equal scene back, to the last bit. Rigid bodies that another program has written stay as they are; a
    scene with other ones than its `source` is refused.

    A trajectory is written as a layer of moving particles, or of moving rigid bodies, ``<name>_results.usdc``, over the
    file of its scene, which is left as it is; if the scene is in no file, it is written beside them as
    ``<name>_scene``. `path` combines the two and is the one to open. Rigid bodies are kinematic there, so that a player
    shows their motion and does not simulate over it.

    Args:
        path: A .usd, .usda or .usdc file. Text (.usda) is slow and large for meshes.
        what: A `Scene`, or a trajectory.
        fps: Time codes per second of a trajectory; time t [s] is at time code t fps.
        every: Of a trajectory, write the states after every so many control intervals.
        velocities: Whether to write the velocities of the particles of a trajectory, too (twice the size).
        springs: Whether to write the springs of a lattice as curves beside its masses (some twenty times the size);
            the bars of a truss are always written.

    Raises:
        ValueError: The extension is none that can be written, a trajectory would overwrite the file of its scene, or
            `springs` are wanted of what has none.
        SceneError: What else is in the source of the scene does not fit the scene, or it is a robot of another program
            that the scene has changed.
        OSError: The file cannot be written; what was there before is unchanged.
    """
    path = Path(path).resolve()  # as the paths of open layers are
    if isinstance(what, Scene):
        with replacing_layers(path) as (temporary,):
            export(scene_layer(what, path.parent), temporary)
    elif not isinstance(what, Trajectory):
        raise ValueError(f"write: what must be a Scene or a Trajectory, got {shown(what)}")
    else:
        write_trajectory(path, what, fps, every, velocities, springs)
