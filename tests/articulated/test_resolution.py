"""Contact that steps do not resolve: who is warned, and whether what the warning says is so."""

import math
import re

import numpy as np
import pytest
import torch
import trimesh
from test_contact import block, bounce, on_rail

from warpbots.scene import (
    Capsule,
    Cloud,
    Contact,
    Inertia,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    SceneError,
    Sphere,
    TriangleMesh,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

NUMBER = r"([0-9.e+-]+)"
WORDS = re.compile(
    rf"Contact '(.*)' is not resolved by steps of {NUMBER} s: a point of {NUMBER} N/m that carries {NUMBER} kg "
    rf"is in contact for {NUMBER} s, .* use steps of at most {NUMBER} s"
)
LONG = 100.0
"""A step that resolves nothing [s]."""


def said(scene: Scene, dt: float = LONG, integrator: str = "sdirk2") -> tuple | None:
    """What a solver says of steps of `dt`: name, step, stiffness, mass, duration and longest step; None for nothing."""
    solver = Articulated(integrator)
    words = solver.caution(solver.build(scene), dt)
    if words is None:
        return None
    name, *numbers = WORDS.match(words).groups()
    return name, *map(float, numbers)


def standing(body: RigidBody, *joints: Joint, **law) -> Scene:
    ground, laws = floor(friction=0.0), (Contact(body.name, "floor", 1e8, **law),)
    return Scene((body,), obstacles=(ground,), joints=joints, contacts=laws)


def test_the_effective_mass_of_a_corner_is_that_of_a_free_block():
    """1 / m_eff = 1 / m + r^2 / I about both axes: a corner at (0.1, 0.1) of 2 kg."""
    free = Joint("free", "free", None, "block")
    name, step, k, m, duration, longest = said(standing(block(), free))
    moment = 2.0 / 12 * 0.05
    assert (name, step) == ("block on floor", LONG)
    assert m == pytest.approx(1 / (1 / 2.0 + 2 * 0.1**2 / moment), rel=1e-2)
    assert k == pytest.approx(1e8 * 1e-4, rel=1e-2)
    assert duration == pytest.approx(math.pi * math.sqrt(m / k), rel=0.05)
    assert longest == pytest.approx(math.sqrt(m / k), rel=0.05)


def test_the_effective_mass_at_the_end_of_a_hinged_rod_is_its_inertia_over_its_length_squared():
    rod = RigidBody(
        "rod", None, inertia=Inertia(3.0, (0.5, 0, 0), (0.01, 0.25, 0.25)), points=Cloud([[1.0, 0, 0]], 1e-4)
    )
    hinge = Joint("hinge", "revolute", None, "rod", axis=(0, 1, 0), armature=0.2)
    assert said(standing(rod, hinge))[3] == pytest.approx(0.25 + 3.0 * 0.5**2 + 0.2, rel=1e-2)


def test_two_free_balls_meet_with_their_reduced_mass():
    skin = {"points": Cloud([[0.1, 0, 0]], 1e-4), "friction": 0.0}
    balls = [RigidBody(n, Sphere((0, 0, 0), 0.1), 500.0 * (k + 1), position=(0.15 * k, 0, 0), **skin)
             for k, n in enumerate("ab")]  # fmt: skip
    joints = [Joint(b.name, "free", None, b.name, position=b.position) for b in balls]
    mass = 500.0 * 4 / 3 * math.pi * 0.1**3
    contacts = (Contact("a", "b", 1e8), Contact("b", "a", 1e8))
    assert said(Scene(balls, joints=joints, contacts=contacts))[3] == pytest.approx(mass * 2 / 3, rel=1e-2)


def test_a_mesh_is_met_from_where_no_sample_is():
    """A ball that falls on a mesh far below it."""
    cube = trimesh.creation.box((1.0, 1.0, 1.0))
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.1), 500.0, position=(0.1, 0, 3.0), points=Cloud([[0, 0, -0.1]], 1e-4))
    ground = Obstacle(TriangleMesh(cube.vertices, cube.faces), name="ground", friction=0.0)
    free = Joint("free", "free", None, "ball", position=ball.position)
    scene = Scene((ball,), obstacles=(ground,), joints=(free,), contacts=(Contact("ball", "ground", 1e8),))
    assert said(scene)[3] == pytest.approx(500.0 * 4 / 3 * math.pi * 0.1**3, rel=1e-2)


def plate(thickness: float, tilt: float = 0.3) -> TriangleMesh:
    """A square of 40 cm, turned so that no samples lie in it."""
    box = trimesh.creation.box((0.4, 0.4, thickness))
    box.apply_transform(trimesh.transformations.rotation_matrix(tilt, (0, 1, 0)))
    return TriangleMesh(box.vertices, box.faces)


