"""Exponential and logarithm of symmetric matrices, whose eigenvalues may be equal, close or far apart."""

import numpy as np
import pytest
import scipy.linalg
import warp as wp
from law_points import everywhere, rotations

from warpbots.numerics import exp_symmetric, log_symmetric, matrix, precision, real_numpy
from warpbots.numerics.derivative_checks import BRIEF

pytestmark = pytest.mark.verification(float32=True)

TOLERANCE = {"float64": 2e-14, "float32": 1e-5}[precision]


def value_and_gradient(function: wp.Function, A: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(A) by the library, and the gradient of G : f to A, each of shape (n, dim, dim)."""
    mat = matrix(A.shape[-1])

    @wp.kernel(module="unique", module_options=BRIEF)
    def apply(A: wp.array[mat], f_out: wp.array[mat]):
        i = wp.tid()
        f_out[i] = function(A[i])

    wide = wp.array(A.astype(real_numpy), dtype=mat, requires_grad=True)
    out = wp.zeros(len(A), dtype=mat, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(apply, len(A), [wide], [out])
    tape.backward(grads={out: wp.array(G.astype(real_numpy), dtype=mat)})
    return out.numpy().astype(np.float64), wide.grad.numpy().astype(np.float64)


def exponents(dim: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices S and G; eigenvalues of S differ by nothing, by 1e-12 to 1, and by 2."""
    gaps = np.concatenate([[0.0], np.logspace(-12, 0, 25), np.linspace(0.05, 0.25, 9), [2.0]])
    a = 0.3 + np.stack([0.0 * gaps, gaps, -0.5 * gaps][:dim], axis=1)
    Q = rotations(rng, len(a), dim)
    S = np.einsum("nij,nj,nkj->nik", Q, a, Q)
    G = rng.normal(size=S.shape)
    return np.concatenate([S, [np.diag([1.0, 0.5, 1.0][:dim])]]), np.concatenate([G + G.swapaxes(1, 2), [np.eye(dim)]])


def slopes(S: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Derivative of the exponential at S along G, by SciPy, which is its own adjoint."""
    return np.array([scipy.linalg.expm_frechet(s, g, compute_expm=False) for s, g in zip(S, G, strict=True)])


@everywhere
def test_the_exponential_and_its_derivative_are_those_of_scipy(dim, rng):
    S, G = exponents(dim, rng)
    value, gradient = value_and_gradient(exp_symmetric(dim), S, G)
    exact = np.array([scipy.linalg.expm(s) for s in S])
    assert (np.abs(value - exact) / np.abs(exact).max()).max() < TOLERANCE
    assert (np.abs(gradient - slopes(S, G)).max() / np.abs(gradient).max()) < TOLERANCE


@everywhere
def test_the_logarithm_is_the_inverse_and_so_is_its_derivative(dim, rng):
    S, G = exponents(dim, rng)
    A = np.array([scipy.linalg.expm(s) for s in S])
    value, gradient = value_and_gradient(log_symmetric(dim), A, slopes(S, G))
    assert np.abs(value - S).max() < 4 * TOLERANCE
    assert np.abs(gradient - G).max() < 8 * TOLERANCE * np.abs(G).max()
