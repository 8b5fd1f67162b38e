"""The centre of mass where masses are other than those of a scene's materials."""

import numpy as np
import pytest
import torch
from cases import SOLVERS, block
from hybrid_scenes import MATTER, ball_and_jelly, flail

import warpbots as wb
from warpbots.scene import Box, SoftBody

PARTS = {"left": Box((0.25,) * 3, (0.375, 0.5, 0.5)), "right": Box((0.375, 0.25, 0.25), (0.5,) * 3)}
SCENE = wb.Scene([SoftBody("block", Box((0.25,) * 3, (0.5,) * 3), wb.Material(1e4, 0.3, 1000.0), PARTS)])


def simulation(scene, name):
    return wb.Simulation(scene, SOLVERS[name](1 / 16), 1e-3, 20 if name != "projective" else 1)


@pytest.mark.parametrize("name", ["mpm", "projective"])
def test_a_denser_half_moves_it(name):
    """Halves of 3 and 1 times the density have it at a quarter of the distance of their own centres, also when baked."""
    sim = simulation(SCENE, name)
    state, density = sim.state(), sim.per_region({"left": 3000.0, "right": 1000.0}, "density").requires_grad_()
    center = sim.center_of_mass(state, density=density)
    np.testing.assert_allclose(center.detach().numpy(), [[0.34375, 0.375, 0.375]], rtol=1e-5)
    baked = simulation(sim.scene_with(density=density.detach()), name)
    np.testing.assert_allclose(baked.center_of_mass(baked.state()).numpy(), center.detach().numpy(), rtol=1e-6)
    (slope,) = torch.autograd.grad(center[0, 0], density)  # of the mean weighted by mass: (x - c) / M each
    ratio = (slope * density).sum() / slope.abs().max() / 1000.0
    assert abs(ratio) < 1e-3 and slope.abs().max() > 0  # it depends on ratios of densities alone


@pytest.mark.parametrize("name", ["mpm", "projective"])
def test_as_they_are_masses_are_those_of_the_scene(name):
    sim = simulation(SCENE, name)
    state, own = sim.state(), sim.parameter("density")
    for region in (None, "left"):
        expected = sim.center_of_mass(state, region)
        np.testing.assert_allclose(sim.center_of_mass(state, region, density=own), expected, rtol=1e-5)


def test_masses_of_springs_count():
    sim = wb.Simulation(block(2), SOLVERS["springs"](1 / 8), 1e-3, 20)
    mass, state = sim.parameter("mass"), sim.state()
    mass[0, 0] = 1e6
    np.testing.assert_allclose(sim.center_of_mass(state, mass=mass), state.position[:, 0], atol=1e-4)


@pytest.mark.parametrize(
    ("scene", "matter"), [(ball_and_jelly, "springs"), (flail, "springs"), (ball_and_jelly, "mpm")]
)
def test_matter_and_rigid_bodies_count_with_their_own_masses(scene, matter):
    """Beside one body and beside several, as they are and with other masses of the points and of the bodies."""
    sim = wb.Simulation(scene(), wb.Coupled(MATTER[matter](0.0125), wb.Articulated()), 4e-3, 4)
    state, of_bodies = sim.state(), "body_mass" if matter == "springs" else "mass"
    soft = torch.as_tensor(sim.model.matter.density * sim.model.matter.volume)[None]
    rigid, places = sim.parameter(of_bodies), sim.sense(state, steps=False).center

    def mean(soft, rigid):
        moment = (soft[..., None] * state.position).sum(dim=1) + (rigid[..., None] * places).sum(dim=1)
        return (moment / (soft.sum(dim=1) + rigid.sum(dim=1))[:, None]).to(state.position)

    torch.testing.assert_close(sim.center_of_mass(state), mean(soft, rigid), rtol=0, atol=1e-6)
    heavier = {of_bodies: 3.0 * rigid}
    torch.testing.assert_close(sim.center_of_mass(state, **heavier), mean(soft, 3.0 * rigid), rtol=0, atol=1e-6)
    name = "mass" if matter == "springs" else "density"
    heavier[name] = sim.parameter(name)
    heavier[name][:, ::2] *= 2.0
    twice = soft.clone()
    twice[:, ::2] *= 2.0
    torch.testing.assert_close(sim.center_of_mass(state, **heavier), mean(twice, 3.0 * rigid), rtol=0, atol=1e-6)
