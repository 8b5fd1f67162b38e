"""Contacts that stick are eliminated by one scalar factor: the same steps and gradients as by sweeps, and Coulomb's law."""

from typing import TypeAlias

import numpy as np
import pytest
import torch
from contact_equations import Solve, recorded_solves
from loose_bodies import G, cube
from test_arm import CUBE, LIFTED, gripping

from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_workspace

DOUBLE = precision == "float64"
TOLERANCE = 1e-10 if DOUBLE else None
BLOCK = Box((0, 0, 1e-4), (0.12, 0.12, 0.0401))
FLOOR = Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), friction=0.5)
Motion: TypeAlias = tuple[Simulation, object, torch.Tensor, tuple[str, ...]]
"""A simulation, its start, the control of its steps, and the parameters by which a loss is differentiated."""


def block() -> Motion:
    """A free block of 49 contacts with a floor, most of which stick: its rotations couple them."""
    body = SoftBody("block", BLOCK, Material(2e4, 0.3, 800.0), velocity=(0.02, 0, 0))
    sim = Simulation(Scene((body,), obstacles=(FLOOR,)), ProjectiveDynamics(0.02, tolerance=TOLERANCE), 0.01)
    return sim, sim.state(), torch.zeros(0), ("friction", "youngs_modulus")


def arm() -> Motion:
    """Two pads that grip a cube, with up to 52 contacts: the joints of the arm and the cube couple them."""
    sim, plan = gripping(LIFTED, 0.01, cells=4e-3, tolerance=TOLERANCE)
    plan.wait(0.01, CUBE.mass * G / 2.0 / 0.6 / 0.55)
    return sim, sim.state(), plan.control[-1:].double(), ("mass", "youngs_modulus")


def four() -> Motion:
    """Four worlds with the block under a rigid cube, which touches it in the second one: joints couple contacts there."""
    body = SoftBody("block", BLOCK, Material(2e4, 0.3, 800.0), velocity=(0.02, 0, 0), friction=0.5)
    scene = Scene((body, cube("load", (0.03, 0.03, 0.0403))), obstacles=(FLOOR,))
    sim = Simulation(scene, ProjectiveDynamics(0.02, tolerance=TOLERANCE), 0.01, substeps=1, worlds=4)
    q = sim.state().q.clone()
    q[[0, 2, 3], 2] += 1.0
    return sim, sim.state(q=q), torch.zeros(4, 0), ("youngs_modulus",)


def moved(make, steps: int) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """End of a motion, gradients of a loss, and the iterations of each step and world."""
    sim, state, control, names = make()
    leaves = {name: sim.parameter(name).clone().requires_grad_() for name in names}
    iterations = []
    for _ in range(steps):
        state = sim.step(state, control, **leaves)
        iterations.append(sim.report().iterations)
    x = state.position
    (x * torch.linspace(1.0, 2.0, x[0].numel()).reshape(x[0].shape)).sum().backward()
    return x.detach().double().numpy(), {n: v.grad.double().numpy() for n, v in leaves.items()}, np.array(iterations)


def judged(solves: list[Solve], errors: str) -> np.ndarray:
    """Largest errors after each solve, relative to the largest ones before it; of solves that change much."""
    before = np.array([getattr(solve, errors)(solve.before).max() for solve in solves])
    after = np.array([getattr(solve, errors)(solve.after).max() for solve in solves])
    much = before > (1e-3 if DOUBLE else 1e-2) * before.max()
    return after[much] / before[much]


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("make", "steps", "joints"), ((block, 2, {3}), (arm, 4, {12}), (four, 2, {3, 9})))
def test_each_solve_obeys_the_law(monkeypatch, make, steps, joints):
    """After one solve, at all contacts: those that stick, slide and open; and the equations of the adjoint."""
    forward, backward = recorded_solves(monkeypatch)
    moved(make, steps)
    assert {solve.joints for solve in forward} == joints
    assert {solve.joints for solve in backward} == joints
    for solves in (forward, backward):
        assert any(0 < solve.sticking < len(solve.q) for solve in solves)
    assert judged(forward, "errors").max() < 2e-4  # Newton's method for contacts that slide ends at 1e-4
    assert judged(backward, "adjoint_errors").max() < (1e-9 if DOUBLE else 1e-4)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("make", (block, arm))
def test_steps_and_gradients_are_those_of_sweeps(monkeypatch, make):
    """Some contacts slide, most stick; sweeps are another way to the same forces, and to the same adjoint."""
    with monkeypatch.context() as patch:
        forward, backward = recorded_solves(patch)
        x, gradients, iterations = moved(make, 4)
    assert len(forward) > 1
    assert len(backward) > 1
    monkeypatch.setattr(contact_workspace, "STICKING", 0)
    forward, backward = recorded_solves(monkeypatch)
    other, swept, more = moved(make, 4)
    assert forward == backward == []
    assert iterations.sum() <= more.sum()
    np.testing.assert_allclose(x, other, atol=1e-8 if DOUBLE else 1e-5)
    for name, values in gradients.items():
        scale = np.abs(swept[name]).max()
        assert scale > 0.0, name
        np.testing.assert_allclose(values, swept[name], atol=(1e-6 if DOUBLE else 5e-3) * scale, err_msg=name)
