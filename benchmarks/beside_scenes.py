"""The experiments of ``beside_peers.py``: the scene, the loss, the controller and the data for the peer of each."""

import atexit
import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fast import sized
from scenes import walker as spatial_walker

import warpbots as wb
from warpbots.envs.tasks.walker_2d import walker_scene

__all__ = ["EXPERIMENTS", "Experiment"]

ALL = wb.Checkpoints.all()
"""All states are kept for the backward pass, as in the peers."""


@dataclasses.dataclass
class Experiment:
    """One experiment.

    Attributes:
        sim: The simulation.
        loss: Loss of a trajectory.
        observe: What is compared along the way: a function of states that returns shape (worlds, n).
        units: Factor and unit in which differences of what is observed are printed.
        controls: Controls, shape (intervals, channels), of the unknowns.
        shape: Shape of the unknowns.
        spread: Standard deviation of the unknowns at the start.
        centre: Mean of the unknowns at the start.
        rate: Learning rate of Adam.
        episodes: Number of episodes.
        script: Script of the peer.
        install: Command that installs the peer.
        options: Options of the peer.
        arrays: Arrays of the scene for the peer.
        agree: Number of intervals of the comparison of motions, and the largest difference that is accepted, in the
            unit of `units`; infinity if contact laws differ.
        measure: Factor from the loss to the number in tables and axes, and the name of this number.
        check: Function that makes an experiment without contact, in which motions have to agree, too; None if this one
            suffices.
        worlds: Numbers of worlds in which episodes are timed, forward and with gradient; none if the peer simulates a
            single world.
    """

    sim: wb.Simulation
    loss: Callable[[wb.Trajectory], torch.Tensor]
    observe: Callable[[Any], torch.Tensor]
    units: tuple[float, str]
    controls: Callable[[torch.Tensor], torch.Tensor]
    shape: tuple[int, ...]
    spread: float
    centre: float
    rate: float
    episodes: int
    script: str
    install: str
    options: dict
    arrays: dict[str, np.ndarray]
    agree: tuple[int, float]
    measure: tuple[float, str]
    check: "Callable[[], Experiment] | None" = None
    worlds: tuple[int, ...] = ()

    @property
    def intervals(self) -> int:
        """Number of control intervals of an episode."""
        return self.options["intervals"]

    @property
    def steps(self) -> int:
        """Number of steps of an episode."""
        return self.intervals * self.options["substeps"]


def clocked(intervals: int, channels: int, dt: float, period: float, waves: int = 4) -> tuple[Callable, tuple]:
    """Gait u = tanh(W s(t) + b), with s_j = sin(2 pi (t / period + j / waves)), and the shape of (W, b)."""
    t = dt * torch.arange(intervals, dtype=torch.float64)
    phases = t[:, None] / period + torch.arange(waves) / waves
    signals = torch.cat([torch.sin(2.0 * torch.pi * phases), torch.ones(intervals, 1)], dim=1)
    return lambda unknowns: torch.tanh(signals.double() @ unknowns.T), (channels, waves + 1)


def walking(sim: wb.Simulation, intervals: int) -> dict:
    """Fields of an experiment in which a robot with four channels learns to walk far along x."""
    controls, shape = clocked(intervals, 4, sim.dt, 0.25)
    start = sim.center_of_mass(sim.state())[0, 0].item()
    return {
        "sim": sim,
        "loss": lambda motion: start - sim.center_of_mass(motion.final)[0, 0],
        "observe": lambda state: state.position.flatten(1),
        "units": (1e3, "mm"),
        "controls": controls,
        "shape": shape,
        "spread": 0.3,
        "centre": 0.0,
        "rate": 0.05,
    }


def walker() -> Experiment:
    """The walker of the tutorials under MPM: distance in 1 s."""
    interval, substeps, dx, intervals = 5e-3, 5, 1 / 80, sized(200, 20)
    scene = walker_scene()
    sim = wb.Simulation(scene, wb.MPM(dx), interval, substeps)
    matter, grid = sim.model.matter, sim.model.grid
    channel = np.full(len(matter.position), -1)
    for c, region in enumerate(scene.bodies[0].regions.values()):
        low, high = region.bounds
        channel[np.all((matter.position > low) & (matter.position < high), axis=1)] = c
    material = scene.bodies[0].material
    return Experiment(
        **walking(sim, intervals),
        episodes=sized(40, 1),
        script="taichi_walker.py",
        install="pip install taichi",
        options={
            "dx": dx, "resolution": grid.resolution, "dt": interval / substeps, "substeps": substeps,
            "intervals": intervals, "channels": 4, "max_stress": 2e3, "friction": 0.5,
            "floor_node": int(round(-grid.lower[1] / dx)), "youngs_modulus": material.youngs_modulus,
            "poissons_ratio": material.poissons_ratio, "density": material.density,
        },
        arrays={"position": matter.position - grid.lower, "channel": channel, "origin": grid.lower},
        agree=(sized(40, 4), 0.1),
        measure=(-1e2, "distance in 1 s [cm]"),
    )  # fmt: skip


