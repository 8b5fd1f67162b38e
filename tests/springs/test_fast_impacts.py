"""Impacts so fast that a lattice folds: what is said is so, and what the message advises helps."""

import dataclasses
import warnings

import pytest
import torch

from warpbots.scene import Box, Constraint, HalfSpace, Material, Obstacle, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring.fast_impacts import warn_of_fast_impacts

SIDE, SOUND = 0.1, 10.0
"""Edge of the cube [m], and speed of sound in it [m/s]."""


def thrown(velocity: tuple[float, ...], height: float = 0.01, *obstacles: Obstacle, **body) -> Scene:
    """A cube above the floor."""
    shape = Box((0.0, 0.0, height), (SIDE, SIDE, height + SIDE))
    cube = SoftBody("cube", shape, Material(1e5, 0.25, 1e5 / SOUND**2), velocity=velocity, **body)
    return Scene([cube], obstacles=[floor(), *obstacles])


def at_rest(speed: float, **options) -> float:
    """Height of a cube that came to rest after an impact [m]."""
    sim = Simulation(thrown((0.0, 0.0, -speed)), MassSpring(0.02, damping=1e-4, drag=20.0, **options), 4e-3)
    with torch.no_grad():
        z = sim.rollout(None, 150).final.position[0, :, 2]
    return float(z.max() - z.min())


def test_a_lattice_that_folds_in_an_impact_is_named():
    """Above 0.4 of the speed of sound, unless masses keep each other apart."""
    with pytest.warns(UserWarning, match=r"'cube' hits Obstacle 'floor' at 6\.\d+ m/s, more than 0\.4 .*collision=4"):
        assert at_rest(0.6 * SOUND) < 0.7 * SIDE
    assert at_rest(0.38 * SOUND) == pytest.approx(SIDE, rel=0.01)
    assert at_rest(0.6 * SOUND, collision=4.0) == pytest.approx(SIDE, rel=0.01)


def speed_said(scene: Scene, contact_stiffness: float = 0.0) -> str:
    """What is said of a scene, or nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_fast_impacts(scene, 0.02, contact_stiffness, 0.0)
    return "".join(str(w.message) for w in caught)


def test_the_speed_is_that_towards_the_surface_that_is_hit():
    """After a fall, also of a body that is thrown up; on a wall ahead; sideways along the floor there is no impact."""
    assert "'floor' at 8.86 m/s" in speed_said(thrown((0.0, 0.0, 0.0), 4.0))
    assert "'floor' at 9.08 m/s" in speed_said(thrown((0.0, 0.0, 2.0), 4.0))
    wall = Obstacle(HalfSpace((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)), name="wall")
    assert "'wall' at 20 m/s" in speed_said(thrown((20.0, 0.0, 0.0), 0.01, wall))
    held = dataclasses.replace(
        thrown((0, 0, -20.0), regions={"all": Box((-1,) * 3, (1,) * 3)}), constraints=[Constraint("all")]
    )
    assert not speed_said(thrown((20.0, 0.0, 0.0))) + speed_said(thrown((20.0, 0.0, -2.0), 0.5)) + speed_said(held)
    assert not speed_said(thrown((0.0, 0.0, -20.0)), contact_stiffness=1e6)
    assert speed_said(thrown((0.0, 0.0, -20.0)), contact_stiffness=1e7)
