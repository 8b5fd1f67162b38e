"""Parameters baked into a scene: the same solver has them, and moves as before, to the last bit."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import fields_of
from designs import DESIGNS, designed, varied

from warpbots.scene import Field, SceneError
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics
from warpbots.solvers.articulated import model as articulated
from warpbots.solvers.mass_spring import model as mass_spring
from warpbots.solvers.mpm import model as mpm
from warpbots.solvers.projective import model as projective

designs = pytest.mark.parametrize("name", DESIGNS)


def again(sim: Simulation, scene, worlds: int = 1) -> Simulation:
    return Simulation(scene, sim.solver, sim.dt, sim.substeps, worlds=worlds)


def test_the_designs_have_every_parameter():
    """A new parameter of a solver has to come into one of them, and with it into all tests of this file."""
    found = {name: set(designed(name).parameters()) for name in DESIGNS}
    assert found["mpm"] == set(mpm._PARAMETERS)
    assert found["springs"] | found["springs-motor"] == set(mass_spring._PARAMETERS)
    assert found["projective"] == {*projective._PARAMETERS, *projective.SKELETON}
    assert found["articulated"] == set(articulated.PARAMETERS)


@designs
def test_parameters_and_motion_are_the_same_to_the_last_bit(name):
    """Of the second of two worlds, whose parameters differ from those of the first."""
    sim = designed(name, worlds=2)
    values = varied(sim)
    control = torch.linspace(-0.5, 0.5, 3 * sim.channels).reshape(3, sim.channels)
    scene = sim.scene_with(world=1, **values)
    same = again(sim, scene)
    for n, value in values.items():
        assert torch.equal(same.parameter(n)[0], value[1]), n
    before, after = sim.rollout(control, 3, **values).final, same.rollout(control, 3).final
    for n, value in fields_of(before).items():
        assert torch.equal(fields_of(after)[n][0], value[1]), n
    assert same.scene_with() == scene  # nothing is lost by baking again
