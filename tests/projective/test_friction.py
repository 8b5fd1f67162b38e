"""Dry friction: Coulomb's law at every contact, for any time step.

Gravity is tilted rather than the floor. Every (mu, angle) is a world of one simulation.
"""

import numpy as np
import pytest
import torch
from soft_bodies import contact_forces, iterations

from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, Material, Obstacle, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

pytestmark = pytest.mark.verification(float32=True)

G = 9.81
SIDES = (0.2, 0.2, 0.1)
WEIGHT = 1000.0 * np.prod(SIDES) * G


def block(worlds: int, dt: float, youngs_modulus: float = 1e6, nu: float = 0.0) -> Simulation:
    body = SoftBody("block", Box((0, 0, 0), SIDES), Material(youngs_modulus, nu, 1000.0, "corotated"))
    return Simulation(Scene((body,), obstacles=(floor(friction=0.5),)), ProjectiveDynamics(0.1), dt, worlds=worlds)


def tilted(angle: torch.Tensor) -> torch.Tensor:
    """Gravity on an incline of this angle, shape (worlds, 3)."""
    return G * torch.stack([torch.sin(angle), torch.zeros_like(angle), -torch.cos(angle)], dim=-1)


@pytest.mark.parametrize("dt", [1 / 240, 1 / 30])
def test_a_block_sticks_below_the_angle_of_friction_and_slides_above_it(dt):
    """Half a degree below atan(mu) it stays, half a degree above it slides with g (sin - mu cos)."""
    mu = torch.tensor([0.1, 0.3, 0.5, 0.8, 1.1]).repeat_interleave(2)
    offset = torch.tensor([-0.5, 0.5]).repeat(5)
    angle = torch.atan(mu) + torch.deg2rad(offset)
    sim = block(len(mu), dt)
    state, time = sim.state(), 0.0
    rise = round(0.4 / dt)  # applied at once, gravity would make the block ring
    for k in range(rise + round(0.6 / dt)):
        gravity = tilted(angle) * min(1.0, (k + 1) / rise)
        state = sim.step(state, torch.zeros(0), gravity=gravity, friction=mu[:, None])
        if k == rise:
            begun, time = state.velocity[..., 0].mean(dim=1), 0.0
        time += dt
    gained = state.velocity[..., 0].mean(dim=1) - begun
    expected = G * (torch.sin(angle) - mu * torch.cos(angle)) * (time - dt)
    stays = offset < 0
    rounding = sim.solver.tolerance * sim.model.matter.edge / dt
    assert state.velocity[stays].abs().max() < 1e-6 + 3 * rounding
    torch.testing.assert_close(gained[~stays], expected[~stays], rtol=0.01, atol=0.0, check_dtype=False)


def test_the_edge_of_the_cone_is_sharp():
    """On a slope of exactly mu nothing holds a block that moves: it keeps the speed that a change of loads gave it. It
    gains g (sin - mu cos) a second, with mu resolved to 2e-7 in single and 1e-10 in double precision.
    """
    dt, angle = 1 / 60, torch.atan(torch.tensor(0.5, dtype=torch.float64))
    mu = 0.5 + torch.tensor([-1e-4, 0.0, 1e-5], dtype=torch.float64)
    sim = block(len(mu), dt)
    state, gravity = sim.state(), tilted(angle[None])
    for _ in range(60):  # held by more friction
        state = sim.step(state, torch.zeros(0), gravity=gravity, friction=0.8)
    for k in range(120):
        state = sim.step(state, torch.zeros(0), gravity=gravity, friction=mu[:, None])
        if k == 60:
            begun = state.velocity[..., 0].double().mean(dim=1)
    end = state.velocity[..., 0].double().mean(dim=1)
    assert (begun > 1e-4).all()
    resolved = 0.5 - (end - begun) / (59 * dt * G * torch.cos(angle))
    torch.testing.assert_close(resolved, mu, rtol=0, atol={"float32": 2e-7, "float64": 1e-10}[precision])


def test_it_stops_after_the_distance_of_coulomb():
    """v^2 / (2 mu g) within 1 %, at four coefficients."""
    mu, dt, speed = torch.tensor([0.2, 0.4, 0.6, 0.8]), 1 / 1000, 1.5  # implicit Euler gives away v dt / 2
    sim = block(len(mu), dt)
    state = sim.state()
    gone = state.position[..., 0].mean(dim=1)
    for _ in range(round(0.3 / dt)):  # it settles first
        state = sim.step(state, torch.zeros(0), friction=mu[:, None])
    state.velocity[..., 0] += speed
    start = state.position[..., 0].mean(dim=1)
    assert (start - gone).abs().max() < 1e-4
    for _ in range(round(1.1 * speed / (0.2 * G) / dt)):
        state = sim.step(state, torch.zeros(0), friction=mu[:, None])
    assert state.velocity.abs().max() < 1e-3
    distance = state.position[..., 0].mean(dim=1) - start
    torch.testing.assert_close(distance, speed**2 / (2 * mu * G), rtol=0.01, atol=0.0, check_dtype=False)


