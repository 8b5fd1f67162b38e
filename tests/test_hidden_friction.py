"""A coefficient that somebody gave has no effect: a contact law hides it, or the solver does not use it."""

import dataclasses

import pytest

import warpbots as wb
from warpbots.scene import Box, Contact, Material, RigidBody, Scene, SoftBody, floor
from warpbots.solvers import MPM, Articulated, Coupled, MassSpring, ProjectiveDynamics
from warpbots.solvers.hidden_friction import hidden_friction

CUBE = RigidBody("cube", Box((-0.05,) * 3, (0.05,) * 3), points=8, position=(0.0, 0.0, 0.05))


def scene(mu: float, *bodies, **law) -> Scene:
    """A cube on a floor with the coefficient `mu`, beside further bodies."""
    return Scene(
        (CUBE, *bodies), obstacles=(floor(friction=mu),), contacts=(Contact("cube", "floor", 1e8, 1e9, **law),)
    )


@pytest.mark.parametrize("solver", (Articulated("bdf1"), ProjectiveDynamics(0.1)), ids=("Articulated", "Projective"))
def test_it_is_named_with_the_remedy(solver):
    """On 30 degrees the cube would stick under a coefficient of 0.9."""
    said = r"Obstacle 'floor' has friction 0\.9, but Contact 'cube on floor' .* give the Contact friction=0\.9 and visc"
    with pytest.warns(UserWarning, match=said):
        wb.Simulation(scene(0.9), solver, 1e-3, 1)


@pytest.mark.parametrize("solver", (Articulated("bdf1"), ProjectiveDynamics(0.1)), ids=("Articulated", "Projective"))
def test_a_default_is_named_too(solver):
    """A cube on `floor()` slid away as on ice, and nothing said that the law had no friction."""
    said = r"'floor' has friction 0\.5 by default, but Contact 'cube on floor' .*friction=0\.5 .*or the Obstacle friction=0"
    with pytest.warns(UserWarning, match=said):
        wb.Simulation(scene(0.5), solver, 1e-3, 1)


def test_it_is_silent_where_nothing_rubs_or_something_uses_it():
    """No coefficient, conditions without friction, laws with friction, laws of files with a viscosity, soft bodies."""
    rough = dataclasses.replace(scene(0.0), bodies=(dataclasses.replace(CUBE, friction=0.7),))
    assert hidden_friction(rough).startswith("RigidBody 'cube' has friction 0.7, but")
    sponge = SoftBody("sponge", Box((1.0, 0.0, 0.0), (1.1, 0.1, 0.1)), Material(1e5))
    laws = {"friction": 0.3, "viscosity": 1e7}
    for quiet in (scene(0.0), scene(0.9, **laws), scene(0.9, viscosity=1e7), scene(0.9, sponge)):
        assert hidden_friction(quiet) is None
    assert hidden_friction(dataclasses.replace(scene(0.0), obstacles=(floor(condition="slip"),))) is None
    other = dataclasses.replace(CUBE, name="other"), Contact("other", "floor", 1e8, friction=0.3, viscosity=1e7)
    beside = dataclasses.replace(scene(0.5), bodies=(CUBE, other[0]), contacts=(*scene(0.5).contacts, other[1]))
    assert hidden_friction(beside) is None
    bodies = (dataclasses.replace(CUBE, points=0), sponge)
    soft = dataclasses.replace(scene(0.9), bodies=bodies, contacts=(Contact("sponge", "floor", 1e8),))
    assert "Contact 'sponge on floor'" in hidden_friction(soft)


def test_two_bodies_rub_unless_one_has_no_friction():
    """The same between rigid bodies; the friction of either is enough to say that none is wanted."""
    for mu in (0.5, 0.0):
        lower = RigidBody("lower", Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.0)), friction=mu)
        found = hidden_friction(Scene((CUBE, lower), contacts=(Contact("cube", "lower", 1e8),)))
        assert (found is not None) == (mu > 0.0)


def test_friction_of_soft_bodies_is_named_where_the_solver_does_not_use_it(recwarn):
    """Under MPM cubes that meet stick together, and contact between masses has no friction."""
    pair = [SoftBody(f"cube {k}", Box((0, 0, k), (1, 1, k + 1)), Material(1e5, 0.25), friction=0.2) for k in range(2)]
    for solver in (MPM(0.25), MassSpring(0.25, collision=1.0)):
        with pytest.warns(UserWarning, match=f"'cube 0' has friction 0.2, which {type(solver).__name__} does not use"):
            wb.Simulation(Scene(pair), solver, 1e-3, None)
    usual = [dataclasses.replace(body, friction=SoftBody.friction) for body in pair]
    beside = dataclasses.replace(CUBE, position=(2.0, 0.0, 0.0), points=0)
    wb.Simulation(Scene(usual), MPM(0.25), 1e-3, None)
    wb.Simulation(Scene(pair), ProjectiveDynamics(0.5, elements="tetrahedra"), 1e-3, 1)
    wb.Simulation(Scene([pair[0], beside]), Coupled(MPM(0.25), Articulated()), 1e-3, None)
    assert not [w for w in recwarn if "does not use" in str(w.message)]
