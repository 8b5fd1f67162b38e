"""The law of a pneumatic cell at single points: its target, its stress and the derivatives, inverted matter included."""

import numpy as np
import pytest
import warp as wp
from soft_bodies import nearest

from warpbots.actuation_laws import cell_functions
from warpbots.numerics import matrix, real, real_numpy, vector

pytestmark = pytest.mark.verification(float32=True)

TIGHT = 1e-12 if real_numpy is np.float64 else 1e-4
_vec, _mat = vector(3), matrix(3)
_stress, _frame, _change = cell_functions()


@wp.kernel
def stress_kernel(F: wp.array[_mat], k: wp.array[real], a: wp.array[real], P_out: wp.array[_mat]):
    i = wp.tid()
    P_out[i] = _stress(F[i], k[i], a[i])


@wp.kernel(enable_backward=False)
def change_kernel(F: wp.array[_mat], a: wp.array[real], dF: wp.array[_mat], da: wp.array[real], out: wp.array[_mat]):
    i = wp.tid()
    U, s, r, V = _frame(F[i], a[i])
    out[i] = U @ _change(s, r, a[i], wp.transpose(U) @ dF[i] @ V, da[i]) @ wp.transpose(V)


def array(values, dtype=_mat, grad=False):
    return wp.array(np.asarray(values, dtype=real_numpy), dtype=dtype, requires_grad=grad)


def stress(F, a, k=1.0):
    P = wp.zeros(len(F), dtype=_mat)
    wp.launch(stress_kernel, len(F), [array(F), array(np.full(len(F), k), real), array(a, real), P])
    return P.numpy().astype(float)


def change(F, a, dF, da):
    out = wp.zeros(len(F), dtype=_mat)
    wp.launch(change_kernel, len(F), [array(F), array(a, real), array(dF), array(da, real), out])
    return out.numpy().astype(float)


def rotated(rng, s):
    """Matrices with these singular values, the last of them with a sign."""
    U, V = (np.linalg.qr(rng.normal(size=(len(s), 3, 3)))[0] for _ in range(2))
    U, V = (Q * np.sign(np.linalg.det(Q))[:, None, None] for Q in (U, V))
    return U * np.asarray(s)[:, None, :] @ np.swapaxes(V, 1, 2)


def points(rng):
    """Deformation gradients at rest, with equal singular values, at random, flat and inverted; with volumes."""
    s = [np.ones((20, 3)), np.tile([1.2, 0.8, 0.8], (20, 1)), np.tile([1.3, 1.3, 0.7], (20, 1))]
    s += [rng.uniform(0.6, 1.6, (100, 3)), np.tile([1.0, 1.0, 1e-9], (20, 1))]
    s += [rng.uniform([0.6, 0.6, -0.5], [2.0, 2.0, -0.1], (100, 3))]
    F = np.concatenate([np.tile(np.eye(3), (20, 1, 1)), rotated(rng, np.concatenate(s))])
    a = rng.uniform(0.5, 1.5, len(F))
    a[:10] = 1.0
    return F, a


def test_the_target_is_the_nearest_matrix_of_that_volume(rng):
    """As found by Newton's method in r and the multiplier; and no matrix near it with this volume is nearer."""
    F, a = points(rng)
    R = F - stress(F, a)
    np.testing.assert_allclose(np.linalg.det(R), a, rtol=TIGHT)
    np.testing.assert_allclose(R, nearest(F, a), atol=10 * TIGHT)
    for _ in range(20):
        other = R + 0.3 * rng.normal(size=R.shape)
        volume = np.linalg.det(other)
        other = other[volume > 0] * np.cbrt(a / np.where(volume > 0, volume, 1.0))[volume > 0, None, None]
        further = np.linalg.norm(F[volume > 0] - other, axis=(1, 2))
        assert (further >= np.linalg.norm((F - R)[volume > 0], axis=(1, 2)) - TIGHT).all()


