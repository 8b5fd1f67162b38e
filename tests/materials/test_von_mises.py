"""Return mapping of von Mises plasticity, at points: closed forms, work in closed cycles, and both sides of the kink."""

import functools

import law_points
import numpy as np
import pytest
import scipy.linalg
import warp as wp
from cases import lame
from law_points import deformations, evaluate, everywhere, rotations

from warpbots.materials import von_mises
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

pytestmark = pytest.mark.verification

E, NU, YIELD, HARDENING = 2.0, 0.3, 0.1, 0.5


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, mapping = matrix(dim), von_mises(dim)

    @wp.kernel(module=brief_module(f"test_von_mises_{dim}d"))
    def returned(
        F: wp.array[mat], a: wp.array[real], strength: wp.array[real], F_out: wp.array[mat], a_out: wp.array[real]
    ):
        i = wp.tid()
        elastic, plastic = mapping(F[i], a[i], strength[0], strength[1], strength[2], strength[3])
        F_out[i] = elastic
        a_out[i] = plastic

    return returned


def returned(F: np.ndarray, a=0.0, strength=(E, NU, YIELD, HARDENING), weights=None):
    """F' and a'; with weights of both also the gradients of their weighted sum with respect to F, a and strength."""
    return law_points.returned(kernel(F.shape[-1]), F, a, strength, weights)


def equivalent(F: np.ndarray) -> np.ndarray:
    """sqrt(3/2) |dev tau| by the law of the library."""
    tau = evaluate("hencky", 0, F, E, NU).stress
    dev = tau - np.trace(tau, axis1=1, axis2=2)[:, None, None] * np.eye(F.shape[-1]) / F.shape[-1]
    return np.sqrt(1.5) * np.linalg.norm(dev, axis=(1, 2))


@pytest.mark.verification(float32=True)
@everywhere
def test_stress_returns_to_the_yield_surface(dim, rng):
    """To rounding, whatever the trial; the volume stays, and elastic matter is not touched to the last bit."""
    F, a = deformations(dim), rng.uniform(0.0, 0.2, len(deformations(dim)))
    F_out, a_out = returned(F, a)
    flowed, rounding = a_out > a.astype(real_numpy), {"float64": 1e-14, "float32": 4e-6}[precision]
    assert flowed.sum() > 30
    assert np.array_equal(flowed, equivalent(F) > YIELD + HARDENING * a)
    limit = YIELD + HARDENING * a_out
    assert np.abs(equivalent(F_out) - limit)[flowed].max() < 4 * rounding
    assert np.array_equal(F_out[~flowed], F.astype(real_numpy)[~flowed])
    assert (np.abs(np.linalg.det(F_out) / np.linalg.det(F) - 1.0)).max() < 4 * rounding


@pytest.mark.parametrize("strain", [-0.3, -0.04, 0.04, 0.06, 0.2, 0.7])
def test_a_bar_that_is_pulled_or_pushed(strain):
    """Uniaxial stress: tau = E e up to the yield stress, then with the tangent modulus E H / (E + H), in log strains.

    The plastic part is (1, -1/2, -1/2) p, the elastic one (1, -nu, -nu) tau / E, and the path is a straight line, for
    which radial return is exact.
    """
    sign, elastic_limit = np.sign(strain), YIELD / E
    p = max(0.0, (abs(strain) - elastic_limit) * E / (E + HARDENING))
    tau = E * (abs(strain) - p)
    assert tau == pytest.approx(min(E * abs(strain), YIELD + HARDENING * p), rel=1e-14)
    exact = sign * tau / E * np.array([1.0, -NU, -NU])
    trial = exact + sign * p * np.array([1.0, -0.5, -0.5])
    F_out, a_out = returned(np.diag(np.exp(trial))[None])
    np.testing.assert_allclose(F_out[0], np.diag(np.exp(exact)), rtol=0, atol=1e-14)
    np.testing.assert_allclose(a_out, p, rtol=0, atol=1e-14)


@everywhere
def test_observers_and_grain_do_not_matter(dim, rng):
    """F'(Q F) = Q F' and F'(F Q) = F' Q, with the same plastic strain."""
    F = deformations(dim)
    Q = rotations(rng, len(F), dim)
    (F_out, a_out), (left, a_left), (right, a_right) = (returned(G) for G in (F, Q @ F, F @ Q))
    assert np.abs(left - Q @ F_out).max() < 1e-13
    assert np.abs(right - F_out @ Q).max() < 1e-13
    assert np.abs(a_left - a_out).max() < 1e-13
    assert np.abs(a_right - a_out).max() < 1e-13


