"""Laws with constants of their own, in the solvers of continua: gradients, refusals, records, and the edge of a law."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import LAW_CASES, SOLVERS, block

from warpbots.simulation import Simulation

WITH_CONSTANTS = tuple(law for law, case in LAW_CASES.items() if case.constants)
QUICK = {("gent", "mpm", 2), ("ogden", "mpm", 3), ("mooney_rivlin", "projective", 3)}
EVERY = [
    pytest.param(law, solver, dim, marks=() if (law, solver, dim) in QUICK else pytest.mark.slow)
    for law in WITH_CONSTANTS
    for solver, dim in (("mpm", 2), ("mpm", 3), ("projective", 3))
]


def stretched(law: str, solver: str, dim: int, incompressibility: int = 0) -> tuple[Simulation, dict]:
    """A block whose matter is stretched and sheared at the start, and that state."""
    scene = dataclasses.replace(block(dim, law, incompressibility), gravity=(0.0,) * dim)
    sim = Simulation(scene, SOLVERS[solver](1 / 8), 2e-3, None)
    A = torch.eye(dim, dtype=torch.float64) + 0.2 * torch.eye(dim).roll(1, 0)
    A[0, 0] = 1.4
    rest = sim.state()
    start = {"position": rest.position @ A.T.to(rest.position)}
    if solver == "mpm":
        start["position"] -= start["position"].mean(1, keepdim=True) - 0.5
        start["deformation"] = A.to(rest.deformation).expand(rest.deformation.shape)
    return sim, start


@pytest.mark.verification
@pytest.mark.parametrize(("law", "solver", "dim"), EVERY)
def test_gradients_to_the_constants_are_the_differences(law, solver, dim, rng):
    """Of a rollout's loss, for constants that differ from point to point: slopes to 1e-6, remainders of second order."""
    sim, start = stretched(law, solver, dim)
    final = sim.rollout(None, 2, sim.state(**start)).final
    weights = torch.as_tensor(rng.normal(size=final.position.shape))

    def loss(**constants):
        final = sim.rollout(None, 2, sim.state(**start), **constants).final
        return (weights * (final.position + 0.01 * final.velocity)).sum()

    names = list(LAW_CASES[law].constants)
    at = {n: sim.parameter(n) * (1 + 0.1 * torch.as_tensor(rng.uniform(-1, 1, sim.parameter(n).shape))) for n in names}
    leaves = {n: t.clone().requires_grad_() for n, t in at.items()}
    gradients = dict(zip(names, torch.autograd.grad(loss(**leaves), list(leaves.values())), strict=True))
    for name, gradient in gradients.items():
        direction = at[name] * torch.as_tensor(rng.uniform(-1, 1, at[name].shape))
        slope = float((gradient * direction).sum())
        assert abs(slope) > 1e-6, name

        def moved(h: float, name=name, direction=direction) -> float:
            return float(loss(**{**at, name: at[name] + h * direction}))

        h = 1e-3
        assert (moved(h) - moved(-h)) / (2 * h) == pytest.approx(slope, rel=1e-5), name
        remainders = [abs(moved(h) - moved(0.0) - h * slope) for h in (0.08, 0.04, 0.02)]
        orders = np.log2(np.array(remainders[:-1]) / remainders[1:])
        assert (np.abs(orders - 2.0) < 0.2).all(), (name, orders)
