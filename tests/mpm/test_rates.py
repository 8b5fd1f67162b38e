"""Laws with a rate against their closed forms, in the steps that are chosen by default.

Matter is moved by a given velocity gradient: it is too heavy for its stress to change that, and its step is what a
simulation of the same matter at its own density would choose.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from cases import to_numpy

import warpbots as wb
from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

pytestmark = pytest.mark.filterwarnings("ignore:.* that the grid of MPM")  # which matter as heavy does not feel

DX, RHO = 0.01, 1000.0
E, NU = 2e5, 1 / 3
MU = E / (2.0 * (1.0 + NU))
LAM = E * NU / ((1.0 + NU) * (1.0 - 2.0 * NU))
SHEAR = np.array([[0.0, 1.0], [0.0, 0.0]])
CARRIED = ("deformation", "plastic", "branch_deformation")
TOLERANCE = {"float64": 2e-4, "float32": 2e-3}[precision]


def scene(material: wb.Material) -> wb.Scene:
    body = wb.SoftBody("body", wb.shapes.Box((0.0, 0.0), (4 * DX, 4 * DX)), material)
    return wb.Scene([body], gravity=(0.0, 0.0), domain=((-0.05, -0.05), (0.1, 0.1)))


def moved(
    material: wb.Material, strain: Callable, time: float, least: int = 40
) -> tuple[float, np.ndarray, np.ndarray]:
    """Length of a step [s], and times [s] and Cauchy stresses [Pa], shape (n, 2, 2), after steps along a strain.

    Args:
        material: What is moved.
        strain: Displacement gradient at a time, shape (2, 2); its increments are the velocity gradients of the steps.
        time: How long [s].
        least: Steps at least.
    """
    auto = Simulation(scene(material), MPM(DX), 5e-3, None)
    h = auto.dt / auto.substeps
    sim = Simulation(scene(dataclasses.replace(material, density=1e15)), MPM(DX), h, 1)
    rest, carried, stresses = sim.state(), {}, []
    steps = max(round(time / h), least)
    I = np.eye(2)
    for n in range(steps):
        before, after = I + strain(n * h), I + strain((n + 1) * h)
        C = torch.as_tensor((after @ np.linalg.inv(before) - I) / h).to(rest.position)
        start = sim.state(velocity=rest.position @ C.T, velocity_gradient=C.expand(rest.deformation.shape), **carried)
        with torch.no_grad():
            end = sim.step(start, torch.zeros(0))
            stresses.append(to_numpy(sim.sense(end).stress)[0].mean(axis=0))
        carried = {name: getattr(end, name) for name in CARRIED}
    return h, h * np.arange(1, steps + 1), np.array(stresses)


def fluid(**fields: object) -> wb.Material:
    return wb.Material(E, NU, RHO, "weakly_compressible", **fields)


def maxwell(modulus: float, time: float) -> wb.Material:
    return fluid(branches=[wb.materials.MaxwellBranch(modulus, time)])


G = 4e4
TIMES = (1e-5, 1e-4, 2e-4, 1e-3, 2e-2)
"""From far below a step, 2e-4 s, to far above it [s]."""


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("T", TIMES)
def test_a_maxwell_branch_starts_to_flow(T):
    """At a steady rate its stress is G T rate (1 - exp(-t / T)) at every step."""
    rate = 1e-3 / min(T, 1e-3)
    _, t, stress = moved(maxwell(G, T), lambda t: rate * t * SHEAR, 0.0)
    expected = G * T * rate * (1.0 - np.exp(-t / T))
    np.testing.assert_allclose(stress[:, 0, 1], expected, rtol=TOLERANCE, atol=TOLERANCE * G * T * rate)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("T", TIMES)
def test_a_maxwell_branch_relaxes(T):
    """Held at a strain that one step has brought about, its stress falls by exp(-h / T) in each."""
    h, t, stress = moved(maxwell(G, T), lambda t: 1e-2 * float(t > 0.0) * SHEAR, 0.0)
    expected = stress[0, 0, 1] * np.exp(-(t - h) / T)
    assert stress[0, 0, 1] == pytest.approx(1e-2 * G * (T / h) * (1.0 - np.exp(-h / T)), rel=1e-3)
    np.testing.assert_allclose(stress[:, 0, 1], expected, rtol=TOLERANCE, atol=TOLERANCE * stress[0, 0, 1])


MU_BETA = 2e-4 * MU
LINEAR = {
    "fluid": (fluid(damping=2e-4), lambda w: 1j * w * MU_BETA),
    "solid": (wb.Material(E, NU, RHO, "neo_hookean", damping=1e-3), lambda w: MU * (1.0 + 1e-3j * w)),
    "maxwell": (maxwell(G, 1e-3), lambda w: G * 1e-3j * w / (1.0 + 1e-3j * w)),
    "prony": (
        wb.Material(
            E, NU, RHO, branches=[wb.materials.MaxwellBranch(G, 1e-2), wb.materials.MaxwellBranch(3 * G, 5e-4)]
        ),
        lambda w: MU + G * 1e-2j * w / (1.0 + 1e-2j * w) + 3 * G * 5e-4j * w / (1.0 + 5e-4j * w),
    ),
}
"""Linear matter: a material and its complex shear modulus G' + i G'' at an angular frequency [Pa]."""


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("matter", LINEAR)
def test_storage_and_loss_of_small_shear(matter):
    """At 200 rad/s stress has G' and G'' of the closed form within the phase of half a step."""
    material, modulus = LINEAR[matter]
    omega, size = 200.0, 1e-3
    h, t, stress = moved(material, lambda t: size * np.sin(omega * t) * SHEAR, 0.08)
    late = t > 0.08 - 2.0 * np.pi / omega
    waves = np.stack([np.sin(omega * t), np.cos(omega * t)], axis=1)[late]
    storage, loss = np.linalg.lstsq(waves, stress[late, 0, 1] / size, rcond=None)[0]
    expected = modulus(omega)
    print(f"{matter}: G' {storage:.5g} for {expected.real:.5g}, G'' {loss:.5g} for {expected.imag:.5g} Pa")
    assert abs(storage + 1j * loss - expected) < 0.55 * omega * h * abs(expected.imag) + 2e-3 * abs(expected)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("material", [LINEAR["fluid"][0], LINEAR["solid"][0]], ids=["fluid", "solid"])
