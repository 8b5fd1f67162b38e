"""A signal acts in full within its interval: impulses of motors that jump, in closed forms."""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.solvers.articulated.implicit_integrators import INTEGRATORS

MASS, FORCE, DT = 3.0, 5.0, 0.03
PUSHED = DT * FORCE / MASS
"""Change of the speed in an interval with u = 1 [m/s]."""


def cart(integrator: str, substeps: int, worlds: int = 1, damping: float = 0.0) -> wb.Simulation:
    """A cart without weight, which a motor pushes along y."""
    body = wb.RigidBody("cart", None, inertia=wb.Inertia(MASS, (0, 0, 0), (1, 1, 1)))
    rail = wb.Joint("rail", "prismatic", None, "cart", axis=(0, 1, 0), damping=damping)
    scene = wb.Scene([body], [wb.actuators.Torque("push", "rail", FORCE)], joints=[rail], gravity=(0, 0, 0))
    return wb.Simulation(scene, wb.Articulated(integrator), dt=DT, substeps=substeps, worlds=worlds)


@pytest.mark.parametrize("substeps", [1, 2, 3, 8])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_every_interval_gives_its_impulse_and_has_its_gradient(integrator, substeps):
    """v = sum u h F / m after every interval, for signals that jump; a formula of two steps gives 1.5 and 0.67 of it."""
    sim = cart(integrator, substeps)
    u = torch.tensor([1.0, 0.0, -0.7, 0.9, 0.9, -1.0, 0.3], dtype=torch.float64)[:, None].requires_grad_()
    speed = sim.rollout(u, len(u), observe=lambda s: s.qd[:, 0]).observation[0]
    torch.testing.assert_close(speed.detach(), PUSHED * u.detach().cumsum(0)[:, 0], rtol=1e-12, atol=1e-14)
    for k in (0, 3, 6):
        (gradient,) = torch.autograd.grad(speed[k], u, retain_graph=True)
        expected = PUSHED * (torch.arange(len(u)) <= k).double()[:, None]
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_impulse_is_the_same_after_a_reset_and_in_worlds_of_another_age(integrator):
    sim = cart(integrator, 2, worlds=3)
    u = torch.tensor([[0.4], [-0.8], [1.0]], dtype=torch.float64)
    state = sim.step(sim.step(sim.state(), u), -u)
    state = sim.reset(state, [1])
    after = sim.step(state, u)
    torch.testing.assert_close(after.qd - state.qd, PUSHED * u, rtol=1e-12, atol=1e-14)
    moved = sim.step(sim.state(), u).q[1] - sim.state().q[1]
    torch.testing.assert_close(after.q[1] - state.q[1], moved, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_servo_whose_target_jumps_takes_the_same_way_whenever_it_jumps(integrator):
    link = wb.RigidBody("link", None, inertia=wb.Inertia(1.5, (0.2, 0, 0), (0.01, 0.02, 0.025)))
    hinge = wb.Joint("hinge", "revolute", None, "link", damping=0.1)
    servo = wb.actuators.Servo("servo", "hinge", 4.0, 0.2, target=0.0, reach=0.8)
    scene = wb.Scene([link], [servo], joints=[hinge], gravity=(0, 0, 0))
    sim = wb.Simulation(scene, wb.Articulated(integrator), dt=0.02, substeps=2)
    angles = []
    for late in (0, 1, 4):
        u = torch.zeros(late + 6, 1, dtype=torch.float64)
        u[late : late + 2] = 1.0
        angles.append(sim.rollout(u, len(u), observe=lambda s: s.q[:, 0]).observation[0, late:].numpy())
    assert angles[0][-1] > 0.01
    np.testing.assert_allclose(angles[1:], [angles[0]] * 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_impulse_is_exact_in_a_mechanism_of_several_bodies(integrator):
    """Two masses that a motor pushes apart along a rail: their centre stays, and their relative speed is h F / m_r."""
    bodies = [wb.RigidBody(n, None, inertia=wb.Inertia(m, (0, 0, 0), (1, 1, 1))) for n, m in (("a", 2.0), ("b", 3.0))]
    joints = [
        wb.Joint("rail", "prismatic", None, "a", axis=(1, 0, 0)),
        wb.Joint("gap", "prismatic", "a", "b", axis=(1, 0, 0)),
    ]
    scene = wb.Scene(bodies, [wb.actuators.Torque("apart", "gap", FORCE)], joints=joints, gravity=(0, 0, 0))
    sim = wb.Simulation(scene, wb.Articulated(integrator), dt=DT)
    a, gap = sim.rollout(torch.ones(1, 1), 1).final.qd[0].tolist()
    assert gap == pytest.approx(DT * FORCE * (1 / 2.0 + 1 / 3.0), rel=1e-12)
    assert 2.0 * a + 3.0 * (a + gap) == pytest.approx(0.0, abs=1e-13)


def test_a_formula_of_two_steps_is_no_longer_offered():
    with pytest.raises(ValueError, match="'bdf2' is no longer offered.*use 'sdirk2'"):
        wb.Articulated("bdf2")
