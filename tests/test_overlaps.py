"""Bodies that overlap at the start are named: their matter counts twice, or contact throws them apart."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import warpbots as wb
from warpbots.scene import Box, Contact, Joint, Material, Points, RigidBody, Scene, SoftBody, Sphere, floor
from warpbots.solvers import MPM, Articulated, MassSpring

SIDE = 0.1
EXPLICIT = {
    "MPM": MPM(0.02),
    "MassSpring": MassSpring(0.02),
    "MassSpring with contact of masses": MassSpring(0.02, collision=1.0),
}


def cube(name: str, x: float, dim: int = 3) -> SoftBody:
    """A cube of 10 cm whose lowest corner is at (x, 0, 0)."""
    return SoftBody(name, Box((x, *(0.0,) * (dim - 1)), (x + SIDE, *(SIDE,) * (dim - 1))), Material(1e5, 0.25))


@pytest.mark.parametrize("dim", (2, 3))
@pytest.mark.parametrize("solver", EXPLICIT.values(), ids=EXPLICIT)
def test_soft_bodies_with_matter_in_the_same_place(solver, dim):
    """Two cubes of five cells that share two layers, and one cube in another."""
    said = (
        r"'one' and SoftBody 'two' overlap at the start: 40 % of 'one' is inside 'two', around \[0\.08, .*twice; move"
    )
    with pytest.warns(UserWarning, match=said):
        solver.build(Scene([cube("one", 0.0, dim), cube("two", 0.06, dim)]))
    core = SoftBody("core", Sphere((0.05,) * dim, 0.035), Material(1e5, 0.25))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.build(Scene([cube("one", 0.0, dim), core]))
    assert any("% of 'one' is inside 'core'" in str(w.message) for w in caught)


@pytest.mark.parametrize("solver", (MPM(0.02), MassSpring(0.02)), ids=("MPM", "MassSpring"))
def test_soft_bodies_that_touch_or_are_joined(solver):
    """Faces in common, a ball at a corner, and points beside one another are silent; so are joined bodies of springs."""
    ball = SoftBody("ball", Sphere((SIDE + 0.0578,) * 3, 0.1), Material(1e5, 0.25))
    points = SIDE + 0.01 * (0.5 + np.argwhere(np.ones((5, 5, 5))))
    grains = [
        SoftBody(n, Points(points + x, np.full(125, 1e-6)), Material(1e5, 0.25)) for n, x in (("a", 0.0), ("b", 0.05))
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*its shape holds")
        solver.build(Scene([cube("one", 0.0), cube("two", -SIDE), ball], gravity=(0, 0, 0)))
        if isinstance(solver, MPM):
            solver.build(Scene(grains))
        else:
            joint = wb.Attachment("joint", "one", "two", [(0.08, 0.05, 0.05)])
            solver.build(Scene([cube("one", 0.0), cube("two", 0.06)], attachments=[joint]))


def ball(name: str, height: float, **parts) -> RigidBody:
    """A ball of 10 cm whose middle is at a height."""
    return RigidBody(
        name, Sphere((0.0, 0.0, 0.0), SIDE / 2.0), points=1, position=(0.0, 0.0, height), **{"friction": 0.0} | parts
    )


def caution(*bodies: RigidBody, solid: str = "floor", stiffness: float = 1e8, joints: tuple[Joint, ...] = ()) -> str:
    """What `Articulated` says of bodies above a floor, of which the last touches `solid`."""
    law, solver = Contact(bodies[-1].name, solid, stiffness, 1e9), Articulated("bdf1")
    points = [dataclasses.replace(b, points=b.points * (b is bodies[-1])) for b in bodies]
    scene = Scene(points, obstacles=[floor(friction=0.0)], contacts=[law], joints=joints)
    return solver.caution(solver.build(scene), 1e-3) or ""


def test_rigid_bodies_that_start_deep_in_what_they_touch():
    """In a floor and in each other, also deeper than their size, where contact without damping throws them far."""
    said = r"RigidBody 'ball' starts 0\.02 m deep in '{}', and Contact 'ball on {}' pushes it .* at most 0\.01 m deep"
    assert re.search(said.format("floor", "floor"), caution(ball("ball", 0.03)))
    assert re.search(said.format("other", "other"), caution(ball("other", 0.2), ball("ball", 0.28), solid="other"))
    assert "starts 0.15 m deep in 'floor'" in caution(ball("ball", -0.1))


def test_rigid_bodies_that_rest_or_stay():
    """As deep as soft contact lets the weight press them, a millimetre deep, and fixed in the floor."""
    assert not caution(ball("ball", 0.049))
    assert "deep" not in caution(ball("ball", 0.035), stiffness=1e6)
    fixed = Joint("fixed", "fixed", None, "post")
    assert "deep" not in caution(ball("ball", 0.2), ball("post", 0.0), joints=(fixed,))
