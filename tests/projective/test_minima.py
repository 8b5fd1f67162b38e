"""Accelerated iterations that minimise an energy end at minima, and not at saddles, where residuals are small, too."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import precision, real_numpy
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.islands import islands_of
from warpbots.solvers.projective.iterate.anderson import accelerate, begin
from warpbots.solvers.projective.iterate.anderson_arrays import iteration
from warpbots.solvers.projective.iterate.convergence import Objective
from warpbots.solvers.projective.iterate.error_estimate import criterion

TOLERANCE = 1e-5 if precision == "float32" else 1e-9


def ended(start: np.ndarray, width: np.ndarray, minimises: bool) -> np.ndarray:
    """Where z <- z - grad / 2 ends for the energy sum of 1/4 z^4 / a^2 - 1/2 z^2, with minima at +-a.

    Args:
        start: z, shape (n, 3).
        width: a, shape (n, 3).
        minimises: Whether the iteration knows that it minimises an energy.
    """
    n, device = len(start), wp.get_device("cpu")
    it = iteration(1, 10, np.ones(n), np.ones(n), islands_of(Components.one(n), np.zeros(0), 0, 1, device), device)
    z, f, progress = it.history.z, it.history.f, it.progress
    wide = np.zeros((n, 4), dtype=real_numpy)
    wide[:, :3] = start
    z.assign(wide)
    residual = wp.zeros_like(z)
    begin(it, wp.ones(1, dtype=int, device=device))
    while progress.any.numpy()[0]:
        at = z.numpy()[:, :3].astype(float)
        wide[:, :3] = at - at**3 / width**2
        residual.assign(wide)
        f.assign(0.5 * wide)
        accelerate(it, criterion(TOLERANCE, 500, by_edge=True), Objective(residual, n) if minimises else None)
    assert progress.converged.numpy()[0] == 1
    return z.numpy()[:, :3].astype(float)


@pytest.mark.parametrize("seed", range(8))
def test_an_iteration_that_begins_near_a_saddle_ends_at_a_minimum(seed):
    """All 12 coordinates begin within 2 % of 0, and end at the minimum on their side; looking for a fixed point, at 0."""
    rng = np.random.default_rng(seed)
    start, width = 0.02 * rng.uniform(-1, 1, (4, 3)), rng.uniform(0.5, 2.0, (4, 3))
    z = ended(start, width, minimises=True)
    np.testing.assert_allclose(z, np.sign(start) * width, rtol=1e-3)
    assert np.abs(ended(start, width, minimises=False)).max() < 1e-4
