"""Constraints and loads of particles."""

import dataclasses

import numpy as np
import pytest
import torch
from bars import DX, LENGTH, RHO, E, bar
from cases import DIMENSIONS, assert_gradients, block, busy, held, to_numpy

from warpbots.numerics import precision
from warpbots.scene import Constraint, Load, SceneError
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

ULP = {"float32": 2.0**-24, "float64": 2.0**-53}[precision]


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_held_matter_keeps_to_its_constraint(dim):
    """Over 1000 steps with all that a scene can have: fixed particles to the bit, others to a rounding for each step."""
    sim = Simulation(held(busy(dim)), MPM(1 / 12), 0.02, 10)
    start = sim.state()
    with torch.no_grad():
        end = sim.rollout(0.5 * torch.ones(100, sim.channels), 100).final
    moved = to_numpy(end.position) - to_numpy(start.position)
    velocity = to_numpy(end.velocity)
    allowed = 1000 * ULP  # of positions below 1 m
    for constraint in sim.scene.constraints:
        inside = sim.region(constraint.region).cpu().numpy()
        u, v, n = moved[:, inside], velocity[:, inside], constraint.direction
        if constraint.freedom == "fixed":
            assert not u.any()
            assert not v.any()
            continue
        off, wrong = ((a @ n)[..., None] * n for a in (u, v))
        if constraint.freedom == "line":
            off, wrong = u - off, v - wrong
        print(f"{constraint.freedom}: moved {np.abs(u).max():.2e} m, off by {np.abs(off).max():.1e} m")
        assert np.abs(u).max() > 1e-4
        assert np.abs(off).max() < allowed
        assert np.abs(wrong).max() < 4 * ULP * np.abs(velocity).max()
    assert np.abs(moved[:, sim.region("tip").cpu().numpy()]).max() > 0.01


def line_through(sim: Simulation, end, face: float) -> tuple[float, float]:
    """Slope of the displacements between the ends of a bar, and where they would be zero, from the face [cells]."""
    x = to_numpy(sim.state().position)[0, :, 0]
    u, middle = to_numpy(end.position)[0, :, 0] - x, (x > face + 0.25) & (x < face + 0.7)
    slope, offset = np.polyfit(x[middle] - face, u[middle], 1)
    return slope, -offset / slope / DX


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_bar_under_an_end_load(dim):
    """Between its ends u = (F / E A) (x - x_0), with the face at x_0 wherever it lies on the grid.

    The slope is off by 0.2 %, in either precision: that of sums over particles that have left their lattice. x_0 comes
    from where the held nodes are: within half of a cell of the face, as `test_a_face_is_where_it_is_on_average` has it.
    """
    stress = 0.01 * E
    omega = np.pi / 2 * np.sqrt(E / RHO) / LENGTH
    sim = Simulation(bar(dim, damping=1.4 / omega, stress=stress), MPM(DX), 0.01, None)
    with torch.no_grad():
        end = sim.rollout(None, 300).final
    slope, clamped = line_through(sim, end, 0.0)
    print(f"{dim}D: slope {slope / 0.01 - 1:+.1e}, face {clamped:+.3f} cells")
    assert slope == pytest.approx(0.01, rel=3e-3)
    assert clamped == pytest.approx(0.0, abs=0.2)


def test_a_face_is_where_it_is_on_average():
    """Matter is clamped within half of a cell of a face, and at the face over all its positions on the grid."""
    omega, found = np.pi / 2 * np.sqrt(E / RHO) / LENGTH, []
    for face in (np.arange(8) + 0.5) / 8 * DX:
        sim = Simulation(bar(2, damping=1.4 / omega, stress=0.01 * E, face=face), MPM(DX), 0.01, None)
        with torch.no_grad():
            end = sim.rollout(None, 200).final
        found.append(line_through(sim, end, face)[1])
    print(found)
    assert np.abs(found).max() < 0.55
    assert abs(np.mean(found)) < 0.1


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_free_body_accelerates_with_its_load(dim):
    """Its centre of mass has the velocity t (F / m + g), whether the force is a load of the scene or a parameter."""
    force, m = np.array((3.0, -5.0, 2.0)[:dim]), 1000.0 * 0.25**dim
    scene = block(dim)
    matter = Simulation(scene, MPM(1 / 12), 5e-3, 5)
    share = force / len(matter.model.matter) * torch.ones(1, len(matter.model.matter), 1).numpy()
    loaded = Simulation(dataclasses.replace(scene, loads=(Load("root", force),)), MPM(1 / 12), 5e-3, 5)
    load = torch.as_tensor(share).to(matter.state().position)
    ends = [loaded.rollout(None, 10).final, matter.rollout(None, 10, load=load).final]
    expected = 0.05 * (force / m + np.array(scene.gravity))
    for end in ends:
        np.testing.assert_allclose(to_numpy(end.velocity).mean((0, 1)), expected, rtol=3e4 * ULP)
    assert to_numpy(loaded.parameter("load")).sum((0, 1)) == pytest.approx(force, rel=1e3 * ULP)


def test_constraints_that_share_particles_are_refused():
    scene = dataclasses.replace(
        block(2), constraints=(Constraint("root"), Constraint("root", "line", (1.0, 0.0), "rail"))
    )
    with pytest.raises(SceneError, match="Constraint 'rail': another one holds particle 0 at .* keep the regions"):
        MPM(1 / 16).build(scene)


@pytest.mark.verification
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_gradients_through_held_matter(dim, rng):
    """Six steps of a scene with all that MPM has, to states, controls and parameters, loads and damping among them."""
    assert_gradients(Simulation(held(busy(dim)), MPM(1 / 12), dt=6e-3, substeps=3, worlds=2), rng)
