"""Bars: Hooke's law, a pendulum, and joints in contact."""

import math

import numpy as np
import pytest
import torch
from soft_bodies import BARS, JOINTS, contact_forces, forces_at

from warpbots.scene import Constraint, HalfSpace, Material, Posed, Scene, SoftBody, Sphere, Truss, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

G = 9.81


def hung(joints: list, bars: list, radius: float, material: Material, dt: float, **options) -> Simulation:
    """A truss that is held at all joints with z = 0."""
    shape = Truss(np.array(joints, dtype=float), bars, radius)
    body = SoftBody("truss", shape, material, regions={"top": HalfSpace((0, 0, -1e-6), (0, 0, -1))})
    return Simulation(Scene((body,), constraints=(Constraint("top"),)), ProjectiveDynamics(0.1, **options), dt)


@pytest.mark.verification
def test_a_bar_that_carries_a_weight_is_longer():
    """By F L / (E A), exactly: half of its own mass hangs at its end."""
    E, rho, L, r, F = 1e5, 1000.0, 0.5, 0.01, 2.0
    sim = hung([[0, 0, 0], [0, 0, -L]], [[0, 1]], r, Material(E, 0.3, rho), 10.0, tolerance=1e-13)
    load = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, -F]]])
    state = sim.state()
    for _ in range(6):
        state = sim.step(state, torch.zeros(0), load=load)
    A = math.pi * r**2
    longer = -float(state.position[0, 1, 2]) - L
    assert longer == pytest.approx((F + 0.5 * rho * A * L * G) * L / (E * A), rel=1e-9)


@pytest.mark.verification
def test_two_bars_share_a_load():
    """delta = F l / (2 E A cos^2 alpha) for two bars of length l at the angle alpha from the vertical; F l / (E A) small."""
    E, r, alpha, F = 1e6, 0.01, 0.7, 1e-3
    l = 0.5
    across, down = l * math.sin(alpha), l * math.cos(alpha)
    joints = [[-across, 0, 0], [across, 0, 0], [0, 0, -down]]
    sim = hung(joints, [[0, 2], [1, 2]], r, Material(E, 0.3, 1e-3), 10.0, tolerance=1e-13)
    load = torch.zeros(1, 3, 3)
    load[0, 2, 2] = -F
    state = sim.state()
    for _ in range(6):
        state = sim.step(state, torch.zeros(0), load=load, gravity=torch.zeros(3))
    delta = -down - float(state.position[0, 2, 2])
    assert delta == pytest.approx(F * l / (2.0 * E * math.pi * r**2 * math.cos(alpha) ** 2), rel=1e-5)


@pytest.mark.verification(float32=True)
def test_a_bar_swings_as_a_pendulum():
    """T = 2 pi sqrt(L / g) (1 + amplitude^2 / 16), and h / atan(w h) instead of 1 / w for steps h of implicit Euler.

    That is longer by (w h)^2 / 3; the tolerance is a third of it.
    """
    L, amplitude, dt = 0.5, 0.1, 0.02
    w = math.sqrt(G / L)
    sim = hung([[0, 0, 0], [0, 0, -L]], [[0, 1]], 0.01, Material(1e8, 0.3, 1000.0), dt)
    start = sim.model.matter.position.copy()
    start[1] = [L * math.sin(amplitude), 0.0, -L * math.cos(amplitude)]
    like = sim.state().position
    state, x = sim.state(position=torch.as_tensor(start[None]).to(like)), []
    for _ in range(round(1.2 * 2 * math.pi / w / dt)):
        state = sim.step(state, torch.zeros(0))
        x.append(float(state.position[0, 1, 0]))
    x = np.array(x)
    k = np.flatnonzero(x[:-1] * x[1:] < 0.0)
    down, up = k + x[k] / (x[k] - x[k + 1])
    period = 2.0 * (up - down) * dt
    damped = 1.0 / math.sqrt(1.0 + (w * dt) ** 2)  # of the amplitude, step by step
    mean = amplitude**2 * damped ** (2 * (up + down) / 2)
    expected = 2.0 * math.pi * dt / math.atan(w * dt) * (1.0 + mean / 16.0)
    assert period == pytest.approx(expected, rel=(w * dt) ** 2 / 9.0)
    assert abs(period - 2.0 * math.pi / w) > 0.6 * (w * dt) ** 2 / 3.0 * period
    assert np.linalg.norm(state.position[0, 1].numpy()) == pytest.approx(L, rel=1e-4)


def test_a_bar_crushed_to_a_point_has_no_direction():
    """Neither not a number, nor a force: the mean over all directions; its gradient is finite."""
    sim = hung([[0, 0, 0], [0, 0, -0.5]], [[0, 1]], 0.01, Material(1e5), 0.01)
    position = torch.zeros_like(sim.state().position).requires_grad_()
    end = sim.step(sim.state(position=position), torch.zeros(0))
    end.position.square().sum().backward()
    assert torch.isfinite(end.position).all()
    assert torch.isfinite(position.grad).all()
    weight = 1000.0 * math.pi * 1e-4 * 0.25 * G
    np.testing.assert_allclose(forces_at(sim, np.zeros((2, 3))), [[0, 0, 0], [0, 0, -weight]], rtol=1e-5, atol=1e-9)


def test_sections_masses_and_regions():
    """As the springs of MassSpring: mass rho A L, half of it at each end; a posed truss is one, too."""
    shape = Posed(Truss(JOINTS, BARS, 4e-3), (1.0, 0.0, 0.0), ((0, -1, 0), (1, 0, 0), (0, 0, 1)))
    body = SoftBody("mast", shape, Material(1e6, 0.3, 500.0), {"foot": Sphere((1.0, 0.0, 0.0), 0.01)})
    sim = Simulation(Scene((body,)), ProjectiveDynamics(0.1), 0.01)
    mesh = sim.model.matter
    length = np.linalg.norm(JOINTS[BARS[:, 1]] - JOINTS[BARS[:, 0]], axis=1)
    mass = 500.0 * math.pi * 16e-6 * length
    expected = np.bincount(BARS.reshape(-1), np.repeat(mass / 2.0, 2))
    np.testing.assert_allclose(mesh.volume * mesh.density, expected)
    assert mesh.regions["foot"].tolist() == [True] + [False] * 6
    assert mesh.edge == pytest.approx(length.mean())
    assert mesh.meshes[0].faces.shape == (0, 3)
    assert sim.parameter("section").shape == (1, 12)
    assert not {"thickness", "bending"} & set(sim.parameters())


@pytest.mark.verification(float32=True)
def test_joints_rest_on_the_floor():
    """A pyramid of bars: no joint goes in, and the floor carries its weight, to 3e-4."""
    joints = 0.2 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.5, 0.8]])
    bars = [[0, 1], [1, 3], [3, 2], [2, 0], [0, 3], [0, 4], [1, 4], [2, 4], [3, 4]]
    body = SoftBody("pyramid", Truss(joints + [0, 0, 0.01], bars, 0.01), Material(1e6, 0.3, 1000.0))
    sim = Simulation(Scene((body,), (), (floor(friction=0.5),)), ProjectiveDynamics(0.1), 0.01)
    state = sim.state()
    for _ in range(60):
        state = sim.step(state, torch.zeros(0))
    length = np.linalg.norm(np.diff(joints[np.array(bars)], axis=1)[:, 0], axis=1)
    weight = 1000.0 * math.pi * 1e-4 * length.sum() * G
    assert float(state.position[..., 2].min()) > -1e-6
    np.testing.assert_allclose(contact_forces(sim).sum(axis=0), [0.0, 0.0, weight], atol=3e-4 * weight)
