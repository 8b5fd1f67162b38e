"""Gradients to what all threads share are added up in copies of it where there are many threads."""

import numpy as np
import pytest
import torch
import warp as wp
from cases import SOLVERS, busy

from warpbots.numerics import Copies, gradient_copies, real, vector
from warpbots.simulation import Simulation
from warpbots.solvers.mpm import explicit_step, workspace


@pytest.fixture
def many_threads(monkeypatch):
    monkeypatch.setattr(gradient_copies, "parallel", lambda device: True)


@pytest.mark.parametrize("dtype", [real, vector(3)])
def test_copies_are_what_they_are_of(dtype, many_threads, rng):
    """Every row is there as often as it should be, and gets the sum of what its copies got, on top of what it had."""
    shape = (3, 2) if dtype is real else (3,)
    width = () if dtype is real else (3,)
    values = wp.array(rng.integers(1, 9, (*shape, *width)), dtype=dtype, requires_grad=True)
    shared = Copies.of(values.device)
    count = shared.count
    assert count > 1
    spread = shared.values("it", values)
    assert np.array_equal(spread.numpy(), np.repeat(values.numpy(), count, axis=0))
    gradient, own = rng.integers(1, 9, spread.numpy().shape), rng.integers(1, 9, values.numpy().shape)
    shared.gradient("it", values).assign(gradient)
    values.grad.assign(own)
    shared.collect("it", values)
    expected = own + gradient.reshape(3, count, *own.shape[1:]).sum(axis=1)
    assert np.array_equal(values.grad.numpy(), expected)
    assert not shared.gradient("it", values).numpy().any()
    assert shared.wanted(wp.zeros(1, dtype=real)).count == 1


@pytest.mark.parametrize(("solver", "dim"), [("mpm", 2), ("mpm", 3), ("springs", 3)])
def test_gradients_are_those_of_one_thread(solver, dim, monkeypatch):
    """To rounding, for two worlds that differ; and each adds to several copies of everything."""
    names = ("gravity", "friction")

    def run() -> tuple:
        sim = Simulation(busy(dim, solver=solver), SOLVERS[solver](1 / 16), dt=6e-3, substeps=3, worlds=2)
        given = {name: sim.parameter(name) for name in names}
        for value in given.values():
            value[1] *= 1.1
            value.requires_grad_()
        control = torch.full((2, 3, sim.channels), 0.3)
        control[1] *= -0.5
        control.requires_grad_()
        end = sim.rollout(control, 3, **given).final
        loss = end.position.square().sum() + 0.1 * end.velocity.square().sum()
        return sim, torch.autograd.grad(loss, [control, *given.values()])

    expected = run()[1]
    for module in (gradient_copies, explicit_step, workspace):
        monkeypatch.setattr(module, "parallel", lambda device: True)
    sim, found = run()
    tolerance = 1e-12 if expected[0].dtype == torch.float64 else 1e-4
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=tolerance * b.abs().max().item())
    work = sim.model.workspace
    rows = work.copies._rows | (work.signal_copies._rows if solver == "mpm" else {})
    assert rows.keys() == {"gravity", "friction", "control" if solver == "mpm" else "signal"}
    for name, array in rows.items():
        used = np.abs(array.grad.numpy()).reshape(2, len(array) // 2, -1).max(axis=2) > 0.0
        assert (used.sum(axis=1) > (0 if name == "friction" else 8)).all()  # few nodes slide
