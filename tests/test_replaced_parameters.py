"""Replaced parameters of a model are checked against the stability bound that they imply."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import EXPLICIT, block

from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers.mass_spring.modal_analysis import frequency_limit, highest_frequency

STIFFER = {"mpm": "youngs_modulus"} | dict.fromkeys(["springs", "springs-verlet-random", "springs-rk4"], "stiffness")
solvers = pytest.mark.parametrize("solver", EXPLICIT)


def simulation(solver: str, dim: int = 2) -> Simulation:
    """A block in a room without gravity, with the smallest safe number of substeps."""
    return Simulation(block(dim, gravity=(0.0,) * dim), EXPLICIT[solver](1 / 8), 4e-3, None, worlds=2)


@solvers
def test_matter_too_stiff_for_the_step_is_refused(solver):
    """In one world of two, in a step and in a rollout; the error has the bound and the substeps needed."""
    sim = simulation(solver)
    value = sim.parameter(STIFFER[solver])
    value[1] *= 400.0  # 20 times the frequency
    found = []
    for run in (sim.step, lambda state, control, **p: sim.rollout(None, 2, state, **p)):
        with pytest.raises(ValueError, match=f"with {STIFFER[solver]} replaced.*use|substeps=") as fault:
            run(sim.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})
        found.append(str(fault.value))
    assert found[0] == found[1]
    needed = int(found[0].split("substeps=")[1].split(",")[0])
    assert needed == pytest.approx(20 * sim.substeps, abs=0.1 * 20 * sim.substeps + 20)
    finer = Simulation(sim.scene, sim.solver, sim.dt, needed, worlds=2)
    finer.step(finer.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})


@solvers
def test_a_value_changed_in_place_is_looked_at_again(solver):
    """An optimiser changes a tensor that was valid in the last step."""
    sim = simulation(solver)
    value = sim.parameter(STIFFER[solver])
    sim.step(sim.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})
    value *= 400.0
    with pytest.raises(ValueError, match="over the stability bound"):
        sim.step(sim.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})


def test_a_fault_quotes_the_bound_of_the_parameters_that_were_used():
    """The bound is not that of the model, which is ten times as long."""
    sim = simulation("mpm")
    E = 0.01 * sim.parameter("youngs_modulus")
    fast = sim.state(velocity=torch.tensor([40.0, 0.0]))
    bound = sim.solver.max_time_step(sim._inputs.model_with({"youngs_modulus": E}))
    assert bound == pytest.approx(10 * sim.max_time_step, rel=1e-5)
    deformation = 100.0 * fast.deformation
    with pytest.raises(SimulationError, match=f"the bound for matter at rest is {bound:.3g} s"):
        sim.rollout(None, 50, dataclasses.replace(fast, deformation=deformation), youngs_modulus=E)


@pytest.mark.parametrize("solver", [s for s in EXPLICIT if s != "mpm"])
@pytest.mark.parametrize("dim", [2, 3])
def test_the_cheap_limit_is_above_the_highest_frequency(solver, dim):
    """It is only slightly higher on lattices with random constants, and can be used instead."""
    sim = simulation(solver, dim)
    rng = np.random.default_rng(0)
    for _ in range(3):
        replaced = {
            n: sim.parameter(n) * torch.as_tensor(rng.uniform(0.5, 2.0, sim.parameter(n).shape)).to(sim.parameter(n))
            for n in ("stiffness", "mass", "rest_length")
        }
        model = sim._inputs.model_with(replaced)
        limit, true = frequency_limit(model)[0], highest_frequency(model)[0]
        assert true <= limit < 1.6 * true
