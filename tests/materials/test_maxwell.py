"""Maxwell branches, at points: stress and energy, relaxation, frames, the loss in a cycle, and gradients."""

import functools

import law_points
import numpy as np
import pytest
import scipy.linalg
import warp as wp
from law_points import deformations, everywhere, rotations

from warpbots.materials import maxwell, relaxation
from warpbots.numerics import matrix, precision, real, real_numpy

pytestmark = pytest.mark.verification

MU, T = 2.0, 0.5


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, relaxed = matrix(dim), relaxation(dim)
    energy, stress = maxwell(dim)

    @wp.kernel(module=wp.get_module(f"test_maxwell_{dim}d"))
    def branch(
        G: wp.array[mat], none: wp.array[real], constants: wp.array[real], out: wp.array[mat], psi_out: wp.array[real]
    ):
        """tau of the shear modulus constants[0], or for a zero one G' of the time constants[1] and step constants[2]."""
        i = wp.tid()
        psi_out[i] = energy(G[i], constants[0])
        if constants[0] > real(0.0):
            out[i] = stress(G[i], constants[0])
        else:
            out[i] = relaxed(G[i], constants[1], constants[2])

    return branch


def stress(G: np.ndarray, weights=None):
    """tau and Psi; with weights of both also gradients."""
    return law_points.returned(kernel(G.shape[-1]), G, 0.0, (MU, 1.0, 1.0), weights)


def relaxed(G: np.ndarray, time: float, step: float, weights=None):
    """G'; with weights also gradients with respect to G, nothing, and (nothing, T, dt)."""
    found = law_points.returned(kernel(G.shape[-1]), G, 0.0, (0.0, time, step), weights)
    return found[0] if weights is None else found[1]


def deviators(G: np.ndarray) -> np.ndarray:
    """dev ln(G G^T) / 2."""
    e = np.array([0.5 * scipy.linalg.logm(A @ A.T).real for A in G])
    return e - np.trace(e, axis1=1, axis2=2)[:, None, None] * np.eye(G.shape[-1]) / G.shape[-1]


@pytest.mark.verification(float32=True)
@everywhere
def test_stress_fades_exponentially_at_constant_strain(dim):
    """tau = 2 mu e and Psi = mu e : e, which fall by exp(-dt/T) and its square in any step; the volume stays."""
    G, rounding = deformations(dim), {"float64": 2e-13, "float32": 2e-5}[precision]
    tau, psi = stress(G)
    e = deviators(G)
    np.testing.assert_allclose(tau, 2.0 * MU * e, atol=rounding)
    np.testing.assert_allclose(psi, MU * (e**2).sum(axis=(1, 2)), atol=rounding)
    for step in (1e-4, 0.1, 3.0):
        after = relaxed(G, T, step)
        np.testing.assert_allclose(stress(after)[0], np.exp(-step / T) * tau, atol=rounding)
        np.testing.assert_allclose(np.linalg.det(after), np.linalg.det(G), rtol=rounding)


@everywhere
def test_observers_and_grain_do_not_matter(dim, rng):
    """tau(Q G) = Q tau Q^T, G'(Q G) = Q G', and G'(G Q) = G' Q."""
    G = deformations(dim)
    Q = rotations(rng, len(G), dim)
    np.testing.assert_allclose(stress(Q @ G)[0], Q @ stress(G)[0] @ np.swapaxes(Q, 1, 2), atol=1e-12)
    np.testing.assert_allclose(relaxed(Q @ G, T, 0.2), Q @ relaxed(G, T, 0.2), atol=1e-13)
    np.testing.assert_allclose(relaxed(G @ Q, T, 0.2), relaxed(G, T, 0.2) @ Q, atol=1e-13)


@pytest.mark.parametrize("omega", [0.3, 2.0, 20.0])
def test_the_loss_in_a_cycle_of_small_shear(omega):
    """pi G'' gamma^2 with the loss modulus G'' = mu omega T / (1 + (omega T)^2); it converges with the first power."""
    gamma, steps, loss = 1e-3, 2000, []
    G, period = np.eye(2)[None], 2.0 * np.pi / omega
    dt, cycles = period / steps, int(np.ceil(5.0 * T / period)) + 1  # until what it began with has faded
    tau, at = stress(G)[0], np.eye(2)
    for n in range(cycles * steps):
        if n % steps == 0:
            loss.append(0.0)
        new = np.eye(2) + gamma * np.sin(2.0 * np.pi * (n + 1) / steps) * np.eye(2, k=1)
        step = new @ np.linalg.inv(at)
        G, at = relaxed(step @ G, T, dt), new
        after = stress(G)[0]
        loss[-1] += float((0.5 * (tau + after) * (step - np.eye(2))).sum())
        tau = after
    assert loss[-1] == pytest.approx(np.pi * MU * omega * T / (1.0 + (omega * T) ** 2) * gamma**2, rel=0.02)


@everywhere
def test_gradients_are_those_of_differences(dim, rng):
    """Of tau and Psi by G and mu, of G' by G, T and dt; also where branches hang loose."""
    G, h = np.concatenate([deformations(dim)[-20:], np.eye(dim)[None]]), 1e-6
    weights = [rng.normal(size=G.shape), rng.normal(size=len(G))]
    for constants in ((MU, 1.0, 1.0), (0.0, T, 0.1), (0.0, T, 1e-5)):
        point = [G, np.zeros(len(G)), np.array(constants)]
        _, gradients = law_points.returned(kernel(dim), *point, weights)

        def loss(values: list) -> float:
            found = law_points.returned(kernel(dim), *values)
            return sum(float((w * x).sum()) for w, x in zip(weights, found, strict=True))

        moved = {0: 0.01 * rng.normal(size=G.shape), 2: 0.1 * np.array(constants)}
        for i, d in moved.items():
            up, down = ([p + s * h * d if k == i else p for k, p in enumerate(point)] for s in (1.0, -1.0))
            assert float((gradients[i] * d).sum()) == pytest.approx(
                (loss(up) - loss(down)) / (2 * h), rel=1e-6, abs=1e-9
            )


@pytest.mark.verification(float32=True)
def test_the_relaxation_time_counts_in_short_steps():
    """dG'/dT = dt / T^2 e G where dt is a millionth of T: no digits are lost in 1 - exp(-dt/T)."""
    G = np.array([[1.3, 0.2, 0.0], [0.0, 0.8, 0.1], [0.0, 0.0, 1.0]])[None]
    dt = 1e-6 * T
    weights = [np.ones(G.shape), np.zeros(1)]
    _, _, (_, slope, _) = relaxed(G, T, dt, weights)
    expected = (dt / T**2 * deviators(G) @ G).sum()
    assert slope == pytest.approx(expected, rel={"float64": 1e-5, "float32": 1e-5}[precision])
    assert real_numpy(slope) != 0.0
