"""The command line: ``warpbots train``, ``warpbots simulate`` and ``warpbots info`` for any scene."""

import argparse
import contextlib
import dataclasses
import hashlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp

import warpbots as wb
from warpbots.output_files import replacing

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; None for those of the process.

    Returns:
        Exit status: 0, 1 after an error that the user can fix, or 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)  # operations are small here: a second thread costs more than it saves
    try:
        options.run(options)
    except KeyboardInterrupt:
        print("warpbots: interrupted; no file is half written", file=sys.stderr)
        return 130
    except (OSError, ValueError, TypeError, RuntimeError, FloatingPointError, MemoryError) as fault:
        print(f"warpbots: {fault}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="warpbots", description="Differentiable simulation of robots.")
    parser.add_argument("--version", action="version", version=wb.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("train", _train, "train a controller by gradient and write it, its loss and its motion to a folder"),
        ("simulate", _simulate, "simulate and write the motion to a folder"),
        ("info", _info, "print the contents of a scene, what can be differentiated, and the stable time step"),
    ):
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        command.set_defaults(run=run)
        command.add_argument("scene", help="USD file")
        command.add_argument("--solver", choices=tuple(_SOLVERS), help="default: the first that can simulate the scene")
        command.add_argument(
            "--dx", type=_positive, help="size of a grid cell, spacing of a lattice [m]; default: the scene's"
        )
        command.add_argument("--dt", type=_positive, help="time between two control signals [s]; default: the scene's")
        command.add_argument("--substeps", type=_count, help="solver steps in that time; default: the scene's")
        command.add_argument("--device", help="Warp device, such as cpu or cuda:0")
        command.add_argument(
            "--asset-root",
            help="folder that must contain all files to which the scene refers; default: the one above its own",
        )
        if run is _info:
            continue
        command.add_argument("--steps", type=_count, help="control intervals to simulate; default: the scene's")
        command.add_argument("--out", type=Path, help="output folder; default: output/NAME-OF-SCENE")
        if run is _simulate:
            command.add_argument("--controller", type=Path, help="controller.pt of a training; default: no control")
        else:
            command.add_argument(
                "--iterations",
                type=_count,
                default=25,
                help="iterations of the optimiser, including those before --resume (%(default)s)",
            )
            command.add_argument("--lr", type=_positive, default=3e-2, help="learning rate of Adam (%(default)s)")
            command.add_argument("--seed", type=int, default=3, help="seed of the initial weights (%(default)s)")
            command.add_argument("--resume", action="store_true", help="resume the training in the folder")
    return parser


def _positive(text: str) -> float:
    """Parse a positive number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(text)) and value > 0.0:
            return value
    raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")


def _count(text: str) -> int:
    """Parse a positive integer."""
    with contextlib.suppress(ValueError):
        if (value := int(text)) > 0:
            return value
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")


def _simulation(options: argparse.Namespace) -> wb.Simulation:
    """The simulation of a scene, with the options of the user, else of its task, else defaults for its size.

    Raises:
        SceneError: No solver can simulate the scene.
    """
    scene = wb.usd.read(options.scene, asset_root=options.asset_root)
    task = scene.task
    size = [float(edge) for edge in np.subtract(*scene.bounds[::-1]) if edge > 0.0]
    dx = _said(options.dx, task.cell_size if task else min(size, default=1.0) / 8.0)
    dt = _said(options.dt, task.control_interval if task else 1.0 / 60.0)
    faults = []
    for name in [options.solver] if options.solver else _SOLVERS:
        substeps = _said(options.substeps, task.substeps if task and name == "mpm" else None)
        try:
            simulation = wb.Simulation(scene, _SOLVERS[name](scene, dx), dt, substeps, device=options.device)
        except wb.SceneError as error:
            faults.append(error)
            continue
        if faults:
            print(f"{faults[0]}\nusing {type(simulation.solver).__name__} instead", file=sys.stderr)
        return simulation
    raise faults[0]


def _said(option: Any, default: Any) -> Any:
    """The option, or its default if the user did not give it."""
    return default if option is None else option


def _springs(scene: wb.Scene, spacing: float) -> wb.MassSpring:
    """A mass-spring solver whose vibrations decay within milliseconds unless the materials have damping."""
    damped = any(m.damping for body in scene.soft for m in (body.material, *body.region_materials.values()))
    return wb.MassSpring(spacing, damping=0.0 if damped else 2e-3)


_SOLVERS = {
    "mpm": lambda scene, dx: wb.MPM(dx),
    "springs": _springs,
    "articulated": lambda scene, dx: wb.Articulated(),
}
"""Solvers by name, as functions of a scene and a resolution [m], in order of preference."""

_TRAVEL = ("prismatic", "planar", "translational", "free_2d", "free")
"""Kinds of joints that permit travel."""


def _can_travel(simulation: wb.Simulation) -> bool:
    """Whether a motor belongs to a tree of rigid bodies that can travel."""
    robot, driven = simulation.model.robot, {motor.joint for motor in simulation.scene.actuators}
    for body, joint in enumerate(robot.joints):
        if joint.name in driven:
            while robot.parents[body] >= 0:
                body = robot.parents[body]
            if robot.joints[body].kind in _TRAVEL:
                return True
    return False


def _steps(options: argparse.Namespace, simulation: wb.Simulation) -> int:
    task = simulation.scene.task
    return _said(options.steps, task.steps if task else max(1, round(2.0 / simulation.dt)))


def _folder(options: argparse.Namespace) -> Path:
    folder = options.out or Path("output") / Path(options.scene).stem
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _policy(simulation: wb.Simulation, seed: int = 0) -> wb.controllers.MLP:
    task = simulation.scene.task
    observer = wb.observers.Joints() if simulation.scene.rigid else wb.observers.Clusters(task.clusters if task else 4)
    return wb.controllers.MLP(simulation, observer, clock=task.clock if task else None, seed=seed)


def _about(simulation: wb.Simulation, policy: wb.controllers.MLP, steps: int) -> dict[str, object]:
    """Settings that identify a training: they must not change when it is resumed."""
    scene = dataclasses.replace(simulation.scene, source=None)
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        content = hashlib.sha256(repr(scene).encode()).hexdigest()[:12]
    return {
        "scene": f"{scene.name} ({content})",
        "solver": simulation.solver,
        "dt": simulation.dt,
        "substeps": simulation.substeps,
        "steps": steps,
        "controller": policy.layers,
    }


def _train(options: argparse.Namespace) -> None:
    simulation = _simulation(options)
    steps, folder = _steps(options, simulation), _folder(options)
    if not simulation.channels:
        raise ValueError(f"{options.scene} has no actuators to train; see 'warpbots info {options.scene}'")
    if simulation.scene.rigid and not _can_travel(simulation):
        raise ValueError(
            f"{options.scene}: this command trains robots to travel, but the base of this one is fixed to the "
            f"world; train it for a task of your own with warpbots.fit"
        )
    policy = _policy(simulation, options.seed)
    task = simulation.scene.task
    start = simulation.center_of_mass(simulation.state())
    direction = start.new_tensor(task.direction if task else [1.0] + [0.0] * (simulation.scene.dim - 1))

    def loss() -> torch.Tensor:
        trajectory = simulation.rollout(policy, steps)
        travel = ((simulation.center_of_mass(trajectory.final) - start) @ direction).mean()
        return -travel + 1e-6 * trajectory.control.square().mean()

    def save(history: wb.History) -> None:
        if len(history.loss) == 1:  # a new run begins: remove the files of an earlier one
            for name in ("controller.pt", "loss.csv", "loss.png", "motion.gif", "motion.usda"):
                (folder / name).unlink(missing_ok=True)
        with replacing(folder / "controller.pt") as (temporary,):
            torch.save(policy.state_dict(), temporary)
        history.write_csv(folder / "loss.csv")

    history = wb.fit(
        policy.parameters(),
        loss,
        iterations=options.iterations,
        max_norm=0.1,
        on_best=save,
        checkpoint=folder / "checkpoint.pt",
        resume=options.resume,
        about=_about(simulation, policy, steps) | {"seed": options.seed},
        lr=options.lr,
    )
    if not history.loss:
        raise RuntimeError("interrupted before the end of the first iteration: nothing was trained")
    save(history)
    wb.view.save_loss(folder / "loss.png", history)
    if history.interrupted:
        print("interrupted: the best controller so far is kept; continue with --resume")
    print(
        f"loss {history.loss[0]:.4g} -> {history.loss[history.best]:.4g} in {len(history.loss) - 1} iterations: the "
        f"robot travels {-history.loss[history.best]:.3f} m in {steps * simulation.dt:g} s"
    )
    _write_motion(folder, simulation, policy, steps)


def _simulate(options: argparse.Namespace) -> None:
    simulation = _simulation(options)
    steps, folder = _steps(options, simulation), _folder(options)
    policy = None
    if options.controller is not None:
        policy = _policy(simulation)
        _restore(policy, options.controller)
    _write_motion(folder, simulation, policy, steps)


def _load(path: Path) -> dict:
    if not path.is_file():
        raise FileNotFoundError(f"there is no controller {path}; train one first with 'warpbots train SCENE'")
    try:
        return torch.load(path, weights_only=True)
    except Exception as fault:  # torch raises whatever pickle, zipfile and its own readers raise
        raise ValueError(f"{path} is not a controller written by 'warpbots train'; train a new one") from fault


def _restore(policy: torch.nn.Module, path: Path) -> None:
    """Give a controller the weights in a file."""
    weights = _load(path)
    try:
        policy.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as fault:
        raise ValueError(f"{path} is a controller for another robot, scene or task; train one for this one") from fault


def _write_motion(folder: Path, simulation: wb.Simulation, policy: torch.nn.Module | None, steps: int) -> None:
    with torch.no_grad():
        trajectory = simulation.rollout(policy, steps)
    wb.view.animate(folder / "motion.gif", trajectory)
    wb.usd.write(folder / "motion.usda", trajectory)
    print("wrote")
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        print(f"  {path}  ({path.stat().st_size / 1e3:.0f} kB)")


def _info(options: argparse.Namespace) -> None:
    simulation = _simulation(options)
    scene, model = simulation.scene, simulation.model
    (_say_rigid if model.matter is None else _say_soft)(scene, model)
    for obstacle in scene.obstacles:
        print(
            f"  obstacle {obstacle.name}: {type(obstacle.shape).__name__}, {obstacle.condition}"
            + (f", mu {obstacle.friction:g}" if obstacle.condition == "friction" else "")
        )
    for attachment in scene.attachments:
        print(f"  attachment {attachment.name}: {attachment.first} to {attachment.second}")
    for part in (*scene.constraints, *scene.loads):
        print(f"  {type(part).__name__.lower()} {part.name}: region {part.region}")
    print(f"  {type(simulation.solver).__name__}: {model.summary()}")
    print("differentiable:")
    state = simulation.state()
    for name, field in vars(state).items():
        if field.numel():
            print(f"  state {name}: shape {tuple(field.shape)}")
    print(f"  control: shape (worlds, steps, {simulation.channels}), in [-1, 1]")
    for name, p in simulation.parameters().items():
        left = "[" if p.inclusive else "("
        shape = tuple(simulation.parameter(name).shape)
        print(f"  {name}: {p.doc}, shape {shape}, {left}{p.lower:g}, {p.upper:g}) {p.unit}")
    step = simulation.dt / simulation.substeps
    bound = simulation.max_time_step
    print(
        f"time step: {step:.3g} s ({simulation.dt:g} s in {simulation.substeps} substeps), "
        + (f"{step / bound:.0%} of the stability bound of {bound:.3g} s" if math.isfinite(bound) else "implicit")
    )


def _say_soft(scene: wb.Scene, model: Any) -> None:
    """Print soft bodies and their actuators."""
    print(f"{scene.name}: {scene.dim}D, {len(model.matter)} particles, gravity {list(scene.gravity)} m/s^2")
    for i, body in enumerate(scene.bodies):
        m = body.material
        count = int((model.matter.body == i).sum())
        print(
            f"  body {body.name}: {type(body.shape).__name__}, {count} particles, {m.law}, E {m.youngs_modulus:g} Pa, "
            f"nu {m.poissons_ratio:g}, density {m.density:g} kg/m^{scene.dim}"
        )
        for region in body.regions:
            print(f"    region {region}: {int(model.matter.regions[region].sum())} particles")
    for channel, actuator in enumerate(scene.actuators):
        print(f"  control channel {channel}: {type(actuator).__name__} {actuator.name}")


def _say_rigid(scene: wb.Scene, model: Any) -> None:
    """Print rigid bodies, their joints, motors and contact laws."""
    mass = model.parameter("mass").numpy()[0]
    print(f"{scene.name}: {len(mass)} rigid bodies, {mass.sum():.4g} kg, gravity {list(scene.gravity)} m/s^2")
    for body, m in zip(scene.rigid, mass, strict=True):
        shape = "no shape" if body.shape is None else type(body.shape).__name__
        print(f"  body {body.name}: {shape}, {m:.4g} kg" + (f", surface {body.surface}" if body.surface else ""))
    for joint in model.robot.joints:
        limits = "" if joint.lower is None else f", limits {list(joint.lower)} to {list(joint.upper)}"
        print(f"  joint {joint.name}: {joint.kind}, {joint.parent or 'world'} to {joint.child}{limits}")
    for channel, motor in enumerate(scene.actuators):
        strength = f"up to {motor.max_torque:g}" if isinstance(motor, wb.Torque) else f"stiffness {motor.stiffness:g}"
        print(f"  control channel {channel}: {type(motor).__name__} {motor.name} at joint {motor.joint}, {strength}")
    for law in scene.contacts:
        print(f"  contact {law.name}: {law.stiffness:g} Pa/m, mu {law.friction:g}")
