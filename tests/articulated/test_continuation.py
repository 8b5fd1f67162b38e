"""Steps that Newton's method does not find alone: light legs, hard ground and friction."""

import numpy as np
import pytest
import torch

from warpbots.scene import Capsule, Contact, Joint, RigidBody, Scene, Sphere, floor
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

PATIENCE = 40
"""Corrections after which the solver looks for a solution with softer friction first."""


def tripod() -> Scene:
    """A ball on three light legs of two links, thrown on the floor."""
    top = np.array([0, 0, 0.45])
    bodies = [RigidBody("torso", Sphere((0, 0, 0), 0.1), 20.0, position=tuple(top), points=20, surface="skin")]
    joints = [Joint("root", "free", None, "torso", position=tuple(top), start_velocity=(1.0, 0.3, -1.0, 1.0, 0.0, 2.0))]
    for i in range(3):
        d = np.array([np.cos(2 * np.pi * i / 3), np.sin(2 * np.pi * i / 3), 0])
        hip = top + 0.1 * d
        knee = hip + 0.15 * d + [0, 0, 0.05]
        foot = knee + 0.1 * d - [0, 0, 0.3]
        axis = tuple(np.cross([0, 0, 1], d))
        bodies.append(RigidBody(f"thigh{i}", Capsule(tuple(hip), tuple(knee), 0.02), 50.0))
        bodies.append(RigidBody(f"shin{i}", Capsule(tuple(knee), tuple(foot), 0.02), 50.0, points=24, surface="skin"))
        joints.append(Joint(f"hip{i}", "revolute", "torso", f"thigh{i}", position=tuple(hip), axis=axis, damping=1e-3))
        joints.append(
            Joint(f"knee{i}", "revolute", f"thigh{i}", f"shin{i}", position=tuple(knee), axis=axis, damping=1e-3)
        )
    contact = Contact("skin", "floor", 1e8, 1e9, 1.0, 1e8)
    return Scene(bodies, joints=joints, obstacles=(floor(),), contacts=(contact,))


@pytest.mark.filterwarnings("ignore:Contact 'skin on floor' is not resolved")
def test_hard_friction_is_found_by_way_of_soft_friction():
    """Also the gradient of such a step is that of the true friction: the central difference."""
    sim, still = Simulation(tripod(), Articulated(), dt=5e-3), torch.zeros(0, dtype=torch.float64)
    state, hardest, most = sim.state(), None, 0
    for _ in range(40):
        before, state = state, sim.step(state, still)
        iterations = int(sim.model.workspace.report.iterations.numpy()[0])
        if iterations > most:
            hardest, most = before, iterations
    assert most > PATIENCE
    fields = dict(vars(hardest))
    direction = torch.as_tensor(np.random.default_rng(2).normal(size=hardest.qd.shape))

    def end(velocity):
        final = sim.step(sim.state(**(fields | {"qd": velocity})), still)
        return (final.qd * torch.arange(1.0, final.qd.shape[1] + 1, dtype=torch.float64)).sum()

    velocity = hardest.qd.clone().requires_grad_()
    slope = float((torch.autograd.grad(end(velocity), velocity)[0] * direction).sum())
    with torch.no_grad():
        v, h = velocity.detach(), 1e-6
        difference = float(end(v + h * direction) - end(v - h * direction)) / (2 * h)
    assert abs(slope / difference - 1.0) < 1e-5
