"""Gradients with respect to everything against differences, in float64.

A rollout of six steps with every actuator at work and in contact with a floor and a wall; its loss is a sum of all
entries of the final state with random weights. Along two random directions per input, each of the size of the input:

- central differences with h = 1e-5 agree to 1e-6 of themselves, or 1e-9 of the sum of their terms' sizes where those
  cancel, and the rounding of L over h (truncation h^2 and rounding eps/h are both near 1e-10);
- the Taylor remainder R(h) = |L(x + h d) - L(x) - h g . d| falls with h^2 over the first decade above the
  rounding of L (beyond, masses come to touch what they did not touch): slope in [1.9, 2.1]. A gradient that is wrong
  by 1 % would give 1.34 (and L(x + h d) - L(x) alone 1).
"""

import numpy as np
import pytest
import torch
from cases import CONSTITUTIONS, ELEMENTS, IDLE, SOLVERS, WORKING, Loss, busy

from warpbots.simulation import Simulation

pytestmark = pytest.mark.verification

DIRECTIONS = 2
SIZES = {
    "position": 0.01, "rest_position": 0.05, "velocity": 1.0, "velocity_gradient": 3.0, "deformation": 0.3, "control": 0.9, "friction": 1.0, "time": 0.1,
    "gravity": 9.81, "load": 20.0,
}  # fmt: skip
"""How far an input may move [its unit]; parameters not named here by their own value."""


LONG = {("projective", law, 3) for law in CONSTITUTIONS[2:]}
"""Implicit steps of laws whose adjoint other laws and `test_differential` judge, too."""


@pytest.mark.parametrize(
    ("solver", "law", "dim"),
    [pytest.param(*case, marks=pytest.mark.slow if case in LONG else ()) for case in WORKING],
    ids=str,
)
def test_gradient_to_everything(solver, law, dim, rng):
    sim = Simulation(busy(dim, *law, solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3, worlds=2)
    loss = Loss(sim, rng)
    L, gradient = float(loss(loss.inputs)), loss.gradient()
    for name, g in gradient.items():
        if name in IDLE:
            assert (g == 0).all(), f"{name} has an effect here"
            continue
        assert (g != 0).any(), f"{name} has no effect here"
        size = SIZES.get(name, loss.inputs[name].abs())
        for _ in range(DIRECTIONS):
            d = size * torch.as_tensor(rng.uniform(-1, 1, g.shape))
            slope = float((g * d).sum())
            difference = (loss.along(name, d, 1e-5) - loss.along(name, d, -1e-5)) / 2e-5
            h = np.geomspace(1e-5, 1e-2, 7)
            remainder = np.array([abs(loss.along(name, d, x) - L - x * slope) for x in h])
            print(f"{name}: {slope:+.3e}, off by {abs(slope - difference):.1e}, remainders {remainder}")
            rounding = (1e-15 if solver in ELEMENTS else 2e-16) * loss.size  # implicit steps are iterated to their end
            allowed = 1e-6 * abs(difference) + 1e-9 * float((g * d).abs().sum()) + rounding / 1e-5
            assert abs(slope - difference) < allowed, name
            first = np.flatnonzero(remainder <= 200.0 * rounding).max(initial=-1) + 1  # from where all are above it
            seen = slice(first, first + 3)
            if len(h[seen]) == 3:  # where fewer are, L is linear
                order = np.polyfit(np.log(h[seen]), np.log(remainder[seen]), 1)[0]
                assert 1.8 < order < 2.3, name  # 2 but for terms of third order; a wrong gradient makes it 1
