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
        with pytest.raises(ValueError, match=rf"with {STIFFER[solver]} \(.* to .*\) replaced, .*substeps=") as fault:
            run(sim.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})
        found.append(str(fault.value))
    assert found[0] == found[1]
    needed = int(found[0].split("substeps=")[1].split(",")[0])
    assert needed == pytest.approx(20 * sim.substeps, abs=0.1 * 20 * sim.substeps + 20)
    finer = Simulation(sim.scene, sim.solver, sim.dt, needed, worlds=2)
    finer.step(finer.state(), torch.zeros(sim.channels), **{STIFFER[solver]: value})


@solvers
def test_matter_that_brings_the_step_near_the_bound_is_warned_of(solver):
    """Once, with the values, the share of the bound, and substeps with which nothing is said; not for softer matter."""
    sim, name = simulation(solver), STIFFER[solver]
    step = sim.dt / sim.substeps
    softer, stiffer = (factor * sim.parameter(name) for factor in (0.5, (0.9 * sim.max_time_step / step) ** 2))
    share = step / sim.solver.max_time_step(sim._inputs.model_with({name: stiffer}))
    nothing = torch.zeros(sim.channels)
    sim.step(sim.state(), nothing, **{name: softer})
    with pytest.warns(UserWarning, match=rf"with {name} \(.*\) replaced, .* s is {share:.2f} of the stab") as said:
        sim.step(sim.state(), nothing, **{name: stiffer})
    sim.step(sim.state(), nothing, **{name: 1.2 * stiffer})
    assert len(said) == 1 and f"{stiffer.max().item():.3g} " in str(said[0].message)
    needed = int(str(said[0].message).split("substeps=")[1].split(" ")[0])
    finer = Simulation(sim.scene, sim.solver, sim.dt, needed, worlds=2)
    finer.step(finer.state(), nothing, **{name: stiffer})
    assert needed == pytest.approx(sim.substeps * share / sim.solver.margin, abs=1.0)


def test_the_exact_bound_of_springs_is_computed_only_when_the_cheap_one_falls(monkeypatch):
    """By 5 % each time: Lanczos' method takes longer than the motion of a small robot."""
    sim = simulation("springs")
    share, calls = 0.7, []
    stiffness = (share * sim.max_time_step * sim.substeps / sim.dt) ** 2 * sim.parameter("stiffness")
    exact = type(sim.solver).max_time_step

    def counted(solver, model, enough=np.inf):
        calls.extend([1] * (enough == np.inf))
        return exact(solver, model, enough)

    monkeypatch.setattr(type(sim.solver), "max_time_step", counted)
    for factor in np.linspace(1.0, 1.1, 50):
        sim.step(sim.state(), torch.zeros(sim.channels), stiffness=factor * stiffness)
    assert 1 <= len(calls) <= 2


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


def test_an_array_that_changes_later_is_checked_again_and_leaves_states_alone():
    """A parameter out of its range was taken if its array had been in the range before."""
    sim = simulation("springs")
    values, place = sim.parameter("stiffness").numpy().copy(), sim.state().position.numpy().copy()
    state = sim.state(position=place)
    sim.step(state, torch.zeros(sim.channels), stiffness=values)
    values *= -1.0
    with pytest.raises(ValueError, match="parameter 'stiffness' must be in"):
        sim.step(state, torch.zeros(sim.channels), stiffness=values)
    place += 1.0
    assert torch.equal(state.position, sim.state().position)


def test_an_array_may_be_reversed_or_read_only():
    """Torch refuses the one, and warns of the other."""
    sim = simulation("springs")
    stiffness = sim.parameter("stiffness") * torch.linspace(0.5, 1.0, sim.parameter("stiffness").shape[1])
    backwards = stiffness.flip(1).cpu().numpy()
    for array in (backwards[:, ::-1], np.broadcast_to(stiffness[0].cpu().numpy(), stiffness.shape)):
        assert torch.equal(sim._inputs.parameters({"stiffness": array})["stiffness"], stiffness)


def test_a_parameter_that_changes_through_its_data_is_checked_again():
    """As a step of gradient descent is often written; torch does not count such writes."""
    sim = simulation("springs")
    stiffness = sim.parameter("stiffness").requires_grad_()
    control = torch.zeros(sim.channels)
    sim.step(sim.state(), control, stiffness=stiffness)
    stiffness.data *= 400.0
    with pytest.raises(ValueError, match="over the stability bound"):
        sim.step(sim.state(), control, stiffness=stiffness)
    stiffness.data *= -1.0
    with pytest.raises(ValueError, match="parameter 'stiffness' must be in"):
        sim.step(sim.state(), control, stiffness=stiffness)


def test_a_state_does_not_change_with_the_tensors_that_it_was_made_of():
    """One tensor is moved from start to start; a tensor with a gradient stays the one that it is."""
    sim = simulation("springs")
    place, starts = sim.state().position, []
    for _ in range(2):
        place += 0.1
        starts.append(sim.state(position=place))
    assert torch.allclose(starts[1].position - starts[0].position, torch.tensor(0.1).to(place), rtol=1e-4)
    place.requires_grad_()
    assert sim.state(position=place).position.requires_grad
