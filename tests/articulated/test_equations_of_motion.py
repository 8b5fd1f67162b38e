"""Equations of motion at the level of a simulation: closed forms, MuJoCo, a short step, and their gradients."""

import mujoco
import numpy as np
import pytest
import torch
from cases import block
from mechanisms import mujoco_model, random_state, random_tree, set_state
from test_articulated_gradients import direction_of, scuffle, start_of
from test_sense import stirred

from warpbots.scene import Box, Contact, Inertia, Joint, RigidBody, Scene, Torque, floor
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, MassSpring


def found(sim: Simulation, inputs: dict[str, torch.Tensor]):
    inputs = dict(inputs)
    state = sim.state(q=inputs.pop("q"), qd=inputs.pop("qd"))
    return sim.dynamics(state, inputs.pop("control"), **inputs)


def test_a_pendulum_pulls_at_its_hinge():
    """m g cos q + m l w^2 along the rod, and m (g sin q + l a) across it with a = (u T - m g l sin q) / (I + m l^2)."""
    m, l, inertia, q, w, g, T, u = 2.0, 0.7, 0.3, 0.6, 3.0, 9.81, 4.0, 0.5
    bob = RigidBody("bob", None, inertia=Inertia(m, (0.0, 0.0, -l), inertia * np.eye(3)))
    hinge = Joint(
        "hinge", "revolute", None, "bob", position=(0.2, 0.3, 0.4), axis=(0.0, 1.0, 0.0), start=q, start_velocity=w
    )
    bob = RigidBody("bob", None, inertia=Inertia(m, (0.0, 0.0, -l), inertia * np.eye(3)), position=(0.2, 0.3, 0.4))
    sim = Simulation(
        Scene([bob], [Torque("t", "hinge", T)], joints=[hinge], gravity=(0.0, 0.0, -g)), Articulated(), 1e-3
    )
    r = sim.dynamics(sim.state(), torch.tensor([u]))
    a = (u * T - m * g * l * np.sin(q)) / (inertia + m * l**2)
    along, across = np.array([np.sin(q), 0.0, np.cos(q)]), np.array([-np.cos(q), 0.0, np.sin(q)])
    pull = m * (g * np.cos(q) + l * w**2) * along + m * (g * np.sin(q) + l * a) * across
    assert r.mass_matrix.item() == pytest.approx(inertia + m * l**2, rel=1e-12)
    assert r.bias.item() == pytest.approx(m * g * l * np.sin(q), rel=1e-12)
    assert r.force.item() == pytest.approx(u * T, rel=1e-12)
    assert r.acceleration.item() == pytest.approx(a, rel=1e-12)
    np.testing.assert_allclose(r.joint_force[0, 0], pull, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(r.joint_moment[0, 0], [0.0, u * T, 0.0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_joints_transmit_what_they_do_in_mujoco(seed):
    """`cfrc_int`, a wrench about the centre of mass of the whole tree, of trees of all kinds of joints."""
    rng = np.random.default_rng(seed)
    scene = random_tree(rng, 2 * seed + 2)
    sim = Simulation(scene, Articulated(), 1e-3)
    robot, reference = sim.model.robot, mujoco_model(scene)
    data = mujoco.MjData(reference)
    q, v = random_state(robot, rng)
    set_state(scene, robot, reference, data, q, v)
    mujoco.mj_rnePostConstraint(reference, data)
    r = sim.dynamics(sim.state(q=torch.as_tensor(q), qd=torch.as_tensor(v)))
    origin = sim.sense(sim.state(q=torch.as_tensor(q), qd=torch.as_tensor(v)))
    for k, name in enumerate(robot.bodies):
        body = reference.body(name).id
        force, moment = r.joint_force[0, k].numpy(), r.joint_moment[0, k].numpy()
        joint = robot.joints[k]
        local = np.array(scene.rigid[k].rotation).T @ (np.array(joint.position) - np.array(scene.rigid[k].position))
        at = origin.position[0, k].numpy() + origin.rotation[0, k].numpy() @ local
        about = data.subtree_com[reference.body_rootid[body]]
        ours = np.concatenate([moment + np.cross(at - about, force), force])
        np.testing.assert_allclose(ours, data.cfrc_int[body], rtol=1e-9, atol=1e-9 * np.abs(data.cfrc_int).max())


def test_acceleration_is_that_of_a_short_step(rng):
    """In contact, under motors, at limits: (v' - v) / h of implicit Euler, to first order in h."""
    inputs, error = stirred(Simulation(scuffle("box"), Articulated(), dt=0.004), rng), []
    control = inputs.pop("control")
    for h in (2e-7, 1e-7):
        sim = Simulation(scuffle("box"), Articulated("bdf1", tolerance=1e-15), dt=h)
        start = sim.state(q=inputs["q"], qd=inputs["qd"])
        parameters = {n: inputs[n] for n in sim.parameters()}
        assert (sim.sense(start, control, **parameters).contact_normal > 0).sum() > 3
        rate = (sim.step(start, control, **parameters).qd - start.qd) / h
        a = sim.dynamics(start, control, **parameters).acceleration
        error.append(float((rate - a).abs().max() / a.abs().max()))
    print(error)
    assert error[1] < 1e-3
    assert error[0] / error[1] == pytest.approx(2.0, rel=0.1)


def test_what_floats_is_carried_by_contacts_alone():
    """A box that bounces on a floor: its joint transmits nothing, and what contacts exert is on its joint."""
    box = RigidBody("box", Box((-0.1, -0.1, 0.0), (0.1, 0.1, 0.2)), 500.0, points=40)
    law = Contact("box", "floor", 1e6, 1e6, 0.5, 1e4)
    sim = Simulation(Scene([box], obstacles=[floor()], contacts=[law]), Articulated(), 2e-3)
    state = sim.rollout(None, 300).final
    r, weight = sim.dynamics(state), 500.0 * 0.2**2 * 0.2 * 9.81
    contact = sim.sense(state).contact_force.sum(dim=1)
    assert float(contact[0, 2]) > 0.5 * weight
    np.testing.assert_allclose(r.force[0, :3], contact[0], rtol=1e-12, atol=1e-12)
    assert float(r.bias[0, 2]) == pytest.approx(weight, rel=1e-12)
    assert float(r.acceleration[0, 2]) == pytest.approx(float(contact[0, 2] / weight - 1.0) * 9.81, rel=1e-9)
    assert float(r.joint_force.abs().max()) < 1e-12 * weight
    assert float(r.joint_moment.abs().max()) < 1e-12 * weight


@pytest.mark.parametrize("scene", ["contact", "tree"])
def test_gradients(scene, rng):
    """Of everything with respect to everything, against central differences."""
    if scene == "contact":
        sim = Simulation(scuffle("box"), Articulated(), dt=0.004)
        inputs = stirred(sim, rng)
        robot = sim.model.robot
        inputs["q"][:, robot.coordinates["flap"]] = -0.3  # behind its limit, on the way in
        inputs["qd"][:, robot.velocities["flap"]] = -1.0
        inputs["q"][:, robot.coordinates["elbow"]] = 0.23
    else:
        sim = Simulation(random_tree(np.random.default_rng(3), 6), Articulated(), dt=0.004, worlds=2)
        inputs = start_of(sim, rng, 1)
        both = [random_state(sim.model.robot, rng) for _ in range(2)]
        q, qd = (torch.as_tensor(np.array(values)) for values in zip(*both, strict=True))
        inputs |= {"q": q, "qd": qd, "control": torch.zeros(2, 0, dtype=torch.float64)}
    weights = {
        n: torch.as_tensor(rng.normal(size=t.shape)) / t.abs().max() for n, t in vars(found(sim, inputs)).items()
    }

    def loss(values):
        return sum((weights[n] * t).sum() for n, t in vars(found(sim, values)).items())

    leaves = {n: t.detach().clone().requires_grad_() for n, t in inputs.items()}
    gradients = torch.autograd.grad(loss(leaves), list(leaves.values()))
    for (name, value), gradient in zip(inputs.items(), gradients, strict=True):
        if not value.numel():
            continue
        assert (gradient != 0).any() or name == "contact_viscosity", name  # which only what sticks feels
        d, errors = direction_of(name, value.detach(), rng), []
        for h in (1e-5, 1e-6):
            with torch.no_grad():
                ahead, behind = (loss({**inputs, name: value + s * h * d}) for s in (1, -1))
            slope = float((gradient * d).sum())
            errors.append(abs(slope - float(ahead - behind) / (2 * h)))
        allowed = 1e-6 * abs(slope) + 1e-8 * float((gradient * d).abs().sum()) + 1e-8
        print(name, slope, errors)
        assert min(errors) < allowed, (name, slope, errors)


def test_faults():
    sim = Simulation(block(2), MassSpring(0.125), 1e-4)
    with pytest.raises(TypeError, match="MassSpring has no equations of motion in joint coordinates; Articulated has"):
        sim.dynamics(sim.state())
    arm = Simulation(scuffle("box"), Articulated(), dt=0.004)
    with pytest.raises(ValueError, match=r"control\[0, 0\] of actuator 't' is 2"):
        arm.dynamics(arm.state(), torch.full((arm.channels,), 2.0, dtype=torch.float64))
    with pytest.raises(ValueError, match="there is no parameter 'masses'"):
        arm.dynamics(arm.state(), masses=torch.ones(1))
