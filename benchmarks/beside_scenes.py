"""The experiments of ``beside_peers.py``: the scene, the loss, the controller and the data for the peer of each."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from fast import sized

import warpbots as wb
from warpbots.envs.tasks.walker_2d import walker_scene

__all__ = ["EXPERIMENTS", "Experiment"]


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
            unit of `units`.
        measure: What the negative loss is, for tables and axes, with its factor.
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

    @property
    def intervals(self) -> int:
        """Number of control intervals of an episode."""
        return self.options["intervals"]


def clocked(intervals: int, channels: int, dt: float, period: float, waves: int = 4) -> tuple[Callable, tuple]:
    """An open-loop gait u = tanh(W s(t) + b), with s_j = sin(2 pi (t / period + j / waves)), and the shape of (W, b)."""
    t = dt * torch.arange(intervals, dtype=torch.float64)
    phases = t[:, None] / period + torch.arange(waves) / waves
    signals = torch.cat([torch.sin(2.0 * torch.pi * phases), torch.ones(intervals, 1)], dim=1)
    return lambda unknowns: torch.tanh(signals.double() @ unknowns.T), (channels, waves + 1)


def walker() -> Experiment:
    """The walker of the tutorials under MPM: distance in 1 s."""
    interval, substeps, dx, intervals = 5e-3, 5, 1 / 80, sized(200, 4)
    scene = walker_scene()
    sim = wb.Simulation(scene, wb.MPM(dx), interval, substeps)
    matter, grid = sim.model.matter, sim.model.grid
    channel = np.full(len(matter.position), -1)
    for c, region in enumerate(scene.bodies[0].regions.values()):
        low, high = region.bounds
        channel[np.all((matter.position > low) & (matter.position < high), axis=1)] = c
    material = scene.bodies[0].material
    controls, shape = clocked(intervals, 4, interval, 0.25)
    start = sim.center_of_mass(sim.state())[0, 0].item()
    return Experiment(
        sim=sim,
        loss=lambda motion: start - sim.center_of_mass(motion.final)[0, 0],
        observe=sim.center_of_mass,
        units=(1e3, "mm"),
        controls=controls,
        shape=shape,
        spread=0.3,
        centre=0.0,
        rate=0.05,
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


EXPERIMENTS = {"walker": walker}
"""Experiments by name."""
