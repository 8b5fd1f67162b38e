"""Functions that make the simulation, the controller and the motion from the arguments of a command."""

import argparse
import contextlib
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

import warpbots as wb
from warpbots.read_limits import refuse_unpacking
from warpbots.robots.robot_xml import is_robot

__all__ = [
    "add_motion", "add_root", "add_scene", "controlled", "count", "folder", "fraction", "motion", "policy",
    "positive", "read", "refuse_results", "simulation", "steps", "where",
]  # fmt: skip


def positive(text: str) -> float:
    """Parse a positive number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(text)) and value > 0.0:
            return value
    raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")


def fraction(text: str) -> float:
    """Parse a number from 0 to below 1."""
    with contextlib.suppress(ValueError):
        if 0.0 <= (value := float(text)) < 1.0:
            return value
    raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, got {text!r}")


def count(text: str) -> int:
    """Parse a positive integer."""
    with contextlib.suppress(ValueError):
        if (value := int(text)) > 0:
            return value
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")


def add_scene(command: argparse.ArgumentParser) -> None:
    """Add the arguments common to all commands that simulate a file."""
    command.add_argument("scene", metavar="FILE", help="USD scene, or robot (.urdf, or .xml for MJCF)")
    command.add_argument("--solver", choices=tuple(_SOLVERS), help="default: the first that can simulate the scene")
    command.add_argument(
        "--dx",
        type=positive,
        help="size of a cell, or spacing of a lattice [m]; default: the scene's, else one that fits it",
    )
    command.add_argument(
        "--dt", type=positive, help="length of a control interval [s]; default: the scene's, else 0.01"
    )
    command.add_argument(
        "--substeps",
        type=count,
        help="solver steps per control interval; default: the scene's, else the fewest stable ones",
    )
    command.add_argument("--device", help="Warp device, such as cpu or cuda:0")
    add_root(command)


def add_root(command: argparse.ArgumentParser) -> None:
    """Add the argument for the folder that must contain all files to which the file of a scene refers."""
    command.add_argument(
        "--asset-root",
        help="folder that must contain all files to which the scene refers; default: the parent of its own folder",
    )


def add_motion(command: argparse.ArgumentParser, otherwise: str = "no control") -> None:
    """Add the arguments common to all commands that show a motion.

    Args:
        command: The parser of the command.
        otherwise: The control without a controller, for the help.
    """
    command.add_argument(
        "--steps", type=count, help="control intervals to simulate; default: the scene's, else as many as last 2 s"
    )
    command.add_argument("--controller", type=Path, help=f"controller.pt of a training; default: {otherwise}")


def read(path: str, asset_root: str | None) -> wb.Scene:
    """Read the scene in a file: a robot file if the ending or the content of the file says so, else a USD stage."""
    if is_robot(path):
        return wb.robots.load(path, asset_root=asset_root)
    return wb.usd.read(path, asset_root=asset_root)


def simulation(options: argparse.Namespace, scene: wb.Scene | None = None, worlds: int = 1) -> wb.Simulation:
    """The simulation of a scene; `Simulation` chooses all options that the user did not give.

    Args:
        options: Options of the command.
        scene: The scene; None to read it from the file in the options.
        worlds: Number of independent worlds.

    Raises:
        SceneError: No solver can simulate the scene.
    """
    scene = read(options.scene, options.asset_root) if scene is None else scene
    task = scene.task
    faults = []
    for name in [options.solver] if options.solver else _SOLVERS:
        substeps = _said(options.substeps, task.substeps if task and name in ("mpm", "coupled") else None)
        try:
            solver = _SOLVERS[name](scene, options.dx)
            simulation = wb.Simulation(scene, solver, options.dt, substeps, worlds=worlds, device=options.device)
        except wb.SceneError as error:
            faults.append(error)
            continue
        if faults:
            print(f"{faults[0]}\nusing {type(simulation.solver).__name__} instead", file=sys.stderr)
        return simulation
    raise faults[0]


def _said(option: Any, default: Any) -> Any:
    """The value of an option, or `default` if the user did not give the option."""
    return default if option is None else option


def _springs(scene: wb.Scene, spacing: float | None) -> wb.MassSpring:
    """A mass-spring solver; it adds damping only if no material of the scene has damping.

    With the added damping, vibrations decay within milliseconds.
    """
    damped = any(m.damping for body in scene.soft for m in body.materials)
    return wb.MassSpring(spacing, damping=0.0 if damped else 2e-3)


_SOLVERS = {
    "mpm": lambda scene, dx: wb.MPM(dx),
    "springs": _springs,
    "articulated": lambda scene, dx: wb.Articulated(),
    "projective": lambda scene, dx: wb.ProjectiveDynamics(dx),
    "coupled": lambda scene, dx: wb.Coupled(wb.MPM(dx)),
    "coupled-springs": lambda scene, dx: wb.Coupled(_springs(scene, dx)),
}
"""Functions that make a solver from a scene and a cell size [m] or None, by name, in order of preference."""


def steps(options: argparse.Namespace, simulation: wb.Simulation) -> int:
    """Number of control intervals to simulate."""
    task = simulation.scene.task
    return _said(options.steps, task.steps if task else max(1, round(2.0 / simulation.dt)))


def refuse_results(folder: Path, names: Iterable[str], what: str) -> None:
    """Raise if a folder contains results of an earlier run.

    Args:
        folder: The folder; it need not exist.
        names: Names of files with results, or patterns of such names.
        what: Name of the run that writes the results, for the message.

    Raises:
        FileExistsError: The folder contains results.
    """
    found = sorted({path for name in names for path in folder.glob(name)})
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise FileExistsError(
            f"{folder} has results of an earlier {what}: {', '.join(str(p.relative_to(folder)) for p in found[:3])}"
            f"{more}; go on with --resume, replace them with --overwrite, or choose another folder with --out"
        )


def where(options: argparse.Namespace) -> Path:
    """Path of the output folder, which may not exist yet."""
    return options.out or Path("output") / Path(options.scene).stem


def folder(options: argparse.Namespace) -> Path:
    """Path of the output folder; the folder is made if it does not exist."""
    folder = where(options)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def policy(simulation: wb.Simulation, seed: int = 0) -> wb.controllers.MLP:
    """A new controller, of the kind that ``warpbots train`` trains."""
    task = simulation.scene.task
    observer = wb.observers.Joints() if simulation.scene.rigid else wb.observers.Clusters(task.clusters if task else 4)
    return wb.controllers.MLP(simulation, observer, clock=task.clock if task else None, seed=seed)


def controlled(options: argparse.Namespace) -> tuple[wb.Simulation, wb.controllers.MLP | None]:
    """The simulation of a scene, and the controller in the options, or None if there is none."""
    weights = None if options.controller is None else _load(options.controller)
    model = simulation(options)
    if weights is None:
        return model, None
    controller = policy(model)
    _restore(controller, weights, options.controller)
    return model, controller


def motion(options: argparse.Namespace) -> wb.Trajectory[Any]:
    """The motion of a scene with the controller in the options, or without control if there is none."""
    model, controller = controlled(options)
    with torch.no_grad():
        return model.rollout(controller, steps(options, model))


def _load(path: Path) -> dict:
    if not path.is_file():
        raise FileNotFoundError(f"there is no controller {path}; train one first with 'warpbots train SCENE'")
    refuse_unpacking(path)
    try:
        return torch.load(path, weights_only=True)
    except Exception as fault:  # torch raises whatever pickle, zipfile and its own readers raise
        raise ValueError(f"{path} is not a controller written by 'warpbots train'; train a new one") from fault


def _restore(controller: torch.nn.Module, weights: dict, path: Path) -> None:
    """Load the weights of a file into a controller."""
    try:
        controller.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as fault:
        raise ValueError(f"{path} is a controller for another robot, scene or task; train one for this one") from fault