def falling_on(shape: TriangleMesh) -> Scene:
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.03), 500.0, position=(0, 0, 0.1), points=100)
    joint = Joint("free", "free", None, "ball", position=ball.position)
    law = Contact("ball", "plate", 1e8, 1e9)
    return Scene((ball,), obstacles=(Obstacle(shape, name="plate", friction=0.0),), joints=(joint,), contacts=(law,))


def test_a_mesh_that_is_lost_between_its_samples_is_refused():
    """What is thick or finely sampled enough is not lost at all."""
    with pytest.raises(
        SceneError, match=r"TriangleMesh of 'plate': \d+% of its surface cannot be in contact.*0.0085 m; use"
    ):
        Articulated().build(falling_on(plate(0.002)))
    with pytest.warns(UserWarning, match=r"TriangleMesh of 'plate': \d\d% of its surface cannot be in contact"):
        Articulated().build(falling_on(plate(0.005)))
    Articulated().build(falling_on(plate(0.01)))
    Articulated(samples=120).build(falling_on(plate(0.005)))


@pytest.mark.parametrize("tilt", [0.0, 0.1, 0.3, 0.7])
def test_a_ball_stays_on_a_mesh_that_is_not_refused(tilt):
    """Of 1 cm and samples 8.5 mm apart."""
    sim = Simulation(falling_on(plate(0.01, tilt)), Articulated(), dt=1e-3)
    seen = sim.rollout(None, 200, observe=lambda s: s.q[:, :3]).observation[0].numpy()
    above = (0.1 + seen[:, 2]) * math.cos(tilt) + seen[:, 0] * math.sin(tilt) - 0.005
    assert 0.02 < above.min() < 0.032


@pytest.mark.parametrize("e", [1.0, 0.5])
@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
def test_at_the_longest_step_a_tenth_of_the_energy_is_wrong(integrator, e):
    """Between a third of a tenth and two tenths, in the root of the mean square over where a step meets the floor."""
    longest = said(on_rail(e, 1e4, 1.0, 1e3, 1), integrator=integrator)[-1] * 0.98e2
    lead = (np.arange(32) + 0.5) / 32
    _, v = bounce(e, 1e4, 1.0, 1e3, np.ones(32), longest, lead + 3.0, integrator=integrator)
    assert 0.03 < math.sqrt(((v[:, -1] ** 2 - e**2) ** 2).mean()) < 0.2


def test_who_is_warned():
    elastic, damped, dead = (on_rail(e, 1e4, 1.0, 1e3, 1) for e in (1.0, 0.5, 0.0))
    for scene in (elastic, damped, dead):
        assert said(scene, 1.01e-2) and not said(scene, 0.99e-2)
    assert said(elastic, 4e-4, "bdf1") and not said(elastic, 3e-4, "bdf1")
    assert said(damped, 2e-3, "bdf1") and not said(damped, 1.5e-3, "bdf1")
    assert not said(dead, integrator="bdf1")  # where nothing bounces it is right at every step
    assert not said(Scene((RigidBody("arm", Capsule((0, 0, 0), (1, 0, 0), 0.1)),)))


@pytest.mark.parametrize("factor", [1.00001, 1.004, 1.3, 40.0])
@pytest.mark.parametrize("k", [1.0e4, 4.04e4, 3.9999e5, 6.2e6])
@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
def test_the_step_that_is_advised_is_shorter_than_the_one_that_is_named_and_is_accepted(integrator, k, factor):
    scene = on_rail(1.0, k, 1.0, 1e3, 1)
    longest = 1.0 if integrator == "sdirk2" else -math.log(0.9) / math.pi
    name, step, *_, advised = said(scene, factor * longest / math.sqrt(k), integrator)
    assert advised < step
    assert advised > 0.9 * longest / math.sqrt(k) * 0.999
    assert said(scene, advised, integrator) is None


CHANGED = {"contact_stiffness": 1e10, "mass": 1e-2, "contact_scale": 100.0, "contact_area": 1e-2}
"""Parameters with which contact takes a tenth of the time."""


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("run", ["rollout", "step"])
def test_the_warning_comes_once_and_for_replaced_parameters_too(name, run):
    sim = Simulation(on_rail(1.0, 1e4, 1.0, 1e3, 1), Articulated(), dt=4e-3)
    parameters = {name: torch.full_like(sim.parameter(name), CHANGED[name])}
    still = torch.zeros(0, dtype=torch.float64)

    def go():
        sim.rollout(None, 1, **parameters) if run == "rollout" else sim.step(sim.state(), still, **parameters)

    sim.rollout(None, 1, **{name: sim.parameter(name)})
    with pytest.warns(UserWarning, match="Contact 'ball on floor' is not resolved by steps of 0.004 s"):
        go()
    go()


def test_a_simulation_warns_as_it_is_made():
    with pytest.warns(UserWarning, match="Contact 'ball on floor' is not resolved by steps of 0.02 s"):
        Simulation(on_rail(1.0, 1e4, 1.0, 1e3, 1), Articulated(), dt=0.04, substeps=2)