@pytest.mark.parametrize("dt", [1 / 240, 1 / 30])
def test_every_contact_obeys_the_law(dt):
    """Nothing goes in, what is pressed does not part, the cone holds, and what slides is held back along its way."""
    sim = block(1, dt, 1e5, 0.3)
    state, slid, stuck = sim.state(), 0, 0
    eps = {"float32": 2e-5, "float64": 1e-7}[precision]
    gravity = tilted(torch.atan(torch.tensor([0.45])))
    state.velocity[..., 0] = 0.1
    node = sim.model.topology.candidates
    for _ in range(round(0.5 / dt)):
        before = state.position[0, node]
        state = sim.step(state, torch.zeros(0), gravity=gravity)
        after, force = state.position[0, node].cpu().numpy(), contact_forces(sim)
        moved = after - before.cpu().numpy()
        edge, largest = sim.model.matter.edge, force[:, 2].max()
        normal, shear = force[:, 2], np.linalg.norm(force[:, :2], axis=1)
        assert after[:, 2].min() > -eps * edge
        assert (np.abs(after[normal > 0.0, 2]) < eps * edge).all()
        assert (shear <= 0.5 * normal * (1 + eps) + eps * largest).all()
        slides = (normal > 1e-3 * largest) & (np.linalg.norm(moved[:, :2], axis=1) > 20 * eps * edge)
        along = np.einsum("ci,ci->c", force[slides, :2], moved[slides, :2])
        np.testing.assert_allclose(shear[slides], 0.5 * normal[slides], rtol=100 * eps)
        np.testing.assert_allclose(
            along, -shear[slides] * np.linalg.norm(moved[slides, :2], axis=1), rtol=1000 * eps, atol=1e-12
        )
        sticks = (normal > 1e-3 * largest) & (shear < 0.49 * normal)
        assert (np.linalg.norm(moved[sticks, :2], axis=1) < 10 * eps * edge).all()
        slid, stuck = slid + slides.sum(), stuck + sticks.sum()
    assert slid > 30
    assert stuck > 20


def test_forces_balance_the_weight():
    sim = block(1, 1 / 60)
    state = sim.state()
    for _ in range(60):
        state = sim.step(state, torch.zeros(0))
    report = sim.report()
    assert report.contacts[0] == (np.abs(contact_forces(sim)).sum(axis=1) > 0.0).sum()
    np.testing.assert_allclose(report.contact_force[0].sum(axis=0), [0.0, 0.0, WEIGHT], atol=1e-4 * WEIGHT)
    assert not report.contact_force[0, sim.model.matter.position[:, 2] > 1e-6].any()


@pytest.mark.parametrize("condition", ["slip", "separate", "friction"])
def test_a_block_comes_to_rest_in_a_corner(condition):
    """It slides on the floor into a wall and is pressed into the corner: a node there has two contacts that could
    share its force in many ways. Every step converges, and forces balance gravity.
    """
    wall = Obstacle(HalfSpace((0.21, 0, 0), (-1, 0, 0)), condition, 0.3, name="wall")
    body = SoftBody("block", Box((0, 0, 0), SIDES), Material(1e5, 0.3, 1000.0, "corotated"), velocity=(1.0, 0.0, 0.0))
    gravity = (0.8 * G, 0.0, -G)
    scene = Scene((body,), (), (floor(friction=0.3), wall), gravity)
    sim = Simulation(scene, ProjectiveDynamics(0.05, tolerance={"float32": 1e-5, "float64": 1e-9}[precision]), 1 / 60)
    state, most = sim.state(), 0
    for _ in range(90):
        state = sim.step(state, torch.zeros(0))
        most = max(most, iterations(sim))
    assert most < 150
    force = contact_forces(sim).reshape(-1, 2, 3)
    np.testing.assert_allclose(force.sum(axis=(0, 1)), [-0.8 * WEIGHT, 0.0, WEIGHT], atol=1e-3 * WEIGHT)
    edge = sim.model.matter.edge
    assert state.position[..., 0].max() < 0.21 + 0.01 * edge
    assert state.position[..., 2].min() > -0.01 * edge
    shear, normal = np.linalg.norm(force[:, 0, :2], axis=1), force[:, 0, 2]
    assert (shear <= 0.3 * normal * (1.0 + 1e-4) + 1e-5 * normal.max()).all()