def cycle(dim: int, size: float, steps: int = 400) -> tuple[float, float, float]:
    """Work done on a point in a closed cycle of shear and stretch, the energy it gained, and sum of q' Delta a [Pa]."""
    t = np.linspace(0.0, 2.0 * np.pi, steps + 1)
    A, B = np.zeros((2, dim, dim))
    A[0, 1], B[0, 0], B[1, 1] = 1.0, 0.7, -0.4
    total = [scipy.linalg.expm(size * ((np.cos(x) - 1.0) * A + np.sin(x) * B)) for x in t]
    assert np.abs(total[-1] - np.eye(dim)).max() < 1e-14
    F, a, work, dissipated = np.eye(dim)[None], np.zeros(1), 0.0, 0.0
    tau = evaluate("hencky", 0, F, E, NU).stress
    for before, after in zip(total, total[1:], strict=False):
        step = after @ np.linalg.inv(before)
        F, a_new = returned(step @ F, a)
        tau_new = evaluate("hencky", 0, F, E, NU).stress
        work += float((0.5 * (tau + tau_new) * scipy.linalg.logm(step)).sum())
        dissipated += float(equivalent(F)[0] * (a_new - a)[0])
        tau, a = tau_new, a_new
    return work, float(evaluate("hencky", 0, F, E, NU).energy[0]), dissipated


@pytest.mark.parametrize("size", [0.01, 0.3])
def test_a_closed_cycle_of_strain_gains_no_energy(size):
    """An elastic one gives back all work, a plastic one all but what flow dissipates, sigma_y' Delta a.

    The sums converge with the second and the first power of the step: 1e-5 and 1 % with 400.
    """
    work, stored, dissipated = cycle(2, size)
    print(f"work {work:.3e}, stored {stored:.3e}, dissipated {dissipated:.3e} Pa")
    if size < 0.1:
        assert dissipated == 0.0
        assert abs(work) < 1e-5 * E * size**2
        assert stored < 1e-20
    else:
        assert stored >= 0.0
        assert work > dissipated > 0.1 * YIELD
        assert work - stored == pytest.approx(dissipated, rel=0.01)


def at_the_kink(dim: int, beyond: float, rng: np.random.Generator) -> np.ndarray:
    """Deformation gradients whose equivalent stress is `beyond` times the yield stress, shape (40, dim, dim)."""
    e = rng.normal(size=(40, dim, dim))
    e = e + np.swapaxes(e, 1, 2)
    e -= np.trace(e, axis1=1, axis2=2)[:, None, None] * np.eye(dim) / dim
    mu, _ = lame(E, NU)
    e *= (beyond * YIELD / (np.sqrt(6.0) * mu * np.linalg.norm(e, axis=(1, 2))))[:, None, None]
    e += rng.normal(scale=0.1, size=(40, 1, 1)) * np.eye(dim)
    return np.array([scipy.linalg.expm(x) for x in e]) @ rotations(rng, 40, dim)


@everywhere
@pytest.mark.parametrize("beyond", [0.999, 1.001, 3.0])
def test_gradients_on_both_sides_of_the_kink(dim, beyond, rng):
    """By deformation, plastic strain, E, nu, yield stress and hardening, against central differences on that side."""
    F, h = at_the_kink(dim, beyond, rng), 1e-6
    weights = [rng.normal(size=F.shape), rng.normal(size=len(F))]
    point = [F, np.full(len(F), 1e-4), np.array([E, NU, YIELD, HARDENING])]
    (_, a_out), gradients = returned(*point, weights)
    assert ((a_out > point[1]) == (beyond > 1.0)).all()

    def loss(values: list) -> float:
        return sum(float((w * v).sum()) for w, v in zip(weights, returned(*values), strict=True))

    for i, gradient in enumerate(gradients):
        d = rng.normal(size=gradient.shape) * (0.1 if i < 2 else np.array([1.0, 0.1, YIELD, HARDENING]))
        up, down = ([p + s * h * d if k == i else p for k, p in enumerate(point)] for s in (1.0, -1.0))
        assert float((gradient * d).sum()) == pytest.approx((loss(up) - loss(down)) / (2 * h), rel=1e-6, abs=1e-8)
    if beyond < 1.0:
        assert not gradients[2].any()


def test_the_gradient_jumps_where_flow_begins():
    """By the yield stress it is 0 before and sum of w : dF'/dsigma_y + w_a / -(3 mu + H) beyond: it has two values."""
    mu, _ = lame(E, NU)
    slopes = []
    for beyond in (1.0 - 1e-9, 1.0 + 1e-9):
        F = at_the_kink(3, beyond, np.random.default_rng(0))
        _, gradients = returned(F, weights=[np.zeros(F.shape), np.ones(len(F))])
        slopes.append(gradients[2][2] / len(F))
    assert slopes == pytest.approx([0.0, -1.0 / (3.0 * mu + HARDENING)], rel=1e-12)
