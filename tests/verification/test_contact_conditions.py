"""A single point on a surface: the four contact conditions of ChainQueen §3.2 against their closed forms.

With v_n = v . n and v_t = v - v_n n:
    sticky    0
    slip      v_t
    separate  v where v_n >= 0, else v_t
    friction  v where v_n >= 0, else v_t max(0, 1 + mu v_n / |v_t|)
"""

import functools

import numpy as np
import pytest
import warp as wp
from cases import DIMENSIONS

from warpbots.contact import CODES, coefficients, constrain
from warpbots.numerics import precision, real, real_numpy, vector
from warpbots.scene import CONDITIONS, Obstacle, Sphere

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}[precision]
KINK = 1e-3
MU = (0.0, 0.3, 1.0)


@functools.cache
def _kernel(dim: int) -> wp.Kernel:
    vec = vector(dim)
    constrain_velocity = constrain(dim)

    @wp.kernel(module=wp.get_module(f"test_contact_{dim}d"))
    def touch(v: wp.array[vec], n: wp.array[vec], condition: int, mu: wp.array[real], v_out: wp.array[vec]):
        """v' = constrain(v, n, -v . n, condition, mu, 0)."""
        i = wp.tid()
        v_out[i] = constrain_velocity(v[i], n[i], -wp.dot(v[i], n[i]), condition, mu[i], real(0.0))

    return touch


def touch(v, n, condition: str, mu: float, pull=None):
    """Velocities after contact, shape (n, dim); with weights `pull` of that shape also the gradients to v and mu."""
    v, n = (np.ascontiguousarray(a, dtype=real_numpy) for a in (v, n))
    vec = vector(v.shape[1])
    mu = np.full(len(v), mu, dtype=real_numpy)
    arrays = [
        wp.array(a, dtype=t, device="cpu", requires_grad=g)
        for a, t, g in ((v, vec, True), (n, vec, False), (mu, real, True), (v, vec, True))
    ]
    v_in, n_in, mu_in, v_out = arrays
    tape = wp.Tape()
    with tape:
        wp.launch(_kernel(v.shape[1]), len(v), [v_in, n_in, CODES[condition], mu_in], [v_out], device="cpu")
    if pull is None:
        return v_out.numpy().astype(np.float64)
    v_out.grad.assign(np.ascontiguousarray(pull, dtype=real_numpy))
    tape.backward()
    return v_in.grad.numpy().astype(np.float64), mu_in.grad.numpy().astype(np.float64)


def normals(dim: int) -> np.ndarray:
    """Axes and slopes."""
    oblique = np.array([[3.0, 4.0, 0.0], [-1.0, 2.0, 2.0], [1.0, 1.0, -1.0], [-4.0, 3.0, 12.0]])[:, :dim]
    return np.concatenate([np.eye(dim), -np.eye(dim), oblique / np.linalg.norm(oblique, axis=1, keepdims=True)])


def tangents(n: np.ndarray) -> np.ndarray:
    """One unit tangent of each normal."""
    t = np.cross(n, [0.3, -0.8, 0.52]) if n.shape[1] == 3 else np.stack([-n[:, 1], n[:, 0]], axis=1)
    return t / np.linalg.norm(t, axis=1, keepdims=True)


def expected(v: np.ndarray, n: np.ndarray, condition: str, mu: float) -> np.ndarray:
    """The closed forms, one point after the other."""
    allowed = []
    for velocity, normal in zip(v, n, strict=True):
        v_n = velocity @ normal
        v_t = velocity - v_n * normal
        if condition == "sticky":
            allowed.append(0.0 * velocity)
        elif condition == "slip":
            allowed.append(v_t)
        elif v_n >= 0.0:
            allowed.append(velocity)
        elif condition == "separate" or mu == 0.0:
            allowed.append(v_t)
        else:
            speed = np.linalg.norm(v_t)
            allowed.append(0.0 * v_t if speed == 0.0 else v_t * max(0.0, 1.0 + mu * v_n / speed))
    return np.array(allowed)


