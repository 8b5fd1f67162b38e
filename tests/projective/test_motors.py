"""Motors between soft bodies: torque at standstill, start, speed without load, long steps, and what is conserved."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import to_numpy
from soft_bodies import CELL, SPEED, TORQUE, forces_at, machine

from warpbots.scene import Box, Motor, SceneError
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics


def simulated(scene, dt: float) -> Simulation:
    return Simulation(scene, ProjectiveDynamics(CELL, collisions=False), dt, substeps=1)


def about_axis(sim: Simulation, region: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of a region, their arms about the axis z through their centre [m], shape (n, 2), and masses [kg]."""
    matter = sim.model.matter
    side = np.flatnonzero(matter.regions[region])
    mass = (matter.density * matter.volume)[side]
    x = matter.position[side][:, :2]
    return side, x - mass @ x / mass.sum(), mass


def inertia(sim: Simulation, region: str) -> float:
    """Moment of inertia of a region about z through its centre [kg m^2]."""
    _, arm, mass = about_axis(sim, region)
    return float((mass[:, None] * arm**2).sum())


def angle(sim: Simulation, position: np.ndarray, region: str) -> float:
    """By how much a region has turned about z since rest [rad], by least squares."""
    side, X, mass = about_axis(sim, region)
    x = position[side][:, :2]
    A = (mass[:, None] * (x - mass @ x / mass.sum())).T @ X
    return float(np.arctan2(A[1, 0] - A[0, 1], A[0, 0] + A[1, 1]))


@pytest.mark.verification(float32=True)
def test_the_torque_at_standstill(rng):
    """Forces at u = 0.6 have no sum, and the torque 0.6 T_max about the axis on the rotor and less on the stator."""
    sim = simulated(machine(), 1e-3)
    force = forces_at(sim, sim.model.matter.position, 0.6)
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-5)
    for region, sign in (("rotor", 1.0), ("stator", -1.0)):
        side, arm, _ = about_axis(sim, region)
        torque = (arm[:, 0] * force[side, 1] - arm[:, 1] * force[side, 0]).sum()
        assert torque == pytest.approx(sign * 0.6 * TORQUE, rel=1e-4)


@pytest.mark.verification(float32=True)
def test_a_motor_speeds_up_as_its_formula_says():
    """Relative angle u w (t - tau (1 - exp(-t / tau))), tau = w / T / (1/I_0 + 1/I_1), to 3 %; both ways."""
    sim = simulated(machine(), 1e-3)
    tau = SPEED / TORQUE / (1.0 / inertia(sim, "stator") + 1.0 / inertia(sim, "rotor"))
    for u in (1.0, -0.5):
        x = to_numpy(sim.rollout(torch.full((40, 1), u), 40).final.position)[0]
        turned = angle(sim, x, "rotor") - angle(sim, x, "stator")
        t = 40e-3
        assert turned == pytest.approx(u * SPEED * (t - tau * (1.0 - np.exp(-t / tau))), rel=0.03)


@pytest.mark.verification(float32=True)
def test_a_motor_of_large_friction_takes_long_steps():
    """A step 20 times as long as tau ends at the speed without a load, to the sixth part that is not yet reached."""
    motor = Motor("motor", "axle", "rotor", "stator", TORQUE, 0.4)
    sim = simulated(machine(actuators=[motor]), 0.02)
    tau = 0.4 / TORQUE / (1.0 / inertia(sim, "stator") + 1.0 / inertia(sim, "rotor"))
    assert 20.0 * tau < 0.02
    before, speed = 0.0, []
    state = sim.state()
    for _ in range(4):
        state = sim.step(state, torch.ones(1))
        x = to_numpy(state.position)[0]
        now = angle(sim, x, "rotor") - angle(sim, x, "stator")
        speed.append((now - before) / 0.02)
        before = now
    assert speed[-1] == pytest.approx(0.4, rel=0.01)
    assert max(speed) < 0.41


@pytest.mark.verification
def test_momentum_is_kept():
    """Linear momentum, and angular momentum about the axis but for the step, of a machine that drifts and turns."""
    sim = simulated(machine(), 1e-3)
    start = sim.state()
    end = sim.rollout(
        torch.ones(20, 1), 20, sim.state(velocity=torch.tensor([1.0, 0.5, 0.2]) + 0.0 * start.velocity)
    ).final
    matter = sim.model.matter
    mass, v, x = matter.density * matter.volume, to_numpy(end.velocity)[0], to_numpy(end.position)[0]
    np.testing.assert_allclose(mass @ v / mass.sum(), (1.0, 0.5, 0.2), rtol=1e-6)
    r, v = (x - mass @ x / mass.sum())[:, :2], v - (1.0, 0.5, 0.2)
    spin = mass * (r[:, 0] * v[:, 1] - r[:, 1] * v[:, 0])
    rotor = matter.regions["rotor"]
    assert abs(spin[rotor].sum()) > 0.01 * TORQUE * 20e-3
    assert abs(spin.sum()) < 2e-2 * abs(spin[rotor].sum())


def test_a_side_on_the_axis_is_refused():
    scene = machine()
    edge = Box((-0.041, -0.101, 0.0), (-0.039, -0.099, 0.04))
    rotor = dataclasses.replace(scene.bodies[1], regions={"rotor": edge})
    scene = dataclasses.replace(scene, bodies=(scene.bodies[0], rotor))
    with pytest.raises(SceneError, match="Motor 'motor': the nodes of region 'rotor' lie on a line along its axis"):
        ProjectiveDynamics(CELL).build(scene)
