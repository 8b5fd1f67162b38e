"""Tensors of a simulation are on its device, whatever device torch gives to new tensors."""

import numpy as np
import pytest
import torch
import warp as wp
from cases import ELEMENTS, SOLVERS, STEPPING, busy

from warpbots import controllers
from warpbots.gradients import tensor_of
from warpbots.scene import Capsule, Joint, RigidBody, Scene, Torque
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

CHOSEN = [name for name in STEPPING if name != "own"]


@pytest.fixture
def elsewhere():
    """A function that makes torch put new tensors where there is no memory, for the rest of this test."""
    before = torch.get_default_device()
    yield lambda: torch.set_default_device("meta")
    torch.set_default_device(before)


def motion(sim: Simulation) -> list[np.ndarray]:
    """The end of a rollout under a network, and the gradient with respect to its weights."""
    policy = controllers.MLP(sim, seed=3)
    final = sim.rollout(policy, 2).final
    end = getattr(final, "position" if hasattr(final, "position") else "q")
    end.square().sum().backward()
    return [end.detach().cpu().numpy(), *(weight.grad.cpu().numpy() for weight in policy.parameters())]


def made(name: str) -> Simulation:
    """A small scene of a solver on a CPU."""
    if name == "articulated":
        arm = RigidBody("arm", Capsule((0, 0, 0), (0.2, 0, 0), 0.03))
        scene = Scene([arm], [Torque("motor", "hinge", 1.0)], joints=[Joint("hinge", "revolute", None, "arm")])
        return Simulation(scene, Articulated(), 2e-3, device="cpu")
    dim = 3 if name in ELEMENTS else 2
    return Simulation(busy(dim, solver=name), SOLVERS[name](1 / 8), 2e-3, device="cpu")


@pytest.mark.parametrize("name", [*CHOSEN, "articulated"])
def test_a_simulation_is_the_same_under_another_default_device(name, elsewhere):
    expected = motion(made(name))
    elsewhere()
    found = motion(made(name))
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_a_tensor_shares_the_memory_of_its_array(elsewhere):
    """`warp.to_torch` would give a copy on the default device."""
    array = wp.zeros(3, dtype=wp.vec2, device="cpu")
    elsewhere()
    tensor_of(array)[1, 0] = 2.0
    assert array.numpy()[1, 0] == 2.0
