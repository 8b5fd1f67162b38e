"""Weights with which particles exchange velocities and impulses with their nodes at a place near by."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import NODE, index_vector, precision, real, vector
from warpbots.solvers.coupled.surface_weights import gather, scatter, slopes

vec3, ivec3 = vector(3), index_vector(3)
SIZE = 5
X, E, Q, M = np.array([2.1, 1.8, 2.4]), np.array([0.3, -0.2, 0.25]), np.array([0.4, -1.2, 0.7]), 0.6


@wp.kernel(enable_backward=False)
def transfer_kernel(
    # state
    x: vec3,
    e: vec3,
    q: vec3,
    m: real,
    nodes: wp.array[NODE],
    # out
    nodes_out: wp.array[NODE],
    gathered_out: wp.array[NODE],
    slopes_out: wp.array[vec3],
):
    """The three transfers of one particle."""
    resolution = ivec3(SIZE, SIZE, SIZE)
    scatter(nodes_out, 0, resolution, x, e, q, m)
    gathered_out[0] = gather(nodes, 0, resolution, x, e)
    by_x, by_e = slopes(nodes, 0, resolution, x, e, q, m)
    slopes_out[0] = by_x
    slopes_out[1] = by_e


def transfer(x: np.ndarray, e: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values that a particle adds to nodes, those that it gathers from `values`, and the derivatives of the pairing."""
    nodes, out = wp.array(values, dtype=NODE, device="cpu"), wp.zeros(SIZE**3, dtype=NODE, device="cpu")
    gathered, slope = wp.zeros(1, dtype=NODE, device="cpu"), wp.zeros(2, dtype=vec3, device="cpu")
    inputs = [vec3(*map(float, x)), vec3(*map(float, e)), vec3(*map(float, Q)), M, nodes]
    wp.launch(transfer_kernel, 1, inputs, [out, gathered, slope], device="cpu")
    return tuple(np.array(a.numpy(), dtype=np.float64) for a in (out, gathered, slope))


def test_an_impulse_has_its_momentum_and_its_angular_momentum_at_the_place():
    """And a velocity field that is affine is found exactly; some of the weights are negative."""
    rounding = 1e-13 if precision == "float64" else 1e-5
    at = np.stack(np.meshgrid(*[np.arange(SIZE)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(float)
    slope = np.array([[0.2, -0.5, 0.1], [0.7, 0.3, -0.4], [-0.6, 0.2, 0.9]])
    affine = at @ slope.T + [0.3, -0.1, 0.2]
    out, gathered, _ = transfer(X, E, np.c_[affine, np.ones(SIZE**3)])
    weights = out[:, :3] @ Q / (Q @ Q)
    assert weights.min() < -1e-3
    assert np.abs(out[:, :3].sum(axis=0) - Q).max() < rounding
    assert np.abs(np.cross(at, out[:, :3]).sum(axis=0) - np.cross(X + E, Q)).max() < 10 * rounding
    assert np.abs(gathered[0, :3] - slope @ (X + E) - [0.3, -0.1, 0.2]).max() < 10 * rounding
    assert np.abs(out[:, 3] - M * np.abs(weights)).max() < rounding
    assert gathered[0, 3] == pytest.approx(np.abs(weights).sum(), rel=100 * rounding)


@pytest.mark.verification
def test_slopes_have_remainders_of_second_order():
    rng = np.random.default_rng(0)
    values, along = rng.normal(size=(SIZE**3, 4)), rng.normal(size=(2, 3))

    def pairing(t: float) -> float:
        _, gathered, _ = transfer(X + t * along[0], E + t * along[1], values)
        return gathered[0, :3] @ Q + M * gathered[0, 3]

    _, _, slope = transfer(X, E, values)
    first = (slope * along).sum()
    remainders = [abs(pairing(t) - pairing(0.0) - t * first) for t in (4e-4, 2e-4, 1e-4)]
    assert remainders[0] > 1e-9
    for large, small in zip(remainders, remainders[1:], strict=False):
        assert large / small == pytest.approx(4.0, rel=0.05)
