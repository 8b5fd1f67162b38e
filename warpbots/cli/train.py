"""``warpbots train``: trains a controller that makes a robot travel, with gradients of the simulation."""

import argparse
from typing import Any

import torch

import warpbots as wb
from warpbots.cli import simulations
from warpbots.cli.motions import write
from warpbots.cli.team import share, team, variations
from warpbots.output_files import replacing
from warpbots.scene import JOINTS, fingerprint

__all__ = ["train", "trained"]


def _can_travel(simulation: wb.Simulation) -> bool:
    """Whether an actuator drives soft matter, or a tree of rigid bodies whose root joint lets it travel."""
    scene = simulation.scene
    driven = {motor.joint for motor in scene.actuators if isinstance(motor, wb.actuators.Torque | wb.actuators.Servo)}
    if any(not isinstance(actuator, wb.actuators.Torque | wb.actuators.Servo) for actuator in scene.actuators):
        return True
    robot = simulation.model.robot
    for body, joint in enumerate(robot.joints):
        if joint.name in driven:
            while robot.parents[body] >= 0:
                body = robot.parents[body]
            if JOINTS[robot.joints[body].kind].travels:
                return True
    return False


def _about(simulation: wb.Simulation, policy: wb.controllers.MLP, steps: int) -> dict[str, object]:
    """Settings that identify a training; it is resumed only with the same settings."""
    scene = simulation.scene
    return {
        "scene": f"{scene.name} ({fingerprint(scene)[:12]})",
        "solver": simulation.solver,
        "dt": simulation.dt,
        "substeps": simulation.substeps,
        "steps": steps,
        "controller": policy.layers,
    }


def _worlds(options: argparse.Namespace) -> dict[str, object]:
    """Settings for the worlds of a training; empty if there is only one world."""
    return {"worlds": options.worlds, "vary": options.vary} if options.worlds > 1 else {}


_RESULTS = ("controller.pt", "loss.csv", "loss.png", "motion.gif", "motion.usda", "checkpoint.pt")
"""Files that a training writes. A new training removes them in this order, except the last, which it overwrites."""


def train(options: argparse.Namespace) -> None:
    """Train a controller, and write the controller, the loss and the motion to a folder.

    If ``torchrun`` has started several processes, the worlds are divided among them.
    """
    trained(options)


def trained(options: argparse.Namespace) -> wb.optimize.History:
    """The same as `train`, but returns the history."""
    with team(options.device) as group:
        return _trained(options, group)


def _trained(options: argparse.Namespace, group: Any) -> wb.optimize.History:
    scene = simulations.read(options.scene, options.asset_root)
    if not scene.actuators:
        raise ValueError(f"{options.scene} has no actuators to train; see 'warpbots info {options.scene}'")
    mine = share(options.worlds, group)
    first = mine.start == 0
    if not (options.resume or options.overwrite):
        simulations.refuse_results(simulations.where(options), _RESULTS, "training")
    simulation = simulations.simulation(options, scene, len(mine))
    if simulation.scene.rigid and not _can_travel(simulation):
        raise ValueError(
            f"{options.scene}: this command trains robots to travel, but the base of this one is fixed to the "
            f"world; train it for a task of your own with warpbots.fit"
        )
    steps, folder = simulations.steps(options, simulation), simulations.folder(options)
    policy = simulations.policy(simulation, options.seed)
    task = simulation.scene.task
    start = simulation.center_of_mass(simulation.state())
    direction = start.new_tensor(task.direction if task else [1.0] + [0.0] * (simulation.scene.dim - 1))

    varied = variations(simulation, mine, options.vary, options.seed)

    def loss() -> torch.Tensor:
        trajectory = simulation.rollout(policy, steps, **varied)
        travel = ((simulation.center_of_mass(trajectory.final) - start) @ direction).mean()
        return -travel + 1e-6 * trajectory.control.square().mean()

    def save(history: wb.optimize.History) -> None:
        if len(history.loss) == 1:  # a new run begins: remove the files of an earlier one
            for name in _RESULTS[:-1]:
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
        about=_about(simulation, policy, steps) | {"seed": options.seed} | _worlds(options),
        group=group,
        lr=options.lr,
    )
    if not history.loss:
        raise RuntimeError("interrupted before the end of the first iteration: nothing was trained")
    if not first:
        return history
    save(history)
    wb.view.save_loss(folder / "loss.png", history)
    if history.interrupted:
        print("interrupted: the best controller so far is kept; continue with --resume")
    print(
        f"loss {history.loss[0]:.4g} -> {history.loss[history.best]:.4g} in {len(history.loss) - 1} iterations: the "
        f"robot travels {-history.loss[history.best]:.3f} m in {steps * simulation.dt:g} s"
    )
    if options.worlds > 1:  # the motion shows the robot with its unvaried parameters
        weights, simulation = policy.state_dict(), simulations.simulation(options, scene)
        policy = simulations.policy(simulation, options.seed)
        policy.load_state_dict(weights)
    with torch.no_grad():
        write(folder, simulation.rollout(policy, steps))
    return history
