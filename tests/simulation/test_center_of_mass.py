"""The centre of mass where masses are other than those of a scene's materials."""

import numpy as np
import pytest
import torch
from cases import SOLVERS, block

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