def robot(contact: bool = True) -> Experiment:
    """The walker in space under masses and springs: distance in 0.5 s; without `contact` it falls for 0.2 s.

    Newton has one contact stiffness for all masses, where warpbots has one for each area: both have the same sum over
    the soles. Its friction grows with speed as long as Coulomb's law permits, so steeply that the smallest mass just
    stops in a step; the friction of warpbots sticks.
    """
    interval, spacing, intervals = 1e-2, 1 / 30, sized(50 if contact else 20, 2)
    scene = spatial_walker()
    if not contact:
        scene = dataclasses.replace(scene, obstacles=[])
    sim = wb.Simulation(scene, wb.MassSpring(spacing, damping=1e-3, contact_stiffness=1e7), interval, checkpoints=ALL)
    made, dt = sim.model.lattice, interval / sim.substeps
    gain = np.zeros((len(made.ends), 4))
    gain[made.drive[:, 0].astype(int), made.drive[:, 1].astype(int)] = made.drive[:, 2]
    sole = made.position[:, 2] < 0.5 * spacing
    return Experiment(
        **walking(sim, intervals),
        episodes=sized(20, 1),
        script="newton_robot.py",
        install="pip install newton",
        options={
            "substeps": sim.substeps, "intervals": intervals, "dt": dt, "spacing": spacing, "contact": contact,
            "gravity": list(scene.gravity), "floor": -1e-3, "friction": 0.5,
            "contact_stiffness": float(sim.model.contact.numpy()[sole].mean()), "friction_slope": made.mass.min() / dt,
        },
        arrays={
            "position": made.position, "mass": made.mass, "ends": made.ends, "stiffness": made.stiffness,
            "damping": made.damping, "rest_length": made.rest_length, "gain": gain,
        },
        agree=(sized(20, 2), np.inf if contact else 0.1),
        measure=(-1e2, "distance in 0.5 s [cm]"),
        check=(lambda: robot(contact=False)) if contact else None,
    )  # fmt: skip


def hand_scene() -> wb.Scene:
    """Three fingers of two links above a rod that slides and turns in a plane, in a viscous fluid."""
    capsule, radius = wb.shapes.Capsule, 0.008
    bodies, joints, motors = [], [], []
    for finger, y in enumerate((-0.05, 0.0, 0.05)):
        z, parent = 0.12, None
        for link, length in enumerate((0.05, 0.045)):
            name = f"finger{finger}_{link}"
            shape = capsule((0.0, y, z), (0.0, y, z - length), radius)
            bodies.append(wb.RigidBody(name, shape, points=64, surface="fingers"))
            joints.append(
                wb.Joint(name, "revolute", parent, name, position=(0.0, y, z), axis=(0.0, -1.0, 0.0), damping=1e-3)
            )
            motors.append(wb.actuators.Torque(name, name, 0.03))
            parent, z = name, z - length
    rod = capsule((0.03, -0.08, 0.03), (0.03, 0.08, 0.03), 0.015)
    bodies.append(wb.RigidBody("rod", rod, surface="rod"))
    joints.append(wb.Joint("rod", "free_2d", None, "rod", position=(0.03, 0.0, 0.03), damping=(0.5, 0.5, 2e-3)))
    return wb.Scene(bodies, motors, joints=joints, contacts=[wb.Contact("fingers", "rod", 1e7, 1e8, 0.3, 1e5)])


def hand() -> Experiment:
    """Three fingers push a rod 4 cm forward and turn it by 0.3 rad, by a table of torques of 0.5 s.

    The scene goes to MuJoCo as MJCF, with the laws of contact as close as its soft constraints permit. MJX has its
    gradient in reverse mode only if its solver runs a single iteration in each step. With several worlds, the loss is
    the sum of theirs.
    """
    interval, substeps, intervals = 1e-2, 5, sized(50, 20)
    scene = hand_scene()
    sim = wb.Simulation(scene, wb.Articulated(), interval, substeps, checkpoints=ALL)
    target, scale = torch.tensor([0.04, 0.0, 0.3]).double(), torch.tensor([0.04, 0.04, 0.3]).double()
    file = Path(tempfile.mkdtemp(prefix="warpbots-")) / "hand.xml"
    atexit.register(shutil.rmtree, file.parent, ignore_errors=True)
    wb.robots.save(file, scene, timestep=interval / substeps)
    return Experiment(
        sim=sim,
        loss=lambda motion: ((motion.final.q[:, -3:] - target) / scale).square().sum(),
        observe=lambda state: state.q,
        units=(1.0, "(m, rad)"),
        controls=lambda unknowns: torch.tanh(unknowns).repeat_interleave(intervals // len(unknowns), dim=0),
        shape=(sized(10, 2), 6),
        spread=0.2,
        centre=0.3,
        rate=0.05,
        episodes=sized(40, 1),
        script="mjx_hand.py",
        install="pip install mujoco-mjx",
        options={
            "file": str(file), "dt": interval / substeps, "substeps": substeps, "intervals": intervals,
            "target": target.tolist(), "scale": scale.tolist(),
        },
        arrays={},
        agree=(2, 5e-3),
        measure=(1.0, "squared error of the rod's pose"),
        worlds=sized((1, 16), (1, 2)),
    )  # fmt: skip


EXPERIMENTS = {"walker": walker, "robot": robot, "hand": hand}
"""Experiments by name."""
