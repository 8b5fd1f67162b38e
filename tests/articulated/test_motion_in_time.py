"""Schemes in time: orders, energy, momentum, and closed forms."""

import math

import numpy as np
import pytest
import torch
from cases import dynamics
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from warpbots.scene import Box, Cylinder, Inertia, Joint, RigidBody, Scene
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

ORDERS = {"bdf1": 1, "sdirk2": 2}


def double_pendulum() -> Scene:
    """Two rods, the first on a hinge and the second on a ball, which a body with three moments hangs on."""
    rod = RigidBody("rod", Cylinder((0, 0, -1), (0, 0, 0), 0.05), 100.0)
    brick = RigidBody("brick", Box((-0.1, -0.2, -0.4), (0.1, 0.2, 0.0)), 100.0, position=(0, 0, -1))
    return Scene(
        (rod, brick),
        joints=(
            Joint("hinge", "revolute", None, "rod", axis=(0, 1, 0), start=0.8),
            Joint("ball", "ball", "rod", "brick", position=(0, 0, -1), start_velocity=(0.5, -1.0, 2.0)),
        ),
    )


def reference(end: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of `double_pendulum` from its equations of motion, by a scheme of order eight."""
    solver = Articulated()
    model = solver.build(double_pendulum())
    state = solver.state(model)

    def rate(t, y):
        q, v = y[:5].copy(), y[5:]
        q[1:] /= np.linalg.norm(q[1:])
        state.q.assign(q[None])
        state.qd.assign(v[None])
        x, y_, z, w = q[1:]
        a, b, c = v[1:]
        spin = [w * a + y_ * c - z * b, w * b + z * a - x * c, w * c + x * b - y_ * a, -x * a - y_ * b - z * c]
        return np.concatenate([[v[0]], 0.5 * np.array(spin), dynamics(model, state).acceleration[0]])

    start = np.concatenate([model.robot.start, model.robot.start_velocity])
    y = solve_ivp(rate, (0, end), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    return np.concatenate([[y[0]], y[1:5] / np.linalg.norm(y[1:5])]), y[5:]


def run(integrator: str, h: float, steps: int, scene: Scene | None = None):
    sim = Simulation(scene or double_pendulum(), Articulated(integrator), dt=h * steps, substeps=steps)
    return sim, sim.step(sim.state(), torch.zeros(0, dtype=torch.float64))


@pytest.mark.parametrize("integrator", ORDERS)
def test_order_of_the_scheme(integrator):
    q, v = reference(0.8)
    errors = []
    for steps in (80, 160, 320):
        _, state = run(integrator, 0.8 / steps, steps)
        found = state.q[0].numpy()
        found[1:] *= np.sign(found[1:] @ q[1:])
        errors.append(np.linalg.norm(found - q) + np.linalg.norm(state.qd[0].numpy() - v))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(slopes[-1] - ORDERS[integrator]) < 0.1, (errors, slopes)


def test_steps_may_change_their_length():
    """Half a second in steps of h, then in steps of h / 2 and h in turn: still of second order."""
    q, v = reference(0.4)
    errors = []
    for n in (20, 40, 80):
        h = 0.4 / (n * 3)
        sims = [Simulation(double_pendulum(), Articulated(), dt=t) for t in (h, 2 * h)]
        state = sims[0].state()
        for i in range(2 * n):
            state = sims[i % 2].step(state, torch.zeros(0, dtype=torch.float64))
        errors.append(float(np.linalg.norm(state.qd[0].numpy() - v)))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(slopes[-1] - 2.0) < 0.15, (errors, slopes)


def test_energy_of_an_undamped_double_pendulum_stays_within_the_order():
    drifts = []
    for steps in (200, 400, 800):
        sim, state = run("sdirk2", 1.0 / steps, steps)
        before, after = (sim.sense(s) for s in (sim.state(), state))
        energy = [float((r.kinetic_energy + r.potential_energy).sum()) for r in (before, after)]
        drifts.append(abs(energy[1] - energy[0]))
    assert drifts[-1] < 2e-4 * abs(energy[0])
    assert np.log2(drifts[0] / drifts[1]) > 1.9
    assert np.log2(drifts[1] / drifts[2]) > 1.9


@pytest.mark.parametrize("degrees", [1.0, 90.0, 170.0])
def test_period_of_a_pendulum(degrees):
    """T = 4 sqrt(2 L / 3 g) K(sin(a / 2)) for a rod of length L that swings to the angle a."""
    angle, length = math.radians(degrees), 1.0
    moments = np.array([length**2 / 12, length**2 / 12, 1e-9])
    rod = RigidBody("rod", None, inertia=Inertia(1.0, (0, 0, -length / 2), (*moments[:2], moments[0] * 0.9)))
    scene = Scene((rod,), joints=(Joint("hinge", "revolute", None, "rod", axis=(0, 1, 0), start=angle),))
    period = 4.0 * math.sqrt(2.0 * length / (3.0 * 9.81)) * ellipk(math.sin(angle / 2.0) ** 2)
    steps = 1000
    sim = Simulation(scene, Articulated(), dt=period / steps)
    trajectory = sim.rollout(None, steps + 20, observe=lambda state: state.qd[:, 0])
    speed = trajectory.observation[0].numpy()
    cross = int(np.flatnonzero((speed[steps // 2 : -1] > 0) & (speed[steps // 2 + 1 :] <= 0))[0]) + steps // 2
    at = cross + speed[cross] / (speed[cross] - speed[cross + 1])
    assert abs((at + 1) / steps - 1.0) < 1e-4


MOMENTS = (0.1, 0.17, 0.25)


def stone(position: tuple[float, ...] | None, spin: tuple[float, ...] = (2.0, -1.0, 3.0)) -> Scene:
    """A free body, whose centre of mass is away from the world's origin and from its own, with one motion."""
    body = RigidBody("stone", None, position=(0.2, 0.1, 0.0), inertia=Inertia(2.0, (0.1, 0.0, -0.05), MOMENTS))
    lever = np.zeros(3) if position is None else np.array(position) - (0.3, 0.1, -0.05)
    velocity = np.array([0.3, -0.2, 0.5]) + np.cross(spin, lever)
    joint = Joint("stone", "free", None, "stone", position=position, start_velocity=(*velocity, *spin))
    return Scene((body,), joints=(joint,), gravity=(0, 0, 0))


def momenta(sim: Simulation, state) -> tuple[np.ndarray, np.ndarray]:
    r = sim.sense(state)
    R, w = r.rotation[0, 0].numpy(), r.angular_velocity[0, 0].numpy()
    c = r.center[0, 0].numpy()
    v = r.velocity[0, 0].numpy() + np.cross(w, c - r.position[0, 0].numpy())
    return 2.0 * v, 2.0 * np.cross(c, v) + R @ np.diag(MOMENTS) @ R.T @ w


def test_a_free_body_keeps_its_momenta():
    """No gravity: about its centre the linear momentum to rounding, and the angular one within the order; about
    another point both within the order."""
    for position in (None, (0.0, 0.0, 0.0)):
        drifts = []
        for steps in (200, 400):
            sim, state = run("sdirk2", 1.0 / steps, steps, stone(position))
            (p, L), (p_end, L_end) = momenta(sim, sim.state()), momenta(sim, state)
            np.testing.assert_allclose(p, (0.6, -0.4, 1.0), rtol=1e-12)
            drifts.append((np.abs(p_end - p).max(), np.abs(L_end - L).max()))
        assert drifts[1][1] < 2e-3
        assert np.log2(drifts[0][1] / drifts[1][1]) > 1.8
        assert drifts[1][0] < 1e-12 if position is None else np.log2(drifts[0][0] / drifts[1][0]) > 1.8


@pytest.mark.parametrize("integrator", ORDERS)
def test_a_quick_spin_does_not_move_a_body_whose_joint_has_no_frame(integrator):
    """40 rad/s in steps of 5 ms: about the body's own origin the momentum of bdf1 drifts by a quarter in 0.3 s."""
    drifts = []
    for position in (None, (0.2, 0.1, 0.0)):
        sim, state = run(integrator, 5e-3, 60, stone(position, (0.0, 0.0, 40.0)))
        drifts.append(np.abs(momenta(sim, state)[0] - momenta(sim, sim.state())[0]).max())
    assert drifts[0] < 1e-12
    assert drifts[1] > 1e-3


def test_coordinates_of_a_free_joint_without_a_frame_are_those_of_the_centre_of_mass():
    body = RigidBody("box", Box((0.0, 0.0, 0.0), (0.2, 0.4, 0.6)), position=(1.0, 0.0, 0.0))
    turn = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    joint = Joint("free", "free", None, "box", start=(0.3, 0.0, 0.0, *turn), start_velocity=(1.0, 2.0, 3.0, 0, 0, 5.0))
    for joints in ((joint,), ()):
        sim = Simulation(Scene((body,), joints=joints, gravity=(0, 0, 0)), Articulated(), dt=0.01)
        seen = sim.sense(sim.state())
        moved = np.array([0.3, 0.0, 0.0]) if joints else np.zeros(3)
        np.testing.assert_allclose(seen.center[0, 0], np.array([1.1, 0.2, 0.3]) + moved, atol=1e-12)
        if joints:  # a quarter of a turn about the centre: from (1, 0, 0) to the other side of it
            np.testing.assert_allclose(seen.position[0, 0], (1.6, 0.1, 0.0), atol=1e-12)
            end = sim.rollout(None, 10).final
            np.testing.assert_allclose(end.q[0, :3], (0.4, 0.2, 0.3), atol=1e-12)
    assert joint.position is None
    assert Joint("h", "revolute", None, "box").position == (0.0, 0.0, 0.0)


def test_free_fall_is_exact_for_a_scheme_of_second_order():
    body = RigidBody("ball", None, inertia=Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    sim, state = run("sdirk2", 0.01, 50, Scene((body,)))
    assert torch.allclose(state.qd[0, 2], torch.tensor(-9.81 * 0.5, dtype=torch.float64), rtol=1e-12)
    assert torch.allclose(state.q[0, 2], torch.tensor(-9.81 * 0.125, dtype=torch.float64), rtol=1e-10)
