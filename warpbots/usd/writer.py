"""Writing a scene or a trajectory as a USD file."""

import functools
import inspect
import os
from pathlib import Path
from typing import Any

from warpbots.scene import Scene
from warpbots.scene.field_types import checked, shown
from warpbots.trajectory import Trajectory
from warpbots.usd.scene_writer import scene_layer
from warpbots.usd.single_file import write_single_file
from warpbots.usd.soft.point_samples import Content
from warpbots.usd.stage.stage_files import PACKAGE, export, replacing_layers
from warpbots.usd.trajectory_writer import refuse_overwriting, write_trajectory

__all__ = ["write"]


@checked
def write(
    path: str | os.PathLike,
    what: Any,
    fps: float = 60.0,
    every: int = 1,
    velocities: bool = False,
    surfaces: bool | None = None,
    particles: bool = True,
    springs: bool = False,
    flat: bool = False,
    color: str | None = None,
) -> None:
    """Write a scene or a trajectory to a USD file.

    A scene that was read from a file preserves the content that warpbots does not read: it is written over a copy of
    its `source`, in the units and axes of that file. Any other scene is written in metres and kilograms with z up.
    Reading the file gives an equal scene, to the last bit. Rigid bodies written by another program are not changed; a
    scene whose rigid bodies differ from those bodies of its `source` is refused.

    A trajectory is written as a layer of time samples, ``<name>_results.usdc``, over the file of its scene, which is
    not changed. A scene that has no file, or whose file is in another folder, is written to the same folder as
    ``<name>_scene``, so that the files of a motion move together. Parameters that the rollout replaced are baked into
    that scene, see `Trajectory.designed`. `path` combines the two: it is the file to open, and `read` returns the scene
    from it. Rigid bodies are kinematic there, so that a player shows their motion and does not simulate it. Obstacles
    that move have their poses in each frame, drives included. In the file of a scene they move as their tables
    prescribe.

    Both have a camera, lights and materials, unless the source has its own. The camera of a trajectory sees the whole
    motion, or moves along a long way; the first cameras of usdview and Omniverse are this one. ``Lights`` has a variant
    for Omniverse, whose units of light differ from those of other programs.

    Args:
        path: A .usd, .usda, .usdc or .usdz file. Text (.usda) is slow and large for meshes; a .usdz package holds all
            layers, and the textures and other files that they refer to.
        what: A `Scene`, or a trajectory.
        fps: Time codes per second of a trajectory; time t [s] is at time code t fps.
        every: Number of control intervals between two frames of a trajectory.
        velocities: Whether to write the velocities of all points in addition to their positions, for motion blur; it
            doubles the size.
        surfaces: Whether every body and obstacle has a mesh with normals in addition to its shape or its particles:
            the skin of particles that pictures show, or the surface of tetrahedra. Blender draws materials on meshes
            alone. By default a trajectory has such meshes; a scene has them only where its shape is a mesh of
            tetrahedra, because they do not follow if another program edits the shape.
        particles: Whether the particles or tetrahedra of bodies that have a mesh are written, too, as guides, which
            viewers show on request. Without them a file has 15 bytes for each vertex and frame.
        springs: Whether to write the springs of a lattice as curves beside its masses (about twenty times the size);
            the bars of a truss are always written.
        flat: Whether to write one layer instead of several, without references to other layers.
        color: Quantity that the colours of the soft bodies of a trajectory show; None for the colours of the bodies.
            The values themselves are written beside the colours, as a primvar of that name. It is one of:

            - ``"stress"``: von Mises' stress of the Cauchy stress that the solver measures [Pa]; in 2D the difference
              of the principal stresses in the plane.
            - ``"strain"``: the equivalent strain of the Green-Lagrange strain [1]; for a lattice the mean size of the
              elongations of the springs at a mass.
            - ``"activation"``: the sum of the control signals at each point, negative for expansion.
            - a parameter of elements such as ``"youngs_modulus"``.

    Raises:
        ValueError: `path` has none of these extensions, an option of trajectories is given for a scene, a trajectory
            would overwrite the file of its scene, `springs` is set for a motion without springs, or `color` is not the
            name of a quantity.
        SceneError: The other content of the source is inconsistent with the scene, or the scene has changed a robot
            written by another program.
        OSError: The file cannot be written; files that were there before are unchanged.
    """
    path = Path(path).resolve()  # open layers have resolved paths
    if isinstance(what, Scene):
        _refuse_motion_options(
            fps=fps, every=every, velocities=velocities, particles=particles, springs=springs, color=color
        )
        several = functools.partial(_write_scene, scene=what, surfaces=bool(surfaces))
    elif isinstance(what, Trajectory):
        refuse_overwriting(path, what.scene)
        several = functools.partial(
            write_trajectory, trajectory=what, fps=fps, every=every,
            content=Content(surfaces is not False, particles, velocities, springs, color),
        )  # fmt: skip
    else:
        raise ValueError(f"write: what must be a Scene or a Trajectory, got {shown(what)}")
    if flat or path.suffix == PACKAGE:
        write_single_file(path, several)
    else:
        several(path)


def _refuse_motion_options(**options: Any) -> None:
    """Raise if an option that concerns trajectories alone is given for a scene.

    Raises:
        ValueError: An option differs from its default.
    """
    for name, value in options.items():
        if value != inspect.signature(write).parameters[name].default:
            raise ValueError(
                f"write: {name} is for trajectories, and this is a Scene, got {name}={value!r}; leave it out, or write "
                f"a trajectory of the scene, such as sim.rollout(None, 100)"
            )


def _write_scene(path: Path, scene: Scene, surfaces: bool) -> None:
    with replacing_layers(path) as (temporary,):
        export(scene_layer(scene, path.parent, surfaces), temporary)
