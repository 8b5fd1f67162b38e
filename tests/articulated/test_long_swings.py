"""Steps that do not resolve a swing under gravity: who is warned, and whether what the warning says is so."""

import dataclasses
import math
import re

import pytest
import torch

from warpbots.scene import Capsule, Joint, RigidBody, Scene, Servo
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

LENGTH = 0.5
PERIOD = 2.0 * math.pi * math.sqrt(2.0 / 3.0 * LENGTH / 9.81)
"""Of a thin rod that hangs on its end [s]."""


def rod(*motors, **joint) -> Scene:
    """A rod on a hinge without friction, which is let go at 0.5 rad."""
    body = RigidBody("rod", Capsule((0, 0, 0), (0, 0, -LENGTH), 1e-3))
    hinge = {"axis": (0, 1, 0), "start": 0.5, "kind": "revolute"} | joint
    return Scene([body], motors, joints=[Joint("hinge", parent=None, child="rod", **hinge)])


def said(scene: Scene, dt: float) -> str:
    solver = Articulated()
    return solver.caution(solver.build(scene), dt) or ""


def test_the_period_is_that_of_the_rod():
    words = said(rod(), 0.21 * PERIOD)
    period, longest = (float(v) for v in re.search(r"period of ([\d.]+) s, .* at most ([\d.]+) s", words).groups())
    assert words.startswith("Joint 'hinge'")
    assert period == pytest.approx(PERIOD, rel=0.01)
    assert longest == pytest.approx(PERIOD / 5, rel=0.05)
    assert not said(rod(), 0.19 * PERIOD)
    assert f"period of {PERIOD:.3g}" in said(rod(kind="ball", start=None), 0.5)


def test_a_swing_in_such_steps_is_not_the_swing():
    """A third of the amplitude is left after five periods of two steps, and nearly all after five of twenty."""

    def left(steps: int) -> float:
        sim = Simulation(rod(), Articulated(), PERIOD / steps, 1)
        with torch.no_grad():
            q = sim.rollout(None, 5 * steps, observe=lambda state: state.q).observation
        return float(q.reshape(-1)[-steps:].abs().max())

    with pytest.warns(UserWarning, match="Joint 'hinge': what hangs on it swings .* do not resolve"):
        assert left(2) < 0.25
    assert left(20) > 0.48


def test_joints_that_do_not_swing_freely_are_silent():
    """About a vertical axis, without gravity, with a motor, a spring, damping or limits."""
    servo = Servo("servo", "hinge", 10.0, 10.0, 1.0)
    for scene in (
        rod(axis=(0, 0, 1)), dataclasses.replace(rod(), gravity=(0, 0, 0)), rod(servo), rod(stiffness=1.0),
        rod(damping=0.1), rod(lower=-1.0, upper=1.0), rod(kind="fixed", start=None),
    ):  # fmt: skip
        assert not said(scene, 1.0)
