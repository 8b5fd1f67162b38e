"""A signal has the same effect in whichever interval it comes, under every solver: no formula reaches across a jump."""

import pytest
import torch
from cases import ACTUATORS, ELEMENTS, SOLVERS, block, least

from warpbots.simulation import Simulation

LATE, AFTER = 3, 4


def blocks(solver: str, substeps: int, worlds: int = 1) -> Simulation:
    """A block at rest with a muscle, without gravity."""
    dim = least(solver)
    scene = block(dim, actuators=(ACTUATORS["muscle"](dim),), gravity=(0.0,) * dim)
    return Simulation(scene, SOLVERS[solver](1 / 8), 1e-3 * substeps, substeps, worlds=worlds)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    """Equal but for rounding, and for the tolerance of iterations."""
    torch.testing.assert_close(a, b, rtol=0, atol=1e-3 * float(b.abs().max()))


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_pulse_has_the_same_effect_and_gradient_whenever_it_comes(solver, substeps):
    sim = blocks(solver, substeps)
    start, found = sim.state().position, []
    weight = torch.linspace(-1.0, 1.0, start.numel(), dtype=start.dtype).reshape(start.shape)
    for late in (0, LATE):
        u = torch.zeros(late + AFTER, 1, dtype=start.dtype)
        u[late] = 0.8
        u.requires_grad_()
        final = sim.rollout(u, len(u)).final
        (weight * final.velocity).sum().backward()
        found.append((final.position.detach() - start, final.velocity.detach(), u.grad[late:]))
    assert float(found[0][1].abs().max()) > 1e-3
    for early, later in zip(*found, strict=True):
        close(later, early)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("solver", [s for s in SOLVERS if s not in ELEMENTS or s == "projective"])
def test_a_pulse_has_the_same_effect_in_worlds_of_another_age(solver):
    sim = blocks(solver, 2, worlds=2)
    u = torch.full((2, 1), 0.8)
    state = sim.reset(sim.step(sim.step(sim.state(), u), -u), [1])
    again, first = sim.step(state, u), sim.step(sim.state(), u)
    close(again.velocity[1], first.velocity[1])
    close(again.position[1] - sim.state().position[1], first.position[1] - sim.state().position[1])
