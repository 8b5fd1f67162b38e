"""Both ways to visit springs are one physics: what a GPU does, done on a CPU."""

import dataclasses

import pytest
import torch
from cases import DIMENSIONS, LATTICES, busy, end_of, fields_of, stirred, to_numpy, worn

from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers.mass_spring.springs import rows_of

TOLERANCE = {"float64": 1e-11, "float32": 2e-3}[precision]


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("solver", LATTICES)
def test_gathering_gives_the_motion_and_the_gradients_of_scattering(solver, dim, rng):
    found = []
    inputs = None
    for gather in (False, True):
        scene = busy(dim, solver=solver)
        scene = worn(scene) if solver == "springs-rk4" else scene
        sim = Simulation(scene, LATTICES[solver](1 / 8), dt=6e-3, substeps=3, worlds=2)
        made = sim.model.lattice
        rows = rows_of(made.ends, len(made), sim.model.device, gather)
        sim._inputs.model = dataclasses.replace(sim.model, rows=rows)
        assert sim.model.gather == gather
        inputs = inputs or stirred(sim, rng, intervals=2)
        wanted = {n: t.clone().requires_grad_() for n, t in inputs.items()}
        final = end_of(sim, wanted)
        torch.manual_seed(1)
        loss = sum((torch.randn_like(f) * f).sum() for f in fields_of(final).values())
        found.append({n: to_numpy(t) for n, t in fields_of(final).items()})
        found[-1] |= dict(zip(wanted, map(to_numpy, torch.autograd.grad(loss, list(wanted.values()))), strict=True))
    for name, expected in found[0].items():
        assert abs(found[1][name] - expected).max() <= TOLERANCE * abs(expected).max(), name
        assert abs(expected).max() > 0.0, name
