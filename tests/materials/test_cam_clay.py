"""Return mapping of the Cam clay model, at points: yield surface, associated flow, hardening, and both sides of a kink."""

import functools

import law_points
import numpy as np
import pytest
import scipy.linalg
import warp as wp
from cases import lame
from law_points import deformations, evaluate, everywhere, rotations

from warpbots.materials import cam_clay
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

pytestmark = pytest.mark.verification

E, NU, P, M, BETA, XI = 2.0, 0.25, 0.1, 1.1, 0.3, 5.0
STRENGTH = (E, NU, P, M, BETA, XI)


@functools.cache
def kernel(dim: int) -> wp.Kernel:
    mat, mapping = matrix(dim), cam_clay(dim)

    @wp.kernel(module=brief_module(f"test_cam_clay_{dim}d"))
    def returned(
        F: wp.array[mat], v: wp.array[real], strength: wp.array[real], F_out: wp.array[mat], v_out: wp.array[real]
    ):
        i = wp.tid()
        elastic, left = mapping(
            F[i], v[i], strength[0], strength[1], strength[2], strength[3], strength[4], strength[5]
        )
        F_out[i] = elastic
        v_out[i] = left

    return returned


def returned(F: np.ndarray, v=0.0, strength=STRENGTH, weights=None):
    """F' and v'; with weights of both also the gradients of their weighted sum with respect to F, v and strength."""
    return law_points.returned(kernel(F.shape[-1]), F, v, strength, weights)


