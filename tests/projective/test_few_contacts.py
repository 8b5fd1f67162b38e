"""A few contacts are solved for together: the same steps and gradients as by sweeps, in fewer iterations."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from soft_bodies import iterations

from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_workspace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from degenerate_contacts import scene

SWEEPS = 0
"""Number of contacts that are solved for together when all are swept."""


def pushed(dt: float, steps: int) -> tuple[np.ndarray, list[float], list[int]]:
    """A soft block that slides on a floor until it sticks: its end, slopes of a loss, and iterations of the steps."""
    block = SoftBody(
        "block",
        Box((0, 0, 1e-4), (0.1, 0.1, 0.1001)),
        Material(5e4, 0.3, 800.0),
        velocity=(0.3, 0.1, 0.0),
        friction=0.4,
    )
    solver = ProjectiveDynamics(0.05, tolerance=1e-10 if precision == "float64" else None)
    sim = Simulation(Scene((block,), obstacles=(Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), friction=0.4),)), solver, dt)
    leaves = {name: sim.parameter(name).clone().requires_grad_() for name in ("friction", "youngs_modulus")}
    state, counts = sim.state(), []
    for _ in range(steps):
        state = sim.step(state, torch.zeros(0), **leaves)
        counts.append(iterations(sim))
    x = state.position[0]
    (x * torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape)).sum().backward()
    return x.detach().double().numpy(), [float(v.grad.sum()) for v in leaves.values()], counts


def test_steps_and_gradients_are_those_of_sweeps(monkeypatch):
    """Contacts slide and stick; sweeps are another way to the same forces, and to the same adjoint."""
    ends = []
    for few in (contact_workspace.FEW, SWEEPS):
        monkeypatch.setattr(contact_workspace, "FEW", few)
        ends.append(pushed(0.01, 8))
    (x, slopes, _), (other, swept, _) = ends
    double = precision == "float64"
    np.testing.assert_allclose(x, other, atol=1e-9 if double else 2e-6)
    np.testing.assert_allclose(slopes, swept, rtol=1e-6 if double else 2e-3)
    assert min(map(abs, slopes)) > 0.0


@pytest.mark.parametrize(("kind", "most"), [("cube on cubes", 35), ("cube over internal edges", 40)])
def test_contacts_that_share_a_load_need_few_iterations(kind, most):
    """Nine contacts hold a cube on others in a step of 0.1 s; with sweeps, steps took 54 to 102 iterations."""
    sim = Simulation(scene(kind, "soft"), ProjectiveDynamics(0.05), 0.1)
    state, counts = sim.state(), []
    for _ in range(3):
        state = sim.step(state, torch.zeros(0))
        counts.append(iterations(sim))
    assert max(counts[1:]) < most, counts
