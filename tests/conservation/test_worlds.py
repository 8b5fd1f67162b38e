"""Worlds do not feel each other."""

import pytest
import torch
from cases import IDLE, SOLVERS, SPACES, busy, least

from warpbots.simulation import Simulation

SHARED = ("gravity", "rest_length", "rest_position")
"""Parameters that a factor from world to world would change too much."""


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("solver", "dim"), SPACES)
def test_a_world_among_others_moves_as_if_alone(solver, dim):
    """Three worlds with parameters, states and controls of their own equal three simulations to the last bit."""
    crowd = Simulation(busy(dim, solver=solver), SOLVERS[solver](1 / 16), 4e-3, substeps=4, worlds=3)
    alone = Simulation(busy(dim, solver=solver), SOLVERS[solver](1 / 16), 4e-3, substeps=4)
    stretch = torch.tensor([0.8, 1.0, 1.2])
    parameters = {n: crowd.parameter(n) for n in crowd.parameters() if n not in SHARED}
    parameters = {n: p * stretch.reshape(-1, *(1,) * (p.ndim - 1)) for n, p in parameters.items()}
    parameters["gravity"] = torch.tensor([-2.0, -5.0, -9.0])[:, None] * torch.eye(dim)[-1]
    velocity = torch.tensor([0.0, 1.0, 2.0])[:, None, None] * torch.eye(dim)[0] - 0.5 * torch.eye(dim)[-1]
    control = 2 * torch.rand(3, 8, crowd.channels) - 1
    together = crowd.rollout(control, 8, crowd.state(velocity=velocity), **parameters).final
    for w in range(3):
        own = {n: p[w : w + 1] for n, p in parameters.items()}
        start = alone.state(velocity=velocity[w : w + 1])
        final = alone.rollout(control[w : w + 1], 8, start, **own).final
        for name, value in vars(final).items():
            assert torch.equal(value[0], getattr(together, name)[w]), f"{name} of world {w}"


@pytest.mark.parametrize("world", [0, 1])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_gradient_stays_in_its_world(solver, world):
    """What happens in one world has no gradient in the other."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 16), 4e-3, substeps=4, worlds=2)
    inputs = {n: sim.parameter(n).requires_grad_() for n in sim.parameters()}
    control = torch.full((2, 5, sim.channels), 0.5, requires_grad=True)
    final = sim.rollout(control, 5, **inputs).final
    final.position[world].square().sum().backward()
    for name, tensor in {**inputs, "control": control}.items():
        assert (tensor.grad[1 - world] == 0).all(), name
        if name not in {"friction", *IDLE}:
            assert (tensor.grad[world] != 0).any(), name
