"""The pull-back of contacts: gradients with respect to the positions of nodes, against differences."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import real, real_numpy, vector
from warpbots.solvers.projective.contact.contact_adjoint import ContactAtEnd, Geometry, pull_back
from warpbots.solvers.projective.contact.pair_arrays import EDGES, FACE, NEAREST
from warpbots.solvers.projective.contact.pair_geometry import plane_of

_vec, _vec4, _rows = vector(3), vector(4), wp.types.matrix((4, 3), real)
KINDS = [int(FACE), int(EDGES), int(NEAREST) + int(FACE), int(NEAREST) + int(EDGES)]


@wp.kernel(enable_backward=False, module="unique")
def plane_kernel(
    kind: int, X: wp.array[_rows], n_out: wp.array[_vec], phi_out: wp.array[real], weight_out: wp.array[_vec4]
):  # fmt: skip
    """Normal n, distance n . sum a_k x_k and weights a of pairs."""
    i = wp.tid()
    n, weight, _holds = plane_of(kind, real(-1.0), _vec(), _vec4(), X[i][0], X[i][1], X[i][2], X[i][3])
    n_out[i] = n
    phi_out[i] = wp.dot(n, weight @ X[i])
    weight_out[i] = weight


@wp.kernel(enable_backward=False, module="unique")
def pull_kernel(
    kind: int, X: wp.array[_rows], n: wp.array[_vec], weight: wp.array[_vec4], n_adj: wp.array[_vec],
    phi_adj: wp.array[real], weight_adj: wp.array[_vec4], X_adj_out: wp.array[_rows],
):  # fmt: skip
    """Gradients with respect to the positions of the nodes of pairs."""
    i = wp.tid()
    g = Geometry()
    g.kind = kind
    g.side = real(-1.0)
    g.slope = real(1.0)
    g.a = X[i][0]
    g.b = X[i][1]
    g.c = X[i][2]
    g.d = X[i][3]
    g.weight = weight[i]
    by = ContactAtEnd()
    by.normal = n_adj[i]
    by.distance = phi_adj[i]
    X_adj_out[i] = pull_back(g, n[i], by, weight_adj[i])


@pytest.mark.verification
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_positions_are_those_of_differences(kind, rng):
    """Of the distance, the normal and the weights of every kind of pair: relative 1e-6."""
    count, step = 40, 1e-6
    X = rng.uniform(-1.0, 1.0, (count, 4, 3))
    adjoints = [rng.normal(size=(count, *shape)) for shape in ((3,), (), (4,))]

    def array(values: np.ndarray, dtype: type) -> wp.array:
        return wp.array(values.astype(real_numpy), dtype=dtype, device="cpu")

    types = (_vec, real, _vec4)

    def planes(X: np.ndarray) -> list[np.ndarray]:
        outs = [wp.zeros(count, dtype=t, device="cpu") for t in types]
        wp.launch(plane_kernel, count, [kind, array(X, _rows)], outs, device="cpu")
        return [out.numpy() for out in outs]

    def value(X: np.ndarray) -> np.ndarray:
        return sum((a * v).reshape(count, -1).sum(axis=1) for a, v in zip(adjoints, planes(X), strict=True))

    n, _, weight = planes(X)
    found = wp.zeros(count, dtype=_rows, device="cpu")
    inputs = [array(X, _rows), array(n, _vec), array(weight, _vec4), *map(array, adjoints, types)]
    wp.launch(pull_kernel, count, [kind, *inputs], [found], device="cpu")
    direction = rng.normal(size=X.shape)
    slope = (found.numpy() * direction).sum(axis=(1, 2))
    difference = (value(X + step * direction) - value(X - step * direction)) / (2.0 * step)
    smooth = np.abs(difference) < 1e2  # random edges may be nearly parallel
    assert smooth.sum() > 30
    np.testing.assert_allclose(slope[smooth], difference[smooth], rtol=1e-6, atol=1e-6)
