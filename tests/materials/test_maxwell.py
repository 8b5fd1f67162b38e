"""Maxwell branches, at points: stress and energy, relaxation, frames, the loss in a cycle, and gradients."""

import functools

import law_points
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import warp as wp
from law_points import deformations, everywhere, rotations

from warpbots.materials import maxwell, maxwell_step
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

pytestmark = pytest.mark.verification

MU, T = 2.0, 0.5


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, stepped = matrix(dim), maxwell_step(dim)
    energy, stress = maxwell(dim)

    @wp.kernel(module=brief_module(f"test_maxwell_{dim}d"))
    def branch(
        G: wp.array[mat], none: wp.array[real], constants: wp.array[real], out: wp.array[mat], psi_out: wp.array[real]
    ):
        """tau of the shear modulus constants[0], or for a zero one G' of the time constants[1] and step constants[2].

        The motion in the step is the identity plus constants[3] above the diagonal and constants[4] on it.
        """
        i = wp.tid()
        psi_out[i] = energy(G[i], constants[0])
        if constants[0] > real(0.0):
            out[i] = stress(G[i], constants[0])
        else:
            M = wp.identity(n=dim, dtype=real)
            for k in range(dim):
                for l in range(k, dim):
                    M[k, l] += constants[wp.where(k == l, 4, 3)]
            out[i] = stepped(G[i], M, constants[1], constants[2])

    return branch


def stress(G: np.ndarray, weights=None):
    """tau and Psi; with weights of both also gradients."""
    return law_points.returned(kernel(G.shape[-1]), G, 0.0, (MU, 1.0, 1.0, 0.0, 0.0), weights)


def relaxed(G: np.ndarray, time: float, step: float, weights=None, shear: float = 0.0, stretch: float = 0.0):
    """G'; with weights gradients with respect to G, nothing, and (nothing, T, dt, shear, stretch)."""
    found = law_points.returned(kernel(G.shape[-1]), G, 0.0, (0.0, time, step, shear, stretch), weights)
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


def test_a_large_shear_converges_with_the_second_power():
    """Against the differential equation dG/dt = L G - e G / T, for a rate of 3 / T."""
    rate, time = 3.0 / T, 2.0 * T

    def change(_t: float, g: np.ndarray) -> np.ndarray:
        G = g.reshape(2, 2)
        return (rate * np.eye(2, k=1) @ G - deviators(G[None])[0] @ G / T).ravel()

    exact = scipy.integrate.solve_ivp(change, (0.0, time), np.eye(2).ravel(), rtol=1e-10, atol=1e-12).y[:, -1]
    expected = stress(exact.reshape(1, 2, 2))[0]
    errors = []
    for n in (20, 40, 80):
        G = np.eye(2)[None]
        for _ in range(n):
            G = relaxed(G, T, time / n, shear=rate * time / n)
        errors.append(np.abs(stress(G)[0] - expected).max())
    print(f"errors {errors} Pa of {np.abs(expected).max():.3f}")
    assert errors[0] < 0.01 * np.abs(expected).max()
    assert np.log2(errors[0] / errors[1]) > 1.8
    assert np.log2(errors[1] / errors[2]) > 1.8


@pytest.mark.verification(float32=True)
@everywhere
@pytest.mark.parametrize("x", [1e-6, 0.1, 0.999, 1.001, 30.0, 1e4])
def test_a_step_has_the_factors_a_and_b(dim, x):
    """G' = exp((b - 1) e) M exp((a - 1) e) G for steps from far below T to far above it, to rounding."""
    G = deformations(dim)
    M = 0.8 * np.eye(dim) + np.triu(0.1 * np.ones((dim, dim)), 1)
    found = relaxed(G, T, x * T, shear=0.1, stretch=-0.2)
    a, b = (x / np.expm1(x) if x < 700.0 else 0.0), -np.expm1(-x) / x
    expected = G
    for factor, motion in ((a, M), (b, np.eye(dim))):
        e = deviators(expected)
        expected = motion @ np.array(
            [scipy.linalg.expm((factor - 1.0) * y) @ A for y, A in zip(e, expected, strict=True)]
        )
    np.testing.assert_allclose(found, expected, atol={"float64": 1e-12, "float32": 1e-5}[precision])


@everywhere
def test_gradients_are_those_of_differences(dim, rng):
    """Of tau and Psi by G and mu, of G' by G, T, dt and the motion; also where branches hang loose."""
    G, h = np.concatenate([deformations(dim)[-20:], np.eye(dim)[None]]), 1e-6
    weights = [rng.normal(size=G.shape), rng.normal(size=len(G))]
    for constants in ((MU, 1.0, 1.0, 0.0, 0.0), *((0.0, T, dt, 0.03, -0.02) for dt in (1e-5, 0.1, 0.49, 5.0))):
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
    _, _, (_, slope, *_) = relaxed(G, T, dt, weights)
    expected = (dt / T**2 * deviators(G) @ G).sum()
    assert slope == pytest.approx(expected, rel={"float64": 1e-5, "float32": 1e-5}[precision])
    assert real_numpy(slope) != 0.0
