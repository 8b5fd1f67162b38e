"""The sums over the nodes around a particle, against NumPy in double precision."""

import os
import subprocess
import sys

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import NODE, index_vector, matrix, precision, real, vector
from warpbots.solvers.mpm.shared_grid import stencil

EPS = {"float32": 2e-6, "float64": 4e-15}[precision]
SHAPE = {2: (7, 9), 3: (7, 6, 9)}


def kernels(dim):
    """Kernels that write what `gather`, `slope`, `scatter` and `scatter_between` compute, over particles."""
    s, vec, mat, ivec = stencil(dim), vector(dim), matrix(dim), index_vector(dim)

    @wp.kernel(module="unique", enable_backward=False)
    def read(
        grid: wp.array[NODE], shape: ivec, first: int, x: wp.array[vec], q: wp.array[vec], m: wp.array[real],
        A: wp.array[mat], h_out: wp.array[NODE], M_out: wp.array[mat], slope_out: wp.array[vec],
    ):  # fmt: skip
        p = wp.tid()
        h, M = s.gather(grid, first, shape, x[p])
        h_out[p] = h
        M_out[p] = M
        slope_out[p] = s.slope(grid, first, shape, x[p], q[p], m[p], A[p])

    @wp.kernel(module="unique", enable_backward=False)
    def write(
        grid_out: wp.array[NODE], shape: ivec, first: int, x: wp.array[vec], q: wp.array[vec], m: wp.array[real],
        A: wp.array[mat], low: int, high: int,
    ):  # fmt: skip
        p = wp.tid()
        if low < 0:
            s.scatter(grid_out, first, shape, x[p], q[p], m[p], A[p])
        else:
            s.scatter_between(grid_out, first, shape, x[p], q[p], m[p], A[p], low, high)

    return read, write


def splines(x):
    """First node, weights and their derivatives of a particle, in double precision."""
    first = np.floor(x - 0.5).astype(int)
    f = x - first
    weights = np.stack([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1.0) ** 2, 0.5 * (f - 0.5) ** 2])
    return first, f, weights, np.stack([f - 1.5, 2.0 - 2.0 * f, f - 0.5])


def nodes_of(x):
    """Index, weight, gradient of the weight, and distance of each node around a particle."""
    first, f, w, dw = splines(x)
    for offset in np.ndindex(*(3,) * len(x)):
        each = np.array([w[k, a] for a, k in enumerate(offset)])
        slope = [dw[k, a] * np.prod(np.delete(each, a)) for a, k in enumerate(offset)]
        yield tuple(first + offset), each.prod(), np.array(slope), offset - f


def moved(values, dtype):
    return wp.array(values, dtype=dtype, device="cpu")


@pytest.mark.parametrize("dim", [2, 3])
def test_sums_over_nodes(dim):
    """In the second of two worlds, at random places and where a stencil touches the ends of the grid."""
    rng, shape, count = np.random.default_rng(3), np.array(SHAPE[dim]), 40
    x = 0.5 + rng.random((count, dim)) * (shape - 2.0)
    x[:3], x[3] = np.array([0.5, 1.0, 1.5])[:, None], shape - 1.5 - 1e-5
    x = x.astype(precision).astype(float)
    q, m, A = rng.normal(size=(count, dim)), rng.random(count), rng.normal(size=(count, dim, dim))
    values = rng.normal(size=(2, *shape, 4))
    values[..., dim:3] = 0.0  # unused in 2D
    momentum = np.array([*range(dim), 3])
    h, M, slope = np.zeros((count, 4)), np.zeros((count, dim, dim)), np.zeros((count, dim))
    sums = {bounds: np.zeros_like(values) for bounds in ((-1, -1), (2, 4))}
    for p in range(count):
        for node, w, dw, d in nodes_of(x[p]):
            own = values[(1, *node)]
            affine = np.zeros(4)
            affine[momentum] = [*(q[p] + A[p] @ d), m[p]]
            h[p] += w * own
            M[p] += w * np.outer(own[:dim], d)
            slope[p] += dw * (affine @ own)
            for (low, high), total in sums.items():
                if low < 0 or low <= node[0] < high:
                    total[(1, *node)] += w * affine
    vec, mat = vector(dim), matrix(dim)
    inputs = [index_vector(dim)(*map(int, shape)), int(np.prod(shape[:-1]))]
    inputs += [moved(x, vec), moved(q, vec), moved(m, real), moved(A, mat)]
    out = [wp.zeros(count, dtype=t, device="cpu") for t in (NODE, mat, vec)]
    read, write = kernels(dim)
    wp.launch(read, count, [moved(values.reshape(-1, 4), NODE), *inputs], out, device="cpu")
    for array, expected in zip(out, (h, M, slope), strict=True):
        np.testing.assert_allclose(array.numpy(), expected, atol=EPS * 8)
    for bounds, expected in sums.items():
        grid = wp.zeros(values.size // 4, dtype=NODE, device="cpu")
        wp.launch(write, count, [grid, *inputs, *bounds], device="cpu")
        np.testing.assert_allclose(grid.numpy().reshape(values.shape), expected, atol=EPS * 8)


@pytest.mark.slow
def test_sums_over_nodes_as_on_a_gpu():
    """The same test of the code that a GPU runs."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "sums and not gpu",
    ]
    run = subprocess.run(
        words, env=os.environ | {"WARPBOTS_PARALLEL": "1"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert "2 passed" in run.stdout
