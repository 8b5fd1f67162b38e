"""Contacts that stick are eliminated by one scalar factor: the same steps and gradients as by sweeps, and Coulomb's law."""

import numpy as np
import pytest
import torch
from loose_bodies import G
from test_arm import CUBE, LIFTED, gripping

from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_workspace

DOUBLE = precision == "float64"


def block() -> tuple[Simulation, torch.Tensor, tuple[str, ...]]:
    """A free block of 49 contacts with a floor, most of which stick: its rotations couple them."""
    body = SoftBody("block", Box((0, 0, 1e-4), (0.12, 0.12, 0.0401)), Material(2e4, 0.3, 800.0), velocity=(0.02, 0, 0))
    floor = Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), friction=0.5)
    solver = ProjectiveDynamics(0.02, tolerance=1e-10 if DOUBLE else None)
    return Simulation(Scene((body,), obstacles=(floor,)), solver, 0.01), torch.zeros(0), ("friction", "youngs_modulus")


def arm() -> tuple[Simulation, torch.Tensor, tuple[str, ...]]:
    """Two pads that grip a cube, with up to 52 contacts: the joints of the arm and the cube couple them."""
    sim, plan = gripping(LIFTED, 0.01, cells=4e-3, tolerance=1e-10 if DOUBLE else None)
    plan.wait(0.01, CUBE.mass * G / 2.0 / 0.6 / 0.8)
    return sim, plan.control[-1:].double(), ("mass", "youngs_modulus")


def moved(make, steps: int) -> tuple[np.ndarray, dict[str, np.ndarray], bool, int]:
    """End of a motion, gradients of a loss, whether the last contacts were eliminated, and the largest number of them."""
    sim, control, names = make()
    leaves = {name: sim.parameter(name).clone().requires_grad_() for name in names}
    state, most = sim.state(), 0
    for _ in range(steps):
        state = sim.step(state, control, **leaves)
        most = max(most, int(sim.report().contacts[0]))
    eliminated = most > contact_workspace.FEW and int(sim.model.workspace.contact.sticking.kept.numpy()[0]) > 0
    x = state.position[0]
    (x * torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape)).sum().backward()
    return x.detach().double().numpy(), {n: v.grad.double().numpy() for n, v in leaves.items()}, eliminated, most


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("make", (block, arm))
def test_steps_and_gradients_are_those_of_sweeps(monkeypatch, make):
    """Some contacts slide, most stick; sweeps are another way to the same forces, and to the same adjoint."""
    x, gradients, eliminated, most = moved(make, 6)
    assert eliminated
    monkeypatch.setattr(contact_workspace, "STICKING", 0)
    other, swept, eliminated, count = moved(make, 6)
    assert not eliminated
    assert most == count
    np.testing.assert_allclose(x, other, atol=1e-8 if DOUBLE else 1e-5)
    for name, values in gradients.items():
        scale = np.abs(swept[name]).max()
        assert scale > 0.0, name
        np.testing.assert_allclose(values, swept[name], atol=(1e-6 if DOUBLE else 5e-3) * scale, err_msg=name)
