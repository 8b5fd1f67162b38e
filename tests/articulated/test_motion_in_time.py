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


def test_a_free_body_keeps_its_momenta():
    """No gravity: the linear momentum to rounding, the angular one within the order, and the spin of a ball exactly."""
    moments = (0.1, 0.17, 0.25)
    body = RigidBody("stone", None, inertia=Inertia(2.0, (0.1, 0.0, -0.05), moments))
    joint = Joint("stone", "free", None, "stone", start_velocity=(0.3, -0.2, 0.5, 2.0, -1.0, 3.0))
    scene = Scene((body,), joints=(joint,), gravity=(0, 0, 0))

    def momenta(sim, state):
        r = sim.sense(state)
        R, w = r.rotation[0, 0].numpy(), r.angular_velocity[0, 0].numpy()
        c = r.center[0, 0].numpy()
        v = r.velocity[0, 0].numpy() + np.cross(w, c - r.position[0, 0].numpy())
        return 2.0 * v, 2.0 * np.cross(c, v) + R @ np.diag(moments) @ R.T @ w

    drifts = []
    for steps in (200, 400):
        sim, state = run("sdirk2", 1.0 / steps, steps, scene)
        (p, L), (p_end, L_end) = momenta(sim, sim.state()), momenta(sim, state)
        drifts.append((np.abs(p_end - p).max(), np.abs(L_end - L).max()))
    assert drifts[1][1] < 2e-3
    assert np.log2(drifts[0][1] / drifts[1][1]) > 1.8
    assert np.log2(drifts[0][0] / max(drifts[1][0], 1e-13)) > 1.8 or drifts[1][0] < 1e-12


def test_free_fall_is_exact_for_a_scheme_of_second_order():
    body = RigidBody("ball", None, inertia=Inertia(1.0, (0, 0, 0), (1, 1, 1)))
    sim, state = run("sdirk2", 0.01, 50, Scene((body,)))
    assert torch.allclose(state.qd[0, 2], torch.tensor(-9.81 * 0.5, dtype=torch.float64), rtol=1e-12)
    assert torch.allclose(state.q[0, 2], torch.tensor(-9.81 * 0.125, dtype=torch.float64), rtol=1e-10)
