"""Gradients of shape functions."""

from fractions import Fraction

import numpy as np
import pytest

from warpbots.solvers.projective.elements.reference_elements import LINE, TETRAHEDRON, TRIANGLE


def exact(x: np.ndarray) -> np.ndarray:
    """Products of the gradients of the shape functions of a simplex, in rational numbers until the end."""
    x = [[Fraction(float(c)) for c in p] for p in x]
    edges = [[a - b for a, b in zip(p, x[0], strict=True)] for p in x[1:]]
    n = len(edges)
    rows = [[sum(a * b for a, b in zip(e, f, strict=True)) for f in edges] for e in edges]
    rows = [row + [Fraction(i == j) for j in range(n)] for i, row in enumerate(rows)]
    for i in range(n):  # Gauss and Jordan
        rows[i] = [a / rows[i][i] for a in rows[i]]
        for j in set(range(n)) - {i}:
            rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    inner = [row[n:] for row in rows]
    first = [-sum(column) for column in zip(*inner, strict=True)]
    return np.array([[-sum(first), *first], *([f, *row] for f, row in zip(first, inner, strict=True))], dtype=float)


@pytest.mark.parametrize("simplex", [LINE, TRIANGLE, TETRAHEDRON], ids=lambda e: e.name)
@pytest.mark.parametrize("height", [1.0, 1e-3, 1e-6])
def test_slivers_lose_as_many_digits_as_they_are_flat(simplex, height, rng):
    """The error is that of a stable inverse, the rounding over the height; by the squared edges it was over its square."""
    corners = len(simplex.shares)
    for _ in range(10):
        x = rng.uniform(-1, 1, (corners, 3))
        x[-1] = x[:-1].mean(axis=0) + height * (x[-1] - x[:-1].mean(axis=0))
        expected = exact(x)
        node = np.arange(corners)[None]
        got = simplex.products(x, node)[0] / simplex.volumes(x, node)[0]
        assert np.abs(got - expected).max() < 1e-13 / min(height, 0.1) ** (corners > 2) * np.abs(expected).max()
