"""Return mapping of Drucker-Prager plasticity, at points: Mohr and Coulomb's law, grains apart, and every kink."""

import functools

import law_points
import numpy as np
import pytest
import warp as wp
from cases import lame
from law_points import deformations, evaluate, everywhere, rotations, turned

from warpbots.materials import drucker_prager
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

pytestmark = pytest.mark.verification

E, NU, PHI = 2.0, 0.3, 32.0


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, mapping = matrix(dim), drucker_prager(dim)

    @wp.kernel(module=brief_module(f"test_drucker_prager_{dim}d"))
    def returned(
        F: wp.array[mat], v: wp.array[real], strength: wp.array[real], F_out: wp.array[mat], v_out: wp.array[real]
    ):
        i = wp.tid()
        elastic, gap = mapping(F[i], v[i], strength[0], strength[1], strength[2])
        F_out[i] = elastic
        v_out[i] = gap

    return returned


def returned(F: np.ndarray, v=0.0, strength=(E, NU, PHI), weights=None):
    """F' and v'; with weights of both also the gradients of their weighted sum with respect to F, v and strength."""
    return law_points.returned(kernel(F.shape[-1]), F, v, strength, weights)


def stresses(F: np.ndarray, nu: float = NU) -> np.ndarray:
    """Principal Kirchhoff stresses by the law of the library, in ascending order, shape (n, dim)."""
    return np.linalg.eigvalsh(evaluate("hencky", 0, F, E, nu).stress)


@pytest.mark.verification(float32=True)
@everywhere
def test_grains_slide_at_the_friction_angle(dim, rng):
    """|dev(tau)| = -alpha tr(tau) where sheared too far, and no stress where grains are apart; the gap balances volume.

    ln J + v is the same before and after, whatever happens.
    """
    F = deformations(dim)
    v = np.where(rng.random(len(F)) < 0.5, 0.0, rng.uniform(0.0, 0.3, len(F))).astype(real_numpy).astype(np.float64)
    F_out, v_out = returned(F, v)
    rounding = {"float64": 4e-15, "float32": 3e-6}[precision]
    before, after = (np.log(np.linalg.det(A)) + w for A, w in ((F, v), (F_out, v_out)))
    assert np.abs(after - before).max() < 10 * rounding
    apart = before > 1e-6
    packed = before < -1e-6
    assert apart.sum() > 10 < packed.sum()
    assert np.abs(stresses(F_out)[apart]).max() < 10 * rounding
    assert not v_out[packed].any()
    s = np.sin(np.radians(PHI))
    alpha = s / np.sqrt(2.0) if dim == 2 else np.sqrt(2.0 / 3.0) * 2.0 * s / (3.0 - s)
    tau = stresses(F_out)
    trace = tau.sum(axis=1)
    excess = np.linalg.norm(tau - trace[:, None] / dim, axis=1) + alpha * trace
    assert excess.max() < 20 * rounding
    assert (np.abs(excess) < 20 * rounding)[packed].sum() > 5


@pytest.mark.parametrize("phi", [1.0, 20.0, 45.0, 89.0])
@everywhere
def test_mohr_and_coulombs_law(dim, phi):
    """sin(phi) = (tau_max - tau_min) / -(tau_max + tau_min) in the plane and in triaxial compression."""
    F = np.diag([1.5, 0.2]) if dim == 2 else np.diag([0.1, 1.6, 1.6])
    tau = stresses(returned(F[None], strength=(E, 0.2, phi))[0], 0.2)[0]
    assert (tau[-1] - tau[0]) / -(tau[-1] + tau[0]) == pytest.approx(np.sin(np.radians(phi)), rel=1e-11)


def test_what_was_pulled_apart_resists_when_it_is_together_again():
    """Sand that is stretched by s and pushed back by s is as it was; pushed by more it has the pressure of the rest."""
    stretched, gap = returned(1.3 * np.eye(2)[None])
    np.testing.assert_allclose(stretched[0], np.eye(2), atol=1e-14)
    np.testing.assert_allclose(gap, 2.0 * np.log(1.3), rtol=1e-14)
    halfway, gap = returned(stretched / 1.1, gap)
    np.testing.assert_allclose(halfway[0], np.eye(2), atol=1e-14)
    np.testing.assert_allclose(gap, 2.0 * np.log(1.3 / 1.1), rtol=1e-14)
    pushed, gap = returned(0.9 * halfway * 1.1 / 1.3, gap)
    np.testing.assert_allclose(pushed[0], 0.9 * np.eye(2), atol=1e-14)
    assert gap == 0.0


