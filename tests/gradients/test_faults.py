"""What is not finite, or out of the grid, stops the run with the step, the particle, the field and the cause."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from cases import CONTINUA, block, to_numpy

from warpbots.scene import Muscle
from warpbots.simulation import LostWorldWarning, Simulation, SimulationError

DX, DT, SUBSTEPS = 1 / 16, 5e-3, 4
solvers = pytest.mark.parametrize("solver", CONTINUA)
SMALL_MUSCLE = (Muscle("biceps", "root", (1.0, 0.0), 100.0),)


def simulation(solver: str, worlds: int = 1, actuators: tuple = ()) -> Simulation:
    """A block that floats in an empty room."""
    scene = block(2, gravity=(0.0, 0.0), actuators=actuators)
    return Simulation(scene, CONTINUA[solver](DX), DT, SUBSTEPS, worlds=worlds)


@solvers
def test_a_body_that_flies_away_is_named(solver):
    """World 1 moves at 4 m/s; its last particle column passes the last cell with a whole stencil, 2.5 dx beyond the
    domain of 1 m, in the substep after t = (1 + 2.5 dx - x) / v.
    """
    sim = simulation(solver, worlds=2)
    velocity = torch.zeros_like(sim.state().velocity)
    velocity[1, :, 0] = 4.0
    first = to_numpy(sim.state().position[1])[:, 0]
    out = int(np.ceil((1.0 + 2.5 * DX - first.max()) / 4.0 / (DT / SUBSTEPS)))
    with pytest.warns(LostWorldWarning) as said:
        motion = sim.rollout(None, 100, sim.state(velocity=velocity))
    text = str(said[0].message)
    pattern = r"control step (\d+), substep (\d+) .*: particle (\d+) of 'block' in world (\d+) left"
    step, substep, particle, world = map(int, re.search(pattern, text).groups())
    assert step * SUBSTEPS + substep == pytest.approx(out, abs=1)  # which of two steps is a matter of rounding
    assert world == 1
    np.testing.assert_array_equal(motion.lost, [-1, step])
    assert first[particle] == first.max()
    assert f"t = {(step + substep / SUBSTEPS) * DT:.6g} s" in text
    assert "1.15625" in text  # where the grid ends
    assert "domain" in text


@solvers
def test_matter_turned_inside_out_is_named(solver):
    """Squeezed so fast that F = 1 - k dt < 0 along x after one substep; the second one has no logarithm of det F."""
    sim = simulation(solver)
    k = 1.125 / (DT / SUBSTEPS)
    squeeze = -k * torch.tensor([1.0, 0.0])
    state = sim.state()
    state = sim.state(velocity=(state.position - 0.375) * squeeze, velocity_gradient=torch.diag(squeeze))
    with pytest.raises(SimulationError, match=r"control step 0, substep 1 .* was inverted \(det F = -0\.\d+\)"):
        sim.rollout(None, 5, state)


@pytest.mark.verification(float32=True)
@solvers
def test_an_overflow_is_named(solver):
    """One particle is stretched beyond all numbers: the field, the particle and the step that broke are named."""
    sim = simulation(solver)
    deformation = sim.state().deformation.clone()
    huge = 1e20 if deformation.dtype == torch.float32 else 1e160
    deformation[0, 5] *= huge
    with pytest.raises(SimulationError, match=r"control step 0, substep 0 .* of 'block' in world 0 .*diverged"):
        sim.rollout(None, 5, sim.state(deformation=deformation))


@solvers
def test_a_nan_that_was_passed_in_is_named(solver):
    """The particle that has it, not one of its neighbours."""
    sim = simulation(solver)
    deformation = sim.state().deformation.clone()
    deformation[0, 7, 1, 1] = torch.nan
    with pytest.raises(
        ValueError, match=r"field 'deformation' must be finite, got nan in world 0 at index \[7, 1, 1\]"
    ):
        sim.rollout(None, 5, dataclasses.replace(sim.state(), deformation=deformation))


@solvers
def test_an_explosion_is_not_called_a_small_domain(solver):
    """Matter that jumps many cells in a step has diverged; a larger domain would not help."""
    scene = block(2, "st_venant_kirchhoff", 4, gravity=(0.0, 0.0))
    sim = Simulation(scene, CONTINUA[solver](DX), DT, SUBSTEPS)
    with pytest.raises(SimulationError, match="diverged"):
        sim.rollout(None, 60, sim.state(deformation=3.0 * torch.eye(2)))


@solvers
def test_a_simulation_survives_a_fault(solver):
    """After an error it gives the same bits as before."""
    sim = simulation(solver, actuators=SMALL_MUSCLE)

    def gradient():
        control = torch.full((5, 1), 0.5, requires_grad=True)
        return torch.autograd.grad(sim.rollout(control, 5).final.position.square().sum(), control)[0]

    before = gradient()
    control, fast = torch.full((100, 1), 0.5, requires_grad=True), sim.state(velocity=torch.tensor([9.0, 0.0]))
    with pytest.raises(SimulationError):
        sim.rollout(control, 100, fast)
    assert torch.equal(gradient(), before)


@solvers
def test_a_gradient_that_is_not_finite_is_named(solver):
    """The input and the index."""
    sim = simulation(solver, actuators=SMALL_MUSCLE)
    control = torch.zeros(1, requires_grad=True)
    loss = (sim.step(sim.state(), control).position * torch.inf).sum()
    with pytest.raises(
        FloatingPointError, match=r"to control is (nan|inf|-inf) at index \[0, 0\].*; the gradient of the loss"
    ):
        loss.backward()


@solvers
@pytest.mark.parametrize(
    ("control", "parameters", "text"),
    [
        ([float("nan")], {}, r"control\[0, 0\] of actuator 'biceps' is nan"),
        ([1.5], {}, r"control\[0, 0\] of actuator 'biceps' is 1.5 .* in \[-1, 1\]"),
        ([0.0, 0.0], {}, r"a control must have shape \(1, 1\).*got \(2,\)"),
        ([0.0], {"youngs_modulus": -1.0}, r"'youngs_modulus' must be in \(0, inf\) Pa, got -1"),
        ([0.0], {"poissons_ratio": 0.5}, r"'poissons_ratio' must be in \(-1, 0.5\)"),
        ([0.0], {"density": float("nan")}, r"'density' must be in .* got nan"),
        ([0.0], {"stiffness": 1.0}, r"no parameter 'stiffness'; the model has youngs_modulus"),
    ],
)
def test_bad_numbers_never_enter_a_step(solver, control, parameters, text):
    sim = simulation(solver, actuators=SMALL_MUSCLE)
    with pytest.raises(ValueError, match=text):
        sim.step(sim.state(), torch.tensor(control), **parameters)


@solvers
def test_a_step_over_the_bound_is_refused_and_one_near_it_warned_of(solver):
    """With the bound and a number of substeps that keeps it."""
    scene = block(2)
    bound = Simulation(scene, CONTINUA[solver](DX), 1e-4).max_time_step
    with pytest.raises(ValueError, match=rf"over the stability bound of {bound:.3g} s; use substeps=3"):
        Simulation(scene, CONTINUA[solver](DX), 1.1 * bound, 1)
    with pytest.warns(UserWarning, match=r"is 0\.\d+ of the stability bound"):
        Simulation(scene, CONTINUA[solver](DX), 0.6 * bound, 1)
    Simulation(scene, CONTINUA[solver](DX), 0.45 * bound, 1)
