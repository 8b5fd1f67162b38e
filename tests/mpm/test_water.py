"""Weakly compressible fluid under MPM: hydrostatics, levelling out, and gradients."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import assert_gradients, block, busy, to_numpy

import warpbots as wb
from warpbots.scene import Box, walls
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring, ProjectiveDynamics

RHO, G, WIDTH, DX = 1000.0, 9.81, 0.2, 0.02
BULK = 2e5


def tank(width: float, height: float, damping: float) -> Simulation:
    """Water in the left part of a tank with slippery walls; the speed of sound is 14 m/s."""
    water = wb.Material(BULK, 1 / 3, RHO, "weakly_compressible", damping=damping)
    body = wb.SoftBody("water", Box((0.0, 0.0), (width, height)), water)
    sides = walls((0.0, 0.0), (WIDTH, 1.0))
    scene = wb.Scene([body], obstacles=sides, domain=((0.0, 0.0), (WIDTH, 0.6)))
    return Simulation(scene, MPM(DX), 0.02, None)


def test_the_pressure_of_water_at_rest_is_rho_g_h():
    """Floor and walls carry rho g H W and rho g H^2/2 to 0.5 and 1.5 %, and pressure grows with the depth by rho g
    within 3 %, a line through all particles but those nearest to floor and surface; ten cells deep.
    """
    depth = 0.2
    sim = tank(WIDTH, depth, damping=1e-3)
    with torch.no_grad():
        final = sim.rollout(None, 60).final
        forces = to_numpy(sim.sense(final).contact_force)[0]
    assert final.velocity.norm(dim=-1).mean() < 2e-3
    left, right, floor, _ = forces
    assert floor[1] == pytest.approx(-RHO * G * depth * WIDTH, rel=5e-3)
    for side, sign in ((left, -1.0), (right, 1.0)):
        assert sign * side[0] == pytest.approx(RHO * G * depth**2 / 2.0, rel=0.015)
    y = to_numpy(final.position)[0, :, 1]
    J = np.linalg.det(to_numpy(final.deformation)[0])
    pressure = BULK / 7.0 * (J**-7 - 1.0)
    inside = (y > DX) & (y < depth - 2.0 * DX)
    slope, at_the_floor = np.polyfit(y[inside], pressure[inside], 1)
    print(f"{-slope / (RHO * G):.4f}, {at_the_floor / (RHO * G * depth):.4f}, forces {forces.round(1).tolist()} N")
    assert -slope == pytest.approx(RHO * G, rel=0.03)
    assert at_the_floor == pytest.approx(RHO * G * depth, rel=0.03)


def test_water_does_not_pile_up():
    """A column of half the width of its tank is level after 2 s: both halves of the tank hold half of it, within 5 %."""
    sim = tank(WIDTH / 2, 0.3, damping=1e-4)
    with torch.no_grad():
        final = sim.rollout(None, 100).final
    x = to_numpy(final.position)[0]
    assert np.mean(x[:, 0] < WIDTH / 2) == pytest.approx(0.5, abs=0.025)
    assert np.quantile(x[:, 1], 0.99) < 0.2
    F = to_numpy(final.deformation)[0]
    np.testing.assert_array_equal(F, F[:, :1, :1] * np.eye(2))


@pytest.mark.verification
@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_are_those_of_differences(dim):
    """By everything, with actuators, a floor and a wall."""
    assert_gradients(Simulation(busy(dim, "weakly_compressible"), MPM(1 / 8), 4e-3, 2), np.random.default_rng(1))


@pytest.mark.parametrize("solver", [MassSpring(1 / 8), ProjectiveDynamics(1 / 8)], ids=lambda s: type(s).__name__)
def test_other_solvers_refuse_it(solver):
    scene = block(3, youngs_modulus=1e4)
    (body,) = scene.bodies
    water = wb.Material(1e4, 0.25, law="weakly_compressible")
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(body, material=water)])
    with pytest.raises(wb.SceneError, match=f"'block': {type(solver).__name__} has no fluids, such as .* or use MPM"):
        Simulation(scene, solver, 1e-3)
