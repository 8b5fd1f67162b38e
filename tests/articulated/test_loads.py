"""External forces and torques on rigid bodies, against closed forms, statics and differences."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from test_articulated_gradients import Loss, assert_gradients, scuffle, start_of

import warpbots as wb

RADIUS = 0.1


def on(sim, name, body, value):
    """The parameter `name`, with `value` for one body."""
    values = sim.parameter(name)
    values[:, sim.model.robot.body(body)] = torch.as_tensor(value, dtype=torch.float64)
    return {name: values}


@pytest.mark.parametrize(("method", "error"), [("sdirk2", 2e-5), ("bdf1", 0.02)])
def test_a_free_body_accelerates_as_newton_and_euler_say(method, error):
    """x = F t^2 / 2m, and a ball turns by T t^2 / 2I about the torque, wherever its frame is."""
    shape = wb.shapes.Sphere((0.3, 0.2, -0.1), RADIUS)
    other = wb.RigidBody("other", wb.shapes.Sphere((0, 0, 3), RADIUS), 500.0)
    scene = wb.Scene([other, wb.RigidBody("ball", shape, 500.0)], gravity=(0, 0, 0))
    sim = wb.Simulation(scene, wb.Articulated(method), dt=0.01)
    force, torque, t = np.array([3.0, -2.0, 5.0]), np.array([0.008, 0.02, -0.012]), 1.0
    given = on(sim, "body_force", "ball", force) | on(sim, "body_torque", "ball", torque)
    q = sim.rollout(None, 100, **given).final.q[0].numpy()
    mass = 500.0 * 4.0 / 3.0 * np.pi * RADIUS**3
    assert q[7:10] == pytest.approx(force * t**2 / (2.0 * mass), rel=error)
    turned = torque * t**2 / (2.0 * 0.4 * mass * RADIUS**2)
    assert Rotation.from_quat(q[10:]).as_rotvec() == pytest.approx(turned, rel=error)
    assert q[:7] == pytest.approx([0, 0, 0, 0, 0, 0, 1], abs=1e-14)


def arm(neutral=(0.0, 0.0)):
    """Two links of 0.4 m and 0.3 m in the xz plane, on joints with springs."""
    links = [
        wb.RigidBody("upper", wb.shapes.Capsule((0, 0, 0), (0.4, 0, 0), 0.03), 800.0),
        wb.RigidBody("lower", wb.shapes.Capsule((0.4, 0, 0), (0.7, 0, 0), 0.02), 800.0),
    ]
    joints = [
        wb.Joint("shoulder", "revolute", None, "upper", (0, 0, 0), axis=(0, 1, 0), stiffness=30.0, neutral=neutral[0]),
        wb.Joint(
            "elbow", "revolute", "upper", "lower", (0.4, 0, 0), axis=(0, 1, 0), stiffness=20.0, neutral=neutral[1]
        ),
    ]
    return wb.Scene(links, joints=joints)


def test_forces_on_joints_are_the_transposed_jacobian_times_the_load():
    """And springs that balance weight and load keep the arm where it is."""
    sim = wb.Simulation(arm(), wb.Articulated(), dt=0.01)
    q, force, torque = np.array([0.5, -0.9]), np.array([4.0, 7.0, -3.0]), np.array([0.3, -0.4, 0.2])
    given = on(sim, "body_force", "lower", force) | on(sim, "body_torque", "lower", torque)
    free, loaded = (sim.dynamics(sim.state(q=q), **p).force[0].numpy() for p in ({}, given))

    def center(q):
        return sim.sense(sim.state(q=q)).center[0, 1].numpy()

    e = 1e-6
    jacobian = np.stack([(center(q + e * d) - center(q - e * d)) / (2 * e) for d in np.eye(2)], 1)
    assert loaded - free == pytest.approx(jacobian.T @ force + torque[1], abs=1e-9)
    bias = sim.dynamics(sim.state(q=q)).bias[0].numpy()
    needed = bias - (jacobian.T @ force + torque[1])  # of the springs, k (neutral - q)
    held = wb.Simulation(arm(q + needed / [30.0, 20.0]), wb.Articulated(), dt=0.01)
    final = held.rollout(None, 50, held.state(q=q), **given).final
    assert final.q[0].numpy() == pytest.approx(q, abs=1e-8)


@pytest.mark.verification
@pytest.mark.filterwarnings("ignore:Contact")
@pytest.mark.parametrize("method", ["sdirk2", "bdf1"])
def test_gradients(method, rng):
    """Of a tree with a ball joint, in contact, under loads of which each turns and moves what it acts on."""
    sim = wb.Simulation(scuffle("box"), wb.Articulated(method), dt=0.004)
    inputs = start_of(sim, rng, 4)
    for name, size in (("body_force", 0.5), ("body_torque", 0.05)):
        inputs[name] = size * torch.as_tensor(rng.normal(size=inputs[name].shape))
    assert_gradients(Loss(sim, rng, 4, inputs), rng)
