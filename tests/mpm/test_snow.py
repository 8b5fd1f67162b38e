"""Snow under MPM: a column that settles under its weight, and a clod that is crushed."""

import numpy as np
import pytest
import torch
from cases import lame, to_numpy

import warpbots as wb
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

RHO, G, E, NU = 400.0, 9.81, 2e5, 0.25
SNOW = wb.materials.CamClay(preconsolidation_pressure=600.0, stress_ratio=1.2, cohesion=0.3, hardening_coefficient=6.0)


def invariants(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and q of Hencky's law in a plane [Pa]."""
    mu, lam = lame(E, NU)
    stretch = np.log(np.linalg.svd(F, compute_uv=False))
    mean = stretch.mean(axis=-1)
    return -(2.0 * lam + 2.0 * mu) * mean, np.sqrt(6.0) * mu * np.linalg.norm(stretch - mean[:, None], axis=-1)


def test_a_column_settles_until_it_carries_its_weight():
    """Between slippery walls the vertical stress is the weight above; where that compacts snow, it is on the ellipse.

    Gravity grows slowly: snow that is dropped is compacted by more than its weight.
    """
    width, depth, dx = 0.1, 0.5, 0.025
    material = wb.Material(E, NU, RHO, law="hencky", damping=2e-3, plasticity=SNOW)
    body = wb.SoftBody("snow", wb.shapes.Box((0.0, 0.0), (width, depth)), material)
    scene = wb.Scene([body], obstacles=wb.walls((0.0, 0.0), (width, 1.0)), domain=((0.0, 0.0), (width, 0.7)))
    sim = Simulation(scene, MPM(dx), 0.02, None)
    final = sim.state()
    with torch.no_grad():
        for part in np.minimum(np.linspace(0.05, 1.25, 25), 1.0):
            final = sim.rollout(None, 4, final, gravity=(0.0, -part * G)).final
        vertical = -to_numpy(sim.sense(final).stress)[0, :, 1, 1]
    v, y = to_numpy(final.plastic)[0], to_numpy(final.position)[0, :, 1]
    F = to_numpy(final.deformation)[0]
    assert final.velocity.abs().max() < 0.01
    rest = to_numpy(sim.state().position)[0, :, 1]
    inside = (rest > 2 * dx) & (rest < depth - 2 * dx)
    weight = np.polyfit((depth - rest)[inside], vertical[inside], 1)
    print(
        f"{weight[0] / (RHO * G):.4f} of rho g, {weight[1]:.1f} Pa at the surface, settled {rest.max() - y.max():.4f} m"
    )
    assert weight[0] == pytest.approx(RHO * G, rel=0.03)
    deep, shallow = (rest > dx) & (rest < 0.2), rest > 0.45
    assert (v[deep] < -0.01).all()
    assert np.abs(v[shallow]).max() < 1e-6
    (p, q), p_c = invariants(F[deep]), SNOW.preconsolidation_pressure * np.exp(-SNOW.hardening_coefficient * v[deep])
    on = ((q / SNOW.stress_ratio) ** 2 + (p + SNOW.cohesion * p_c) * (p - p_c)) / p_c**2
    assert on.max() < 1e-3
    assert np.median(on) > -0.05


@pytest.mark.parametrize("strength", [200.0, 2e5])
def test_a_clod_that_falls_is_crushed_if_it_is_weak(strength):
    """A ball of weak snow stays where it falls, compacted; a strong one bounces, and its strength has no gradient."""
    snow = wb.Material(E, NU, RHO, law="hencky", plasticity=wb.materials.CamClay(strength))
    ball = wb.SoftBody("ball", wb.shapes.Sphere((0.3, 0.13), 0.1), snow, velocity=(0.0, -3.0))
    scene = wb.Scene([ball], obstacles=[wb.floor(dim=2)], domain=((0.0, -0.1), (0.6, 0.4)))
    sim = Simulation(scene, MPM(0.02), 5e-3, None)
    pressure = torch.tensor(strength, requires_grad=True)
    final = sim.rollout(None, 20, preconsolidation_pressure=pressure).final
    height = final.position[..., 1].mean()
    (slope,) = torch.autograd.grad(height, pressure)
    height, v = height.detach(), final.plastic.detach()
    print(f"{float(height):.4f} m, {float(slope):.2e} m/Pa, v up to {float(v.max()):.2f}")
    if strength < 1e3:
        assert height < 0.09
        assert v.min() < -0.1
        assert slope > 1e-6
    else:
        assert height > 0.2
        assert not v.any()
        assert slope == 0.0