@pytest.mark.parametrize(
    "s", [(3.0, 2.0, 1.2), (2.5, 2.0, 0.9), (40.0, 3.0, 1.0), (2.5, 2.5, 2.5), (1e-3, 1e-3, -1e-3), (30.0, 9.0, -5.0)]
)
@pytest.mark.parametrize("a", [0.02, 1.0, 1.98])
def test_far_from_rest_the_volume_is_still_met(s, a, rng):
    """Stretched so far that the smallest value alone makes up for it, crushed, and turned inside out."""
    F = rotated(rng, np.array([s]))
    R = F - stress(F, np.array([a]))
    d = R - F
    large = max(1.0, np.abs(F).max()) ** 3
    np.testing.assert_allclose(np.linalg.det(R), a, atol=TIGHT * large)
    along = d[0] @ R[0].T  # R - F is a multiple of R^-T
    np.testing.assert_allclose(along, np.eye(3) * np.trace(along) / 3, atol=TIGHT * large)


@pytest.mark.parametrize("rho", [0.6, 0.8, 1.0, 1.3])
def test_a_cell_that_shrinks_gives_way_to_changes_of_shape(rho, rng):
    """With stretches s in all directions: by (rho - 1) / (2 rho - 1) of its stiffness, rho^3 = a / s^3."""
    s, dF = 1.1, rng.normal(size=(1, 3, 3))
    dF = dF + np.swapaxes(dF, 1, 2)
    dF -= np.eye(3) * np.trace(dF[0]) / 3
    found = change(s * np.eye(3)[None], [(rho * s) ** 3], dF, [0.0])
    np.testing.assert_allclose(found, (rho - 1) / (2 * rho - 1) * dF, atol=100 * TIGHT)


def test_at_rest_there_is_no_stress():
    F = np.eye(3)[None]
    assert np.abs(stress(F, [1.0])).max() < 4 * np.finfo(real_numpy).eps


@pytest.mark.verification
def test_derivatives_are_those_of_differences(rng):
    """Of the stress to F and to a, and symmetric; of the energy |F - R|^2 / 2, the stress; to 1e-8."""
    F, a = points(rng)
    e = 1e-5

    def difference(f, dF, da):
        def at(t):
            return f(F + t * e * dF, a + t * e * da)

        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * e)

    for _ in range(3):
        dF, da = rng.normal(size=F.shape), rng.normal(size=a.shape)

        np.testing.assert_allclose(change(F, a, dF, da), difference(stress, dF, da), atol=1e-8)
        other, none = rng.normal(size=F.shape), np.zeros(len(F))
        pairs = [(change(F, a, p, none) * q).sum((1, 2)) for p, q in ((dF, other), (other, dF))]
        np.testing.assert_allclose(*pairs, atol=1e-11)
        curved = (change(F, a, dF, none) * dF).sum((1, 2))
        assert (curved <= (dF**2).sum((1, 2)) + 1e-12).all()
        slope = difference(lambda F, a: (stress(F, a) ** 2).sum((1, 2)) / 2, dF, 0.0 * a)
        np.testing.assert_allclose((stress(F, a) * dF).sum((1, 2)), slope, atol=1e-8)


@pytest.mark.verification
def test_the_adjoint_is_the_transpose(rng):
    F, a = points(rng)
    k, weight = rng.uniform(1, 2, len(F)), rng.normal(size=F.shape)
    inputs = [array(F, grad=True), array(k, real, True), array(a, real, True)]
    P = wp.zeros(len(F), dtype=_mat, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stress_kernel, len(F), [*inputs, P])
    tape.backward(grads={P: array(weight)})
    by_F, by_k, by_a = (i.grad.numpy() for i in inputs)
    dF = rng.normal(size=F.shape)
    none = np.zeros(len(F))
    np.testing.assert_allclose((by_F * dF).sum((1, 2)), k * (weight * change(F, a, dF, none)).sum((1, 2)), atol=1e-11)
    np.testing.assert_allclose(by_k, (weight * stress(F, a)).sum((1, 2)), atol=1e-12)
    np.testing.assert_allclose(by_a, k * (weight * change(F, a, 0 * F, none + 1.0)).sum((1, 2)), atol=1e-11)
