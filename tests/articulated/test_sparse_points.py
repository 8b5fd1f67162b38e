"""Boxes face on face need contact points in one another's faces, and scenes whose boxes may have none are warned of."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

from warpbots.scene import Box, Cloud, Contact, HalfSpace, Joint, Obstacle, RigidBody, Scene
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

STACK = {
    "cubes": ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), 0.0, 8),
    "cubes, one turned": ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), np.pi / 4.0, 8),
    "bars": ((0.4, 0.03, 0.03), (0.4, 0.03, 0.03), np.pi / 2.0, 50),
}
"""Sizes of the lower and the upper box [m], angle between them [rad], and a number of points that is not enough."""


def stacked(lower, upper, angle: float, points: int) -> Scene:
    """A box that rests on another one, which rests on the ground."""
    sizes = [np.array(size) for size in (lower, upper)]
    bodies = [
        RigidBody(n, Box(tuple(-s / 2), tuple(s / 2)), 1e3, points=points) for n, s in zip("ab", sizes, strict=True)
    ]
    heights = [lower[2] / 2.0, lower[2] + upper[2] / 2.0 + 1e-3]
    turns = [(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, np.sin(angle / 2.0), np.cos(angle / 2.0))]
    joints = [
        Joint(n, "free", None, n, start=(0, 0, z, *turn)) for n, z, turn in zip("ab", heights, turns, strict=True)
    ]
    laws = [Contact("a", "ground", 1e8, 1e8, 0.5, 1e8), Contact("b", "a", 1e8, 1e8, 0.5, 1e8)]
    return Scene(
        bodies, obstacles=[Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), name="ground")], joints=joints, contacts=laws
    )


def ends(scene: Scene) -> float:
    """Height of the upper box after a quarter of a second [m]."""
    return float(Simulation(scene, Articulated("bdf1"), dt=2.5e-3).rollout(None, 100).final.q[0, 9])


def told(action) -> tuple[float | None, list[warnings.WarningMessage]]:
    """What an action returns, and what is warned of falling through meanwhile."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = action()
    return result, [w for w in found if "may fall through each other face on face" in str(w.message)]


@pytest.mark.parametrize("case", STACK)
def test_what_may_fall_through_is_warned_of_and_holds_with_as_many_points_as_advised(case):
    lower, upper, angle, points = STACK[case]
    low, [warning] = told(lambda: ends(stacked(lower, upper, angle, points)))
    assert low < 0.0
    assert warning.filename == __file__
    advised = int(re.search(r"boxes 'b' and 'a' .* use points=(\d+) or more for 'b'", str(warning.message))[1])
    high, found = told(lambda: ends(stacked(lower, upper, angle, advised)))
    assert not found
    assert high == pytest.approx(lower[2] + upper[2] / 2.0, abs=1e-3)


def test_a_small_box_on_a_table_is_fine():
    """Its own points are dense enough, though the corners of the table are far apart; and so are those of a plane."""
    _model, found = told(lambda: Articulated().build(stacked((1.0, 1.0, 0.02), (0.1, 0.1, 0.1), 0.0, 8)))
    assert not found


def test_a_box_may_rest_on_one_that_has_a_cloud():
    """Against others that one has its corners alone, and the points of the upper one carry it."""
    scene = stacked((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), 0.0, 27)
    cloud = Cloud([[x, y, -0.05] for x in (-0.05, 0.05) for y in (-0.05, 0.05)], 1e-3)
    scene = dataclasses.replace(scene, bodies=(dataclasses.replace(scene.rigid[0], points=cloud), scene.rigid[1]))
    high, found = told(lambda: ends(scene))
    assert not found
    assert high == pytest.approx(0.15, abs=1e-3)