def test_viscosity_at_a_steady_rate(material):
    """beta mu rate, beside the elastic stress of a solid, at strains of any size."""
    rate = 20.0
    _, t, stress = moved(material, lambda t: rate * t * SHEAR, 0.0)
    elastic = MU * rate * t if material.law == "neo_hookean" else 0.0
    np.testing.assert_allclose(stress[:, 0, 1], elastic + material.damping * MU * rate, rtol=TOLERANCE)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("rate", [1.0, 20.0])
def test_metal_that_hardens(rate):
    """Sheared steadily, sqrt(3) tau = sigma_y + H a with gamma = tau / mu + sqrt(3) a; held, its stress stays."""
    sigma, H, until = 1e3, 4e4, 0.02
    metal = wb.Material(E, NU, RHO, "hencky", plasticity=wb.materials.VonMises(sigma, H))
    _, t, stress = moved(metal, lambda t: min(rate * t, until) * SHEAR, 1.5 * until / rate)
    gamma = np.minimum(rate * t, until)
    beyond = (sigma + H * gamma / np.sqrt(3.0)) / (np.sqrt(3.0) + H / (np.sqrt(3.0) * MU))
    expected = np.where(MU * gamma < sigma / np.sqrt(3.0), MU * gamma, beyond)
    np.testing.assert_allclose(stress[:, 0, 1], expected, rtol=max(2e-3, TOLERANCE))


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("rate", [1.0, 20.0])
def test_sand_under_pressure(rate):
    """Compressed, then sheared at constant volume: |tau| rises to p sin(phi) and stays, at any rate."""
    phi, squash = 30.0, 0.01
    sand = wb.Material(E, NU, RHO, "hencky", plasticity=wb.materials.DruckerPrager(phi))

    def strain(t: float) -> np.ndarray:
        pressed = np.exp(-0.5 * min(rate * t, squash)) * np.eye(2)
        return (np.eye(2) + max(rate * t - squash, 0.0) * SHEAR) @ pressed - np.eye(2)

    _, t, stress = moved(sand, strain, 3.0 * squash / rate)
    p = (LAM + MU) * squash / np.exp(-squash)
    gamma = np.maximum(rate * t - squash, 0.0)
    expected = np.minimum(MU * gamma / np.exp(-squash), p * np.sin(np.radians(phi)))
    np.testing.assert_allclose(stress[:, 0, 1], expected, rtol=5e-3, atol=5e-3 * p)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("rate", [1.0, 100.0])
def test_snow_that_is_compacted(rate):
    """Compacted evenly, p = p_0 exp(-xi v) and ln J = v - p / K: the line of normal consolidation, at any rate."""
    p_0, xi, until = 1e3, 10.0, 0.1
    snow = wb.Material(E, NU, RHO, "hencky", plasticity=wb.materials.CamClay(p_0, hardening_coefficient=xi))
    _, t, stress = moved(snow, lambda t: (np.exp(-0.5 * min(rate * t, until)) - 1.0) * np.eye(2), until / rate, 1)
    log_J = -np.minimum(rate * t, until)
    K = LAM + MU
    v = np.zeros_like(log_J)
    for _ in range(50):
        v -= (v - p_0 * np.exp(-xi * v) / K - log_J) / (1.0 + xi * p_0 * np.exp(-xi * v) / K)
    expected = np.minimum(-K * log_J, p_0 * np.exp(-xi * v)) / np.exp(log_J)
    found = -0.5 * np.trace(stress, axis1=1, axis2=2)
    print(f"rate {rate:g}: {(found / expected)[-1]:.4f} of the pressure of the line")
    np.testing.assert_allclose(found, expected, rtol=5e-3)
