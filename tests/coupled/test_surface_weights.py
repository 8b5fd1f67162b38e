"""Weights with which particles exchange velocities and impulses with their nodes at a place near by."""

import functools

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import NODE, index_vector, precision, real, vector
from warpbots.solvers.coupled.surface_weights import surface_weights

SIZE = 5
X, E, Q, M = np.array([2.1, 1.8, 2.4]), np.array([0.3, -0.2, 0.25]), np.array([0.4, -1.2, 0.7]), 0.6
DIMS = pytest.mark.parametrize("dim", [2, 3])


@functools.cache
def transfer_kernel(dim: int) -> wp.Kernel:
    vec, ivec = vector(dim), index_vector(dim)
    gather, scatter, slopes = surface_weights(dim)

    @wp.kernel(module=wp.get_module(f"test_surface_weights_{dim}d"), enable_backward=False)
    def transfer(
        # state
        x: vec,
        e: vec,
        q: vec,
        m: real,
        resolution: ivec,
        nodes: wp.array[NODE],
        # out
        nodes_out: wp.array[NODE],
        gathered_out: wp.array[NODE],
        slopes_out: wp.array[vec],
    ):
        """The three transfers of one particle."""
        scatter(nodes_out, 0, resolution, x, e, q, m)
        gathered_out[0] = gather(nodes, 0, resolution, x, e)
        by_x, by_e = slopes(nodes, 0, resolution, x, e, q, m)
        slopes_out[0] = by_x
        slopes_out[1] = by_e

    return transfer


def transfer(x: np.ndarray, e: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values that a particle adds to nodes, those that it gathers from `values`, and the derivatives of the pairing."""
    dim = len(x)
    vec = vector(dim)
    nodes, out = wp.array(values, dtype=NODE, device="cpu"), wp.zeros(SIZE**dim, dtype=NODE, device="cpu")
    gathered, slope = wp.zeros(1, dtype=NODE, device="cpu"), wp.zeros(2, dtype=vec, device="cpu")
    inputs = [*(vec(*map(float, v[:dim])) for v in (x, e, Q)), M, index_vector(dim)(*[SIZE] * dim), nodes]
    wp.launch(transfer_kernel(dim), 1, inputs, [out, gathered, slope], device="cpu")
    return tuple(np.array(a.numpy(), dtype=np.float64) for a in (out, gathered, slope))


@DIMS
def test_an_impulse_has_its_momentum_and_its_angular_momentum_at_the_place(dim):
    """And a velocity field that is affine is found exactly; some of the weights are negative."""
    rounding = 1e-13 if precision == "float64" else 1e-5
    at = np.stack(np.meshgrid(*[np.arange(SIZE)] * dim, indexing="ij"), axis=-1).reshape(-1, dim).astype(float)
    slope = np.array([[0.2, -0.5, 0.1], [0.7, 0.3, -0.4], [-0.6, 0.2, 0.9]])[:dim, :dim]
    rest, x, e, q = np.array([0.3, -0.1, 0.2])[:dim], X[:dim], E[:dim], Q[:dim]
    values = np.zeros((SIZE**dim, 4))
    values[:, :dim], values[:, 3] = at @ slope.T + rest, 1.0
    out, gathered, _ = transfer(x, e, values)
    weights = out[:, :dim] @ q / (q @ q)
    assert weights.min() < -1e-3
    assert np.abs(out[:, :dim].sum(axis=0) - q).max() < rounding
    moment, expected = np.einsum("ni,nj->ij", at, out[:, :dim]), np.outer(x + e, q)
    assert np.abs((moment - moment.T) - (expected - expected.T)).max() < 10 * rounding
    assert np.abs(gathered[0, :dim] - slope @ (x + e) - rest).max() < 10 * rounding
    assert np.abs(out[:, 3] - M * np.abs(weights)).max() < rounding
    assert gathered[0, 3] == pytest.approx(np.abs(weights).sum(), rel=100 * rounding)


@DIMS
@pytest.mark.verification
def test_slopes_have_remainders_of_second_order(dim):
    rng = np.random.default_rng(0)
    values, along = rng.normal(size=(SIZE**dim, 4)), rng.normal(size=(2, dim))
    x, e, q = X[:dim], E[:dim], Q[:dim]

    def pairing(t: float) -> float:
        _, gathered, _ = transfer(x + t * along[0], e + t * along[1], values)
        return gathered[0, :dim] @ q + M * gathered[0, 3]

    _, _, slope = transfer(x, e, values)
    first = (slope * along).sum()
    remainders = [abs(pairing(t) - pairing(0.0) - t * first) for t in (4e-4, 2e-4, 1e-4)]
    assert remainders[0] > 1e-9
    for large, small in zip(remainders, remainders[1:], strict=False):
        assert large / small == pytest.approx(4.0, rel=0.05)