@everywhere
def test_observers_and_grain_do_not_matter(dim, rng):
    """F'(Q F) = Q F' and F'(F Q) = F' Q, with the same gap."""
    F = deformations(dim)
    Q = rotations(rng, len(F), dim)
    (F_out, v_out), (left, v_left), (right, v_right) = (returned(G, 0.1) for G in (F, Q @ F, F @ Q))
    assert np.abs(left - Q @ F_out).max() < 1e-13
    assert np.abs(right - F_out @ Q).max() < 1e-13
    assert np.abs(v_left - v_out).max() < 1e-13
    assert np.abs(v_right - v_out).max() < 1e-13


def test_a_closed_cycle_of_strain_gains_no_energy():
    """Work in a cycle of compression, shear and parting is what sand stores and what it dissipates, tau : dev(e - e').

    In every step it dissipates or keeps energy; the sums converge with the first power of the step: 1 % with 800.
    """
    t = np.linspace(0.0, 2.0 * np.pi, 801)
    mu, lam = lame(E, NU)
    strain = 0.2 * np.stack([np.cos(t) - 1.0, 0.5 * (1.0 - np.cos(t)) - 0.6 * np.sin(t)], axis=1)
    F, v, before, work, dissipated, parted = np.eye(2)[None], np.zeros(1), np.zeros(2), 0.0, 0.0, False
    for step in np.diff(strain, axis=0):
        trial = np.diag(np.exp(step)) @ F
        F, v = returned(trial, v)
        e, flow = np.log(np.diag(F[0])), np.log(np.diag(trial[0]) / np.diag(F[0]))
        tau = 2.0 * mu * e + lam * e.sum()
        lost = float(tau @ (flow - flow.mean()))
        assert lost >= -1e-15
        work += float(0.5 * (before + tau) @ step)
        dissipated += lost
        parted |= bool(v[0] > 0.0)
        before = tau
    stored = float(evaluate("hencky", 0, F, E, NU).energy[0])
    print(f"work {work:.4e}, stored {stored:.4e}, dissipated {dissipated:.4e} Pa")
    assert parted
    assert dissipated > 1e-3
    assert work - stored == pytest.approx(dissipated, rel=0.01)


SIDES = {"elastic": (0.999, -0.1), "shear": (1.001, -0.1), "far": (3.0, -0.1), "apart": (1.0, 0.01)}
"""Part of the shear that friction can carry, and ln J + v."""


@everywhere
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("v", [0.0, 0.05])
def test_gradients_on_all_sides_of_the_kinks(dim, side, v, rng):
    """By deformation, gap, E, nu and friction angle, against central differences on that side."""
    part, gap = SIDES[side]
    s, (mu, lam) = np.sin(np.radians(PHI)), lame(E, NU)
    alpha = s / np.sqrt(2.0) if dim == 2 else np.sqrt(2.0 / 3.0) * 2.0 * s / (3.0 - s)
    dev = rng.normal(size=(20, dim))
    dev -= dev.mean(axis=1, keepdims=True)
    dev *= part * alpha * (dim * lam + 2.0 * mu) / (2.0 * mu) * 0.1 / np.linalg.norm(dev, axis=1, keepdims=True)
    F, h = turned(rng, np.exp(dev + (gap - v) / dim)), 1e-6
    weights = [rng.normal(size=F.shape), rng.normal(size=len(F))]
    point = [F, np.full(len(F), v), np.array([E, NU, PHI])]
    (_, v_out), gradients = returned(*point, weights)
    assert ((v_out > 0.0) == (side == "apart")).all()
    assert bool(gradients[2][2]) == (side in ("shear", "far"))

    def loss(values: list) -> float:
        return sum(float((w * x).sum()) for w, x in zip(weights, returned(*values), strict=True))

    for i, gradient in enumerate(gradients):
        d = rng.normal(size=gradient.shape) * (0.01 if i < 2 else np.array([0.1, 0.01, 1.0]))
        up, down = ([p + s * h * d if k == i else p for k, p in enumerate(point)] for s in (1.0, -1.0))
        assert float((gradient * d).sum()) == pytest.approx((loss(up) - loss(down)) / (2 * h), rel=1e-6, abs=1e-8)


@everywhere
def test_sand_at_rest_resists_as_packed_grains_do(dim, rng):
    """At F = I, where every motion begins, the derivative is the one of compression with a little shear."""
    shear = 0.05 * rng.normal(size=(dim, dim))
    D = -np.eye(dim) + 0.5 * (shear + shear.T)
    weights = [rng.normal(size=(1, dim, dim)), rng.normal(size=1)]
    h = 1e-5

    def loss(amount: float) -> float:
        F_out, v_out = returned((np.eye(dim) + amount * D)[None])
        return float((weights[0] * F_out).sum() + (weights[1] * v_out).sum())

    _, (gradient, *_) = returned(np.eye(dim)[None], weights=weights)
    slope = (4.0 * loss(h / 2) - 3.0 * loss(0.0) - loss(h)) / h
    assert float((gradient * D).sum()) == pytest.approx(slope, rel=1e-6)