def invariants(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p = -tr(tau)/d and q = sqrt(3/2) |dev tau| by the law of the library."""
    tau = evaluate("hencky", 0, F, E, NU).stress
    p = -np.trace(tau, axis1=1, axis2=2) / F.shape[-1]
    dev = tau + p[:, None, None] * np.eye(F.shape[-1])
    return p, np.sqrt(1.5) * np.linalg.norm(dev, axis=(1, 2))


def beyond(F: np.ndarray, v) -> np.ndarray:
    """f / p_c^2 = ((q / M)^2 + (p + beta p_c)(p - p_c)) / p_c^2 of a stress, p_c being that of v."""
    (p, q), p_c = invariants(F), P * np.exp(-XI * np.asarray(v))
    return ((q / M) ** 2 + (p + BETA * p_c) * (p - p_c)) / p_c**2


def logs(F: np.ndarray) -> np.ndarray:
    """ln(F F^T) / 2."""
    return np.array([0.5 * scipy.linalg.logm(A @ A.T).real for A in F])


@pytest.mark.verification(float32=True)
@everywhere
def test_stress_returns_to_the_ellipse(dim, rng):
    """To that of the new p_c, to rounding, whatever the trial; ln J + v is kept, and elastic matter to the last bit."""
    F = np.concatenate([deformations(dim), np.eye(dim) + 0.02 * rng.normal(size=(20, dim, dim))])
    v = rng.uniform(-0.3, 0.3, len(F)).astype(real_numpy).astype(np.float64)
    F_out, v_out = returned(F, v)
    flowed = v_out != v
    rounding = {"float64": 2e-12, "float32": 2e-3}[precision]  # of f / p_c^2, where stresses are up to 100 p_c
    assert flowed.sum() > 30
    assert (~flowed).sum() > 5
    assert np.array_equal(F_out[~flowed], F.astype(real_numpy)[~flowed])
    assert (beyond(F, v)[~flowed] <= rounding).all()
    assert np.abs(beyond(F_out, v_out)[flowed]).max() < rounding
    before, after = (np.log(np.linalg.det(A)) + w for A, w in ((F, v), (F_out, v_out)))
    assert np.abs(after - before).max() < {"float64": 1e-14, "float32": 5e-6}[precision]


@everywhere
def test_flow_is_associated_and_dissipates(dim, rng):
    """What is lost of the strain is along the gradient of f, and the stress that is left does work on it."""
    F, v = deformations(dim), rng.uniform(-0.2, 0.2, len(deformations(dim)))
    F_out, v_out = returned(F, v)
    flowed = v_out != v
    lost = (logs(F) - logs(F_out))[flowed]
    tau = evaluate("hencky", 0, F_out, E, NU).stress[flowed]
    assert ((tau * lost).sum(axis=(1, 2)) > 0.0).all()
    p_c = P * np.exp(-XI * v_out[flowed])
    p, _ = (x[flowed] for x in invariants(F_out))
    dev = tau + p[:, None, None] * np.eye(dim)
    normal = 3.0 * dev / M**2 - ((2.0 * p - (1.0 - BETA) * p_c) / dim)[:, None, None] * np.eye(dim)
    size = np.linalg.norm(lost, axis=(1, 2)) * np.linalg.norm(normal, axis=(1, 2))
    assert np.abs((lost * normal).sum(axis=(1, 2)) / size - 1.0).max() < 1e-12


@everywhere
def test_observers_and_grain_do_not_matter(dim, rng):
    """F'(Q F) = Q F' and F'(F Q) = F' Q, with the same v'."""
    F = deformations(dim)
    Q = rotations(rng, len(F), dim)
    (F_out, v_out), (left, v_left), (right, v_right) = (returned(G) for G in (F, Q @ F, F @ Q))
    assert np.abs(left - Q @ F_out).max() < 1e-12
    assert np.abs(right - F_out @ Q).max() < 1e-12
    assert np.abs(v_left - v_out).max() < 1e-12
    assert np.abs(v_right - v_out).max() < 1e-12


def follow(path: list[np.ndarray]) -> tuple[np.ndarray, float, list[float], float, float]:
    """Elastic deformation, v, all v, and work and dissipation along total deformation gradients [Pa]."""
    F, v, all_v, work, dissipated = np.eye(len(path[0]))[None], np.zeros(1), [0.0], 0.0, 0.0
    tau = evaluate("hencky", 0, F, E, NU).stress
    for before, after in zip(path, path[1:], strict=False):
        step = after @ np.linalg.inv(before)
        trial = step @ F
        F, v = returned(trial, v)
        new = evaluate("hencky", 0, F, E, NU).stress
        work += float((0.5 * (tau + new) * scipy.linalg.logm(step).real).sum())
        dissipated += float((new * (logs(trial) - logs(F))).sum())
        tau = new
        all_v.append(float(v[0]))
    return F, float(v[0]), all_v, work, dissipated


def test_the_line_of_normal_consolidation():
    """Compressed evenly in few long steps, p = p_0 exp(-xi v) with ln J = v - p / K."""
    mu, lam = lame(E, NU)
    K = lam + 2.0 / 3.0 * mu
    total = np.linspace(0.0, -0.4, 5)
    F, v, _, _, _ = follow([np.exp(x / 3.0) * np.eye(3) for x in total])
    p = float(invariants(F)[0][0])
    assert p == pytest.approx(P * np.exp(-XI * v), rel=1e-12)
    assert v - p / K == pytest.approx(-0.4, rel=1e-12)
    assert p > 2.5 * P


def test_shear_at_constant_volume_ends_in_the_critical_state():
    """At q = M (p + beta p_c) = M (1 + beta) p_c / 2, without any further change of volume."""
    path = [scipy.linalg.expm(x * np.diag([1.0, -0.5, -0.5])) for x in np.linspace(0.0, 2.0, 401)]
    F, v, all_v, _, _ = follow(path)
    (p, q), p_c = invariants(F), P * np.exp(-XI * v)
    assert q[0] == pytest.approx(M * (p[0] + BETA * p_c), rel=1e-3)
    assert q[0] == pytest.approx(0.5 * M * (1.0 + BETA) * p_c, rel=1e-3)
    assert abs(all_v[-1] - all_v[-2]) < 1e-6


def test_torn_matter_bears_nothing_until_it_is_whole_again():
    """Pulled apart its strength falls to nothing; pushed together it resists as it has been compacted."""
    apart, _, _, _, _ = follow([np.exp(x / 3.0) * np.eye(3) for x in np.linspace(0.0, 6.0, 601)])
    assert np.abs(logs(apart)).max() < 1e-12
    F, v, _, _, _ = follow([np.exp(x / 3.0) * np.eye(3) for x in (*np.linspace(0, 6, 601), *np.linspace(6, -0.1, 601))])
    assert invariants(F)[0][0] == pytest.approx(P * np.exp(-XI * v), rel=0.06)


@pytest.mark.parametrize("size", [0.003, 0.3])
def test_a_closed_cycle_of_strain_gains_no_energy(size):
    """An elastic one gives back all work, a plastic one all but what flow dissipates."""
    t = np.linspace(0.0, 2.0 * np.pi, 401)
    A, B = np.zeros((2, 2, 2))
    A[0, 1], B[0, 0], B[1, 1] = 1.0, 0.7, -0.4
    F, v, _, work, dissipated = follow([scipy.linalg.expm(size * ((np.cos(x) - 1.0) * A + np.sin(x) * B)) for x in t])
    stored = float(evaluate("hencky", 0, F, E, NU).energy[0])
    print(f"work {work:.3e}, stored {stored:.3e}, dissipated {dissipated:.3e} Pa")
    if size < 0.1:
        assert dissipated == v == 0.0
        assert abs(work) < 1e-5 * E * size**2
    else:
        assert work > dissipated > 0.01 * P
        assert work - stored == pytest.approx(dissipated, rel=0.02)


def near_the_ellipse(dim: int, factor: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Stresses `factor` times as far from the centre of the ellipse as it is, and their v, as F of shape (40, ...)."""
    mu, lam = lame(E, NU)
    K, v = lam + 2.0 / dim * mu, rng.uniform(-0.1, 0.1, 40)
    p_c, angle = P * np.exp(-XI * v), rng.uniform(0.1, np.pi - 0.1, 40)
    r, center = 0.5 * (1.0 + BETA) * p_c, 0.5 * (1.0 - BETA) * p_c
    p, q = center + factor * r * np.cos(angle), factor * r * M * np.sin(angle)
    e = rng.normal(size=(40, dim, dim))
    e = e + np.swapaxes(e, 1, 2)
    e -= np.trace(e, axis1=1, axis2=2)[:, None, None] * np.eye(dim) / dim
    e *= (q / (np.sqrt(6.0) * mu * np.linalg.norm(e, axis=(1, 2))))[:, None, None]
    e -= (p / (K * dim))[:, None, None] * np.eye(dim)
    return np.array([scipy.linalg.expm(x) for x in e]) @ rotations(rng, 40, dim), v


@everywhere
@pytest.mark.parametrize("factor", [0.999, 1.001, 4.0])
def test_gradients_on_both_sides_of_the_kink(dim, factor, rng):
    """By deformation, v and all constants, against central differences on that side."""
    (F, v), h = near_the_ellipse(dim, factor, rng), 1e-6
    weights = [rng.normal(size=F.shape), rng.normal(size=len(F))]
    point = [F, v, np.array(STRENGTH)]
    (_, v_out), gradients = returned(*point, weights)
    assert ((v_out != v) == (factor > 1.0)).all()

    def loss(values: list) -> float:
        return sum(float((w * x).sum()) for w, x in zip(weights, returned(*values), strict=True))

    for i, gradient in enumerate(gradients):
        d = rng.normal(size=gradient.shape) * (0.01 if i < 2 else 0.1 * np.array(STRENGTH))
        up, down = ([p + s * h * d if k == i else p for k, p in enumerate(point)] for s in (1.0, -1.0))
        assert float((gradient * d).sum()) == pytest.approx((loss(up) - loss(down)) / (2 * h), rel=1e-6, abs=1e-8)
    if factor < 1.0:
        assert not gradients[2].any()
    else:
        for k in range(len(STRENGTH)):
            assert gradients[2][k]


def test_the_gradient_jumps_where_flow_begins():
    """By the initial p_0 under pure pressure v' is 0 before and has 1 / (K + xi p_c) beyond, of all 40 points."""
    mu, lam = lame(E, NU)
    slopes = []
    for factor in (1.0 - 1e-9, 1.0 + 1e-9):
        F = np.tile(np.exp(-factor * P / (lam + 2.0 / 3.0 * mu) / 3.0) * np.eye(3), (40, 1, 1))
        _, gradients = returned(F, weights=[np.zeros(F.shape), np.ones(len(F))])
        slopes.append(gradients[2][2] / len(F))
    assert slopes == pytest.approx([0.0, 1.0 / (lam + 2.0 / 3.0 * mu + XI * P)], rel=1e-6)
