"""Kelvin-Voigt damping of particles."""

import numpy as np
import pytest
import torch
from bars import DX, LENGTH, RHO, E, bar
from cases import block, to_numpy

from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers import MPM


def decay(damping: float) -> tuple[float, float]:
    """Angular frequency [rad/s] and damping ratio [1] of the first mode of a bar, from the extremes of its motion."""
    sim = Simulation(bar(2, damping), MPM(DX), 5e-3, 8)
    rest = sim.state()
    x, k = rest.position[..., 0], torch.pi / 2 / LENGTH
    mode, slope = torch.sin(k * x.clamp(min=0.0)), torch.where(x > 0.0, k * torch.cos(k * x), 0.0)
    axis = torch.eye(2)[0].to(x)
    start = sim.state(
        velocity=0.01 * mode[..., None] * axis,
        velocity_gradient=0.01 * slope[..., None, None] * axis[:, None] * axis,
    )
    period = 4.0 * LENGTH / np.sqrt(E / RHO)
    with torch.no_grad():
        swing = sim.rollout(
            None, int(2.6 * period / 5e-3), start, observe=lambda s: ((s.position[..., 0] - x) * mode).mean(1)
        )
    u = to_numpy(swing.observation)[0]
    i = 1 + np.flatnonzero(np.diff(u)[1:] * np.diff(u)[:-1] < 0.0)
    bend, lean = u[i + 1] + u[i - 1] - 2.0 * u[i], u[i + 1] - u[i - 1]
    size, time = np.abs(u[i] - lean**2 / (8.0 * bend)), i - lean / (2.0 * bend)  # of a parabola through three points
    decrement = 2.0 * np.log(size[0] / size[-1]) / (len(i) - 1)
    omega = np.pi * (len(i) - 1) / (time[-1] - time[0]) / 5e-3
    return omega, decrement / np.hypot(2.0 * np.pi, decrement)


@pytest.mark.parametrize("zeta", [0.02, 0.1])
def test_a_vibrating_bar_decays(zeta):
    """Damping adds beta omega / 2 to the damping ratio (that of MLS-MPM itself is 0.018 with eight cells)."""
    omega, own = decay(0.0)
    assert omega == pytest.approx(np.pi / 2 * np.sqrt(E / RHO) / LENGTH, rel=0.03)
    beta = 2.0 * zeta / omega
    _, found = decay(beta)
    print(f"{found - own:.5f} for {zeta}, {own:.5f} without")
    assert found - own == pytest.approx(zeta, rel=0.01)


def test_damping_neither_pushes_nor_turns():
    """Momentum and angular momentum of a body that swings and spins freely stay what they are."""
    sim = Simulation(block(2, gravity=(0.0, 0.0), damping=0.02), MPM(1 / 12), 5e-3, 5)
    x = sim.state().position - 0.375
    spin = torch.tensor([[2.0, -5.0], [5.0, 1.0]]).to(x)
    start = sim.state(velocity=x @ spin.T + torch.tensor([0.3, 0.1]).to(x), velocity_gradient=spin)
    with torch.no_grad():
        before, after = sim.sense(start), sim.sense(sim.rollout(None, 40, start).final)
    tolerance = {"float32": 1e-4, "float64": 1e-12}[precision]
    torch.testing.assert_close(after.momentum, before.momentum, rtol=tolerance, atol=0.0)
    torch.testing.assert_close(after.angular_momentum, before.angular_momentum, rtol=tolerance, atol=0.0)
    assert (after.kinetic_energy + after.elastic_energy < 0.99 * before.kinetic_energy).all()
