"""Scenes far from the origin, where single precision rounds positions, move as they do at it."""

import numpy as np
import pytest
import torch
from soft_bodies import machine, simulation

from warpbots.numerics import real_numpy
from warpbots.scene import Box, Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

FAR = 64.0
"""Distance from the origin along all axes [m]: positions there are multiples of 8 um in single precision."""


def thrown() -> Simulation:
    """A cube that is thrown at another one, which it hits with a face."""
    material = Material(1e5, 0.4, 1000.0, "neo_hookean")
    lower = SoftBody("lower", Box((0, 0, 0), (0.1, 0.1, 0.1)), material, friction=0.3)
    place = Box((0.02, 0.03, 0.102), (0.12, 0.13, 0.202))
    upper = SoftBody("upper", place, material, velocity=(0.1, 0, -1.0), friction=0.3)
    return Simulation(Scene((lower, upper), gravity=(0, 0, 0)), ProjectiveDynamics(0.05), 0.005)


def moved(sim: Simulation, away: float) -> tuple[np.ndarray, list[int]]:
    """Displacements in ten steps from `away` [m], and the iterations of each."""
    start = sim.state().position + away
    state, control, iterations = sim.state(position=start), torch.full((sim.channels,), 0.3), []
    for _ in range(10):
        state = sim.step(state, control)
        iterations.append(int(sim.report().iterations[0]))
    assert state.shorter_steps[0] == 0
    return (state.position - start)[0].double().cpu().numpy(), iterations


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("scene", [thrown, lambda: simulation(machine())], ids=["cubes that collide", "an attachment"])
def test_it_moves_as_at_the_origin(scene):
    """To the rounding of the positions of every step, in as many iterations."""
    (here, steps), (there, others) = (moved(scene(), away) for away in (0.0, FAR))
    assert np.abs(here).max() > 1e-3
    assert np.abs(there - here).max() < 10 * np.finfo(real_numpy).eps * FAR
    assert np.mean(others) < 1.1 * np.mean(steps)
