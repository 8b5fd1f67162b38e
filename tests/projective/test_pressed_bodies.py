"""Adjoints of light rigid bodies that a load presses from both sides, with far more force than their inertia."""

import numpy as np
import pytest
import torch
from loose_bodies import last, pile, simulated

pytestmark = pytest.mark.verification
DT = 0.01


def pressed_pile():
    """Three cubes at rest on one another, each thirty times as heavy as the one below; the simulation and its state."""
    sim = simulated(pile(3, 30.0), 0.03, DT)
    return sim, last(sim, 4)


def after(sim, state, qd: torch.Tensor) -> torch.Tensor:
    """Joint velocities after a step from `state` with the joint velocities `qd`."""
    return sim.step(sim.state(q=state.q, qd=qd), torch.zeros(1, 0)).qd


def test_a_load_does_not_slow_the_adjoint(rng):
    """It took 20 iterations instead of 13, as forces did work along motions that contacts stop."""
    sim, state = pressed_pile()
    qd, weight = state.qd.clone().requires_grad_(), torch.as_tensor(rng.normal(size=state.qd.shape))
    (gradient,) = torch.autograd.grad((weight * after(sim, state, qd)).sum(), qd)
    iterations = sim.model.matrices.of(DT).iteration.progress.iterations.numpy().max()
    way = 1e-6 * torch.as_tensor(rng.normal(size=qd.shape))
    ends = [(weight * after(sim, state, state.qd + s * way)).sum().item() for s in (1.0, -1.0)]
    np.testing.assert_allclose((gradient * way).sum().item(), 0.5 * (ends[0] - ends[1]), rtol=1e-4)
    assert iterations <= 16


def test_a_load_does_not_cancel_the_inertia_that_preconditions_the_adjoint():
    """At some load the matrix of the joints was singular, and at greater ones it was indefinite."""
    sim, state = pressed_pile()
    qd = state.qd.clone().requires_grad_()
    after(sim, state, qd).sum().backward()
    handles, work = sim.model.matrices.of(DT).handles, sim.model.workspace.bones.work[1]
    start, blocks = handles.entry.numpy(), work.inverse.numpy()
    for first, end in zip(start[:-1], start[1:], strict=True):
        n = round((end - first) ** 0.5)
        block = blocks[first:end].reshape(n, n)
        assert np.linalg.eigvals(block).real.min() > 0.0
