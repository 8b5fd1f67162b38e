"""Fibres in a matrix, at points: stress and energy, slack, frames, and both sides of the kink."""

import functools

import numpy as np
import pytest
import warp as wp
from law_points import deformations, everywhere, rotations

from warpbots.materials import fibre_reinforcement
from warpbots.numerics import matrix, precision, real, real_numpy, vector
from warpbots.numerics.derivative_checks import brief_module

pytestmark = pytest.mark.verification

K = 3.0


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, vec = matrix(dim), vector(dim)
    energy, stress = fibre_reinforcement(dim)

    @wp.kernel(module=brief_module(f"test_fibre_reinforcement_{dim}d"))
    def pulled(F: wp.array[mat], a: wp.array[vec], k: wp.array[real], psi_out: wp.array[real], tau_out: wp.array[mat]):
        i = wp.tid()
        psi_out[i] = energy(F[i], a[i], k[0])
        tau_out[i] = stress(F[i], a[i], k[0])

    return pulled


def pulled(F: np.ndarray, a: np.ndarray, k: float = K, weights=None):
    """Psi and tau; with weights of both also the gradients of their weighted sum with respect to F, a and k."""
    dim = F.shape[-1]
    kinds = (matrix(dim), vector(dim), real)
    values = (F, np.broadcast_to(a, F.shape[:-1]), [k])
    arrays = [
        wp.array(np.ascontiguousarray(v, real_numpy), dtype=t, requires_grad=True, device="cpu")
        for v, t in zip(values, kinds, strict=True)
    ]
    outputs = [wp.zeros(len(F), dtype=t, requires_grad=True, device="cpu") for t in (real, matrix(dim))]
    with wp.Tape() as tape:
        wp.launch(kernel(dim), len(F), arrays, outputs, device="cpu")
    found = [o.numpy().astype(np.float64) for o in outputs]
    if weights is None:
        return found
    grads = [wp.array(w.astype(real_numpy), dtype=o.dtype, device="cpu") for w, o in zip(weights, outputs, strict=True)]
    tape.backward(grads=dict(zip(outputs, grads, strict=True)))
    return found, [array.grad.numpy().astype(np.float64) for array in arrays]


@pytest.mark.verification(float32=True)
@everywhere
def test_a_stretched_fibre_is_hookean_and_a_short_one_slack(dim, rng):
    """tau = k (L - 1) L n n^T with the direction n of F a, Psi = k/2 (L - 1)^2, whatever the length of a."""
    F, a = deformations(dim), rng.normal(size=(len(deformations(dim)), dim))
    psi, tau = pulled(F, a)
    along = np.einsum("nij,nj->ni", F, a / np.linalg.norm(a, axis=1)[:, None])
    L = np.linalg.norm(along, axis=1)
    n = along / L[:, None]
    extension = np.maximum(L - 1.0, 0.0)
    rounding = {"float64": 1e-14, "float32": 1e-5}[precision]
    assert (extension > 0.01).sum() > 10 < (L < 0.99).sum()
    np.testing.assert_allclose(psi, 0.5 * K * extension**2, rtol=0, atol=rounding)
    np.testing.assert_allclose(tau, (K * extension * L)[:, None, None] * n[:, :, None] * n[:, None], atol=rounding)


@everywhere
def test_stress_is_the_slope_of_the_energy(dim, rng):
    """tau = dPsi/dF F^T, and so is the one of an observer who turns: tau(Q F) = Q tau Q^T."""
    F, a = deformations(dim), rng.normal(size=dim)
    weights = [np.ones(len(F)), np.zeros(F.shape)]
    (_, tau), (slope, _, _) = pulled(F, a, weights=weights)
    np.testing.assert_allclose(slope @ np.swapaxes(F, 1, 2), tau, atol=1e-13)
    Q = rotations(rng, len(F), dim)
    np.testing.assert_allclose(pulled(Q @ F, a)[1], Q @ tau @ np.swapaxes(Q, 1, 2), atol=1e-13)


@everywhere
@pytest.mark.parametrize("stretch", [0.999, 1.001, 1.5])
def test_gradients_on_both_sides_of_the_kink(dim, stretch, rng):
    """By F, a and k, against central differences on that side."""
    a, h = rng.normal(size=(20, dim)), 1e-6
    F = rng.normal(size=(20, dim, dim)) + 2.0 * np.eye(dim)
    F *= (stretch * np.linalg.norm(a, axis=1) / np.linalg.norm(np.einsum("nij,nj->ni", F, a), axis=1))[:, None, None]
    weights = [rng.normal(size=20), rng.normal(size=F.shape)]
    _, gradients = pulled(F, a, K, weights)
    point = [F, a, np.array([K])]

    def loss(values: list) -> float:
        return sum(
            float((w * x).sum()) for w, x in zip(weights, pulled(values[0], values[1], values[2][0]), strict=True)
        )

    for i, gradient in enumerate(gradients):
        d = 0.01 * rng.normal(size=gradient.shape)
        up, down = ([p + s * h * d if k == i else p for k, p in enumerate(point)] for s in (1.0, -1.0))
        assert float((gradient * d).sum()) == pytest.approx((loss(up) - loss(down)) / (2 * h), rel=1e-6, abs=1e-8)
        assert gradient.any() == (stretch > 1.0)


@everywhere
def test_fibres_of_matter_at_rest_resist_as_stretched_ones_do(dim, rng):
    """At F = I, where every motion begins, the derivative is the one towards longer fibres, though rounding shortens
    them."""
    a = rng.normal(size=dim)
    n = a / np.linalg.norm(a)
    D = rng.normal(size=(dim, dim))
    D += (1.0 - n @ D @ n) * np.outer(n, n)
    weights = [np.zeros(1), rng.normal(size=(1, dim, dim))]
    h = 1e-5
    at_rest, half, whole = (
        float((weights[1] * pulled((np.eye(dim) + s * D)[None], a)[1]).sum()) for s in (0.0, h / 2, h)
    )
    slope = (4.0 * half - 3.0 * at_rest - whole) / h
    for shorter in (0.0, 1e-15):
        _, (gradient, *_) = pulled((1.0 - shorter) * np.eye(dim)[None], a, K, weights)
        assert float((gradient * D).sum()) == pytest.approx(slope, rel=1e-6)
