"""Young's modulus as a parameter: a rollout with another one is that of a scene that has it."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import ACTUATORS, LATTICES, block, to_numpy

from warpbots.numerics import precision
from warpbots.scene import Box, Material, Scene, SoftBody, Truss, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring import natural_modes


def driven(youngs_modulus: float, dim: int = 2) -> Scene:
    """A damped block that falls on a floor, driven by stresses and strains."""
    names = ("muscle", "pressure", "expansion", "oscillation", "wave")
    actuators = [ACTUATORS[name](dim) for name in names]
    ground = [floor(height=0.25, dim=dim)]
    return block(dim, actuators=actuators, obstacles=ground, youngs_modulus=youngs_modulus, damping=2e-3)


@pytest.mark.parametrize("solver", LATTICES)
def test_it_is_that_of_the_scene(solver):
    """Stiffness, damping and the strains of muscles and pressures follow; those of expansions stay."""
    soft, stiff = (Simulation(driven(E), LATTICES[solver](1 / 8), 2e-3, 12) for E in (1e4, 3e4))
    control = torch.full((10, soft.channels), 0.7)
    expected = to_numpy(stiff.rollout(control, 10).final.position)
    moved = np.abs(expected - to_numpy(stiff.state().position)).max()
    found = to_numpy(soft.rollout(control, 10, youngs_modulus=torch.tensor(3e4)).final.position)
    np.testing.assert_allclose(found, expected, rtol=0, atol={"float32": 1e-3, "float64": 1e-10}[precision] * moved)
    softer = to_numpy(soft.rollout(control, 10).final.position)
    assert np.abs(softer - expected).max() > 0.05 * moved


def test_that_of_the_scene_changes_no_bit():
    sim = Simulation(driven(1e4), MassSpring(1 / 16), 2e-3, 12, worlds=2)
    control = torch.full((5, sim.channels), -0.4)
    plain, same = (
        sim.rollout(control, 5).final,
        sim.rollout(control, 5, youngs_modulus=sim.parameter("youngs_modulus")).final,
    )
    for name, value in vars(plain).items():
        assert (value == getattr(same, name)).all(), name


def test_what_it_is_in_a_scene():
    """That of the material; where two share a spring, between them; of bars, too."""
    half = Box((0.0, 0.0), (0.5, 1.0))
    body = SoftBody(
        "body",
        Box((0.0, 0.0), (1.0, 1.0)),
        Material(2e5, 0.25),
        regions={"half": half},
        region_materials={"half": Material(1e5, 0.25)},
    )
    model = MassSpring(0.25).build(Scene([body]))
    x, E = model.lattice.position[model.lattice.ends].mean(axis=1), model.youngs_modulus.numpy()[0]
    np.testing.assert_allclose(E[x[:, 0] < 0.49], 1e5, rtol=1e-6)
    np.testing.assert_allclose(E[x[:, 0] > 0.51], 2e5, rtol=1e-6)
    np.testing.assert_allclose(E[np.isclose(x[:, 0], 0.5)], 1.5e5, rtol=1e-6)
    pair = Truss([[0.1, 0.2], [0.4, 0.6]], [[0, 1]], 0.01)
    sim = Simulation(
        Scene([SoftBody("pair", pair, Material(2e5, 0.3, 800.0))], gravity=(0.0, 0.0)), MassSpring(1.0), 1e-3
    )
    assert to_numpy(sim.parameter("youngs_modulus")) == pytest.approx(2e5)
    longer = sim.state(position=1.1 * sim.state().position)
    tension = sim.sense(longer, youngs_modulus=torch.tensor(3e5)).tension
    assert float(tension) == pytest.approx(3e5 * 0.02 * 0.1, rel=1e-4)


def test_it_scales_a_stiffness_that_is_given_too():
    sim = Simulation(block(2), MassSpring(0.125), 1e-4)
    E, k = sim.parameter("youngs_modulus"), sim.parameter("stiffness")
    moved = sim.state(position=1.01 * sim.state().position)
    both = sim.sense(moved, youngs_modulus=2.0 * E, stiffness=3.0 * k).tension
    torch.testing.assert_close(both, 6.0 * sim.sense(moved).tension)


def test_frequencies_and_the_stability_bound_know_it():
    sim = Simulation(block(2, gravity=(0.0, 0.0)), MassSpring(0.125), 1e-4)
    stiffer = {"youngs_modulus": 4.0 * sim.parameter("youngs_modulus")}
    model = sim._inputs.model_with(stiffer)
    np.testing.assert_allclose(natural_modes(model, 5)[0][3:], 2.0 * natural_modes(sim.model, 5)[0][3:], rtol=1e-5)
    assert sim.solver.max_time_step(model) == pytest.approx(sim.max_time_step / 2.0, rel=1e-3)
    again = model.with_parameters({"stiffness": model.stiffness})
    assert sim.solver.max_time_step(again) == pytest.approx(sim.max_time_step / 2.0, rel=1e-3)
    coarse = dataclasses.replace(sim.solver)
    sim = Simulation(sim.scene, coarse, 0.9 * sim.max_time_step * 0.6)
    with pytest.raises(ValueError, match=r"with youngs_modulus \(4e\+06 Pa\) replaced, the solver step"):
        sim.rollout(None, 1, youngs_modulus=400.0 * sim.parameter("youngs_modulus"))