MOTIONS = {  # normal and tangential speed
    "at rest": (0.0, 0.0),
    "straight in": (-1.0, 0.0),
    "straight out": (1.0, 0.0),
    "along": (0.0, 1.0),
    "inward, sliding": (-0.5, 2.0),
    "inward, sticking for mu = 1": (-2.0, 0.5),
    "outward": (0.5, 2.0),
    "hardly inward": (-1e-6, 1.0),
    "hardly along": (-1.0, 1e-6),
}


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("mu", MU)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("motion", MOTIONS)
def test_velocity_after_contact(motion, condition, mu, dim):
    n = normals(dim)
    v_n, v_t = MOTIONS[motion]
    v = v_n * n + v_t * tangents(n)
    np.testing.assert_allclose(touch(v, n, condition, mu), expected(v, n, condition, mu), rtol=0, atol=TOLERANCE)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_no_friction_is_separation_to_the_last_bit(dim, rng):
    """friction(mu = 0) == separate, whatever coefficient comes with the latter; only friction has one in a model."""
    n = normals(dim).repeat(20, axis=0)
    v = rng.normal(size=n.shape)
    v[::5] = n[::5] * rng.choice([-1.0, 1.0], size=(len(n[::5]), 1))
    for mu in MU:
        np.testing.assert_array_equal(touch(v, n, "friction", 0.0), touch(v, n, "separate", mu))
    ball = Sphere((0.0,) * dim, 1.0)
    obstacles = [Obstacle(ball, c, 0.7, name=c) for c in CONDITIONS]
    np.testing.assert_array_equal(coefficients(tuple(obstacles)), [0.7 if c == "friction" else 0.0 for c in CONDITIONS])


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_velocity_and_gradient_are_finite_at_the_kinks(mu, condition, dim, rng):
    """At v = 0, v_t = 0, v_n = 0, on the edge of the friction cone |v_t| = -mu v_n, and where squares underflow."""
    n, t = normals(dim), tangents(normals(dim))
    for v in (0.0 * n, -n, n, t, -2.0 * n + t, -1e-30 * n, 1e-30 * t, -n + 1e-18 * t, -n + 1e-22 * t):
        pull = rng.normal(size=v.shape)
        assert np.isfinite(touch(v, n, condition, mu)).all()
        for gradient in touch(v, n, condition, mu, pull):
            assert np.isfinite(gradient).all()
            assert np.abs(gradient).max() < 10.0 * np.abs(pull).max()


SIDES = {  # normal and tangential speed, 1e-3 to either side of each kink, for mu = 0.5
    "outward": (KINK, 1.0),
    "inward": (-KINK, 1.0),
    "slips": (-2.0, 1.0 + KINK),
    "sticks": (-2.0, 1.0 - KINK),
    "slips slowly": (-KINK, KINK),
    "sticks slowly": (-4.0 * KINK, KINK),
}


@pytest.mark.verification
@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("side", SIDES)
def test_gradient_is_right_on_both_sides_of_a_kink(side, condition, dim, rng):
    """Central differences with h = 1e-6, a thousandth of the way to the kink.

    Their error is h^2/6 f''' + eps/h, and f''' is near 6 mu |v_n| / |v_t|^3 = 3e6 in the slow cases: 1e-6.
    """
    mu, h = 0.5, 1e-6
    n = normals(dim)
    v_n, v_t = SIDES[side]
    v = v_n * n + v_t * tangents(n)
    pull = rng.normal(size=v.shape)
    v_adj, mu_adj = touch(v, n, condition, mu, pull)

    def loss(v, mu):
        return (pull * touch(v, n, condition, mu)).sum(axis=1)

    for a, step in enumerate(h * np.eye(dim)):
        slope = (loss(v + step, mu) - loss(v - step, mu)) / (2 * h)
        np.testing.assert_allclose(v_adj[:, a], slope, rtol=0, atol=2e-6)
    slope = (loss(v, mu + h) - loss(v, mu - h)) / (2 * h)
    if condition == "friction":
        np.testing.assert_allclose(mu_adj, slope, rtol=0, atol=1e-8)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_friction_has_a_gradient_where_there_is_none_yet(dim, rng):
    """At mu = 0 the derivative of v_t (1 + mu v_n / |v_t|) to mu is v_n v_t / |v_t|, not zero."""
    n, t = normals(dim), tangents(normals(dim))
    v = -0.5 * n + 2.0 * t
    pull = rng.normal(size=v.shape)
    _, mu_adj = touch(v, n, "friction", 0.0, pull)
    np.testing.assert_allclose(mu_adj, -0.5 * (pull * t).sum(axis=1), rtol=0, atol=2 * TOLERANCE)
