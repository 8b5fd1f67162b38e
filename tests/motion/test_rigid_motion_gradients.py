"""Gradients through the contact of rigid bodies with obstacles that move, against differences in double precision."""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.actuators import VelocityDrive

pytestmark = [pytest.mark.articulated, pytest.mark.verification]

TIMES = np.array([0.0, 0.005, 0.02, 0.03, 0.05])
MOTION = {
    "positions": np.array([[0, 0, 0], [2, 1, 1], [6, 3, 2], [9, 1, 1], [12, 4, 3]]) * 1e-3,
    "rotations": np.array([[0, 0, 0], [1, 0, 2], [3, -1, 4], [4, 2, 9], [6, 1, 12]]) * 1e-2,
    "pivot": (0.05, 0.02, 0.01),
}
DRIVES = [
    VelocityDrive("push", "ball", 0.3, (1, 0.1, 0)),
    VelocityDrive("roll", "ball", 2.0, (0, 1, 0), kind="rotation", pivot=(0.0, 0.0, 0.0)),
    VelocityDrive("belt", "plate", 0.2, (0, 1, 0), kind="surface"),
]


def pushed():
    """A block on a plate that lifts, turns and drags it, while a ball with a belt pushes it from the side."""
    block = wb.RigidBody("block", wb.shapes.Box((0, 0, 0), (0.12, 0.08, 0.08)), 1000.0, points=26)
    plate = wb.Obstacle(
        wb.shapes.HalfSpace((0, 0, 0.0002), (0.02, 0.0, 1)), name="plate",
        motion=wb.PrescribedMotion(TIMES, **MOTION), surface_velocity=(0.1, 0.05, 0.3),
    )  # fmt: skip
    ball = wb.Obstacle(wb.shapes.Sphere((-0.0495, 0.045, 0.041), 0.05), name="ball", surface_velocity=(0.1, 0.2, -0.1))
    laws = [
        wb.Contact("block", "plate", 3e6, 1e8, 0.3, 2e5, restitution=0.0),
        wb.Contact("block", "ball", 5e7, 1e8, 0.2, 2e6, name="side", restitution=0.0),
    ]
    return wb.Scene([block], DRIVES, obstacles=[plate, ball], contacts=laws)


def struck():
    """A ball that a paddle and a plate strike in no time, with friction."""
    ball = wb.RigidBody("rubber", wb.shapes.Sphere((0.04, 0.03, 0.053), 0.05), 1000.0, points=8)
    free = wb.Joint("rubber", "free", None, "rubber", start_velocity=(-0.3, 0.1, -0.5, 3.0, 1.0, -2.0))
    plate = wb.Obstacle(
        wb.shapes.HalfSpace((0, 0, 0), (0.02, 0.0, 1)), name="plate", motion=wb.PrescribedMotion(TIMES, **MOTION),
        surface_velocity=(0.1, 0.05, 0.3),
    )  # fmt: skip
    paddle = wb.Obstacle(wb.shapes.Sphere((-0.0649, 0.045, 0.041), 0.05), name="ball")
    laws = [
        wb.Contact("rubber", name, 1e7, 1e9, mu, 1e7, restitution=0.8, impact="instant")
        for name, mu in (("plate", 0.1), ("ball", 0.3))
    ]
    return wb.Scene([ball], DRIVES, obstacles=[plate, paddle], joints=[free], contacts=laws)


def check(scene, method, steps, rel, readings=False):
    """Directional derivatives of a loss by everything that determines the motion, from two seeds of weights."""
    sim = wb.Simulation(scene, wb.Articulated(method, tolerance=1e-13), dt=2e-3)
    rng = np.random.default_rng(1)
    start = sim.state()
    weight = {n: torch.tensor(rng.normal(size=tuple(getattr(start, n).shape))) for n in ("q", "qd")}
    control = torch.tensor(np.random.default_rng(2).uniform(0.2, 0.9, size=(steps, sim.channels)))
    own = ("motion_position", "motion_rotation", "drive_speed", "surface_velocity", "contact_friction", "body_force")
    values = {name: sim.parameter(name).clone() for name in own}
    values["body_force"] += 0.1
    sums = torch.tensor(rng.normal(size=(2, len(scene.obstacles), 3)))

    def loss(control, time, travel, **values):
        state = sim.state(time=time, travel=travel)
        for u in control:
            state = sim.step(state, u, **values)
        total = sum((w * getattr(state, n)).sum() for n, w in weight.items())
        if readings:
            read = sim.sense(state, control[-1], **values)
            total = total + (sums[0] * read.obstacle_force + sums[1] * read.obstacle_torque).sum() * 1e-3
            total = total + 1e-4 * sim.dynamics(state, control[-1], **values).acceleration.sum()
        return total

    leaves = {"control": control, "time": start.time + 1.3e-3, "travel": start.travel + 1e-5, **values}
    for value in leaves.values():
        value.requires_grad_(True)
    gradients = dict(zip(leaves, torch.autograd.grad(loss(**leaves), list(leaves.values())), strict=True))
    leaves = {name: value.detach() for name, value in leaves.items()}
    found = {}
    for name, value in leaves.items():
        direction = torch.tensor(np.random.default_rng(3).normal(size=tuple(value.shape)))
        e = 1e-7 if name.startswith("motion") or name in ("time", "travel") else 1e-6
        with torch.no_grad():
            pair = [loss(**leaves | {name: value + s * e * direction}) for s in (1.0, -1.0)]
        found[name] = (float((gradients[name] * direction).sum()), float(pair[0] - pair[1]) / (2.0 * e))
    for name, (gradient, difference) in found.items():
        assert gradient != 0.0, name
        assert gradient == pytest.approx(difference, rel=rel), (name, found)


@pytest.mark.parametrize("method", ["sdirk2", "bdf1"])
def test_compliant_contact(method):
    check(pushed(), method, 12, 1e-5, readings=True)


@pytest.mark.parametrize("method", ["sdirk2", "bdf1"])
def test_instant_impacts(method):
    check(struck(), method, 12, 1e-5)
