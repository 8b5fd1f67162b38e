"""The rotation of a deformation gradient, against NumPy's singular value decomposition."""

import numpy as np
import pytest
import warp as wp
from cases import DIMENSIONS

from warpbots.numerics import matrix, real_numpy, rotation
from warpbots.numerics.derivative_checks import BRIEF

pytestmark = pytest.mark.verification(float32=True)
dimensions = pytest.mark.parametrize("dim", DIMENSIONS)

EPSILON = float(np.finfo(real_numpy).eps)


def nearest_rotation(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U V^T with the smallest singular value negative where det F is, and the smallest sum of two singular values."""
    U, s, Vt = np.linalg.svd(F.astype(np.float64))
    sign = np.linalg.det(U @ Vt)
    U[..., -1] *= sign[:, None]
    s[:, -1] *= sign
    return U @ Vt, s[:, -2] + s[:, -1]


def rotations_and_gradients(F: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R(F) by the library, and the gradient of G : R to F."""
    dim = F.shape[-1]
    mat, R = matrix(dim), rotation(dim)

    @wp.kernel(module="unique", module_options=BRIEF)
    def rotate(F: wp.array[mat], R_out: wp.array[mat]):
        i = wp.tid()
        R_out[i] = R(F[i])

    wide = wp.array(F.astype(real_numpy), dtype=mat, requires_grad=True)
    out = wp.zeros(len(F), dtype=mat, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(rotate, len(F), [wide], [out])
    tape.backward(grads={out: wp.array(G.astype(real_numpy), dtype=mat)})
    return out.numpy().astype(np.float64), wide.grad.numpy().astype(np.float64)


def matrices(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Undeformed, stretched, flattened, inverted and arbitrary matter, turned at random."""
    stretches = [np.ones(dim), np.linspace(4.0, 0.2, dim), np.r_[np.ones(dim - 1), 0.0], np.r_[np.ones(dim - 1), -0.5]]
    turned = [nearest_rotation(rng.normal(size=(20, dim, dim)))[0] * s for s in stretches]
    return np.concatenate([*turned, rng.normal(size=(2000, dim, dim)), np.eye(dim)[None]])


@dimensions
def test_it_is_the_nearest_rotation(dim, rng):
    """To rounding times the condition of the problem, the reciprocal of the smallest sum of two singular values."""
    F = matrices(rng, dim).astype(real_numpy)
    R, _ = rotations_and_gradients(F, np.zeros_like(F))
    expected, gap = nearest_rotation(F)
    size = np.linalg.norm(F.astype(np.float64), axis=(1, 2))
    assert (np.abs(R - expected).max(axis=(1, 2)) * gap / size).max() < 4e3 * EPSILON
    assert (np.abs(R - expected).max(axis=(1, 2)))[gap > 0.1 * size].max() < 200 * EPSILON


def test_it_is_a_rotation_even_of_a_reflection(rng):
    """Near matrices with s2 = -s3, of which no rotation is the nearest, the result still is one.

    In space: a reflection of the plane has the rotation 0/0, and nothing near it is lost.
    """
    mirrored = nearest_rotation(rng.normal(size=(5000, 3, 3)))[0] * [1.0, 1.0, -1.0]
    R, _ = rotations_and_gradients(mirrored + rng.normal(size=mirrored.shape) * 1e-9, np.zeros(mirrored.shape))
    assert np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max() < 100 * EPSILON
    assert np.abs(np.linalg.det(R) - 1.0).max() < 100 * EPSILON


@pytest.mark.verification
@dimensions
def test_gradient_is_that_of_differences(dim, rng):
    """Central differences of the independent R in random directions."""
    F = matrices(rng, dim)
    gap = nearest_rotation(F)[1]
    F = F[gap > 0.2]
    G, H, h = rng.normal(size=F.shape), rng.normal(size=F.shape), 1e-5
    _, gradient = rotations_and_gradients(F, G)
    difference = (nearest_rotation(F + h * H)[0] - nearest_rotation(F - h * H)[0]) / (2 * h)
    expected = (G * difference).sum(axis=(1, 2))
    assert np.abs((gradient * H).sum(axis=(1, 2)) - expected).max() < 1e-6 * np.abs(expected).max()
