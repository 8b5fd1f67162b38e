"""The list of the points of matter that touch bodies, made in parts of the matter at the same time."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.articulated.exchange_arrays import Exchange
from warpbots.solvers.coupled.touching_points import add_counts_kernel, count_points_kernel, list_points_kernel


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_points_are_listed_by_body_in_the_order_of_the_matter(parts, rng):
    """For two worlds of 50 points and four bodies, one of which nothing touches."""
    worlds, points, bodies = 2, 50, 4
    body = rng.choice([-1, -1, 0, 1, 3], size=(worlds, points))
    expected = np.full((worlds, points), -1)
    for w in range(worlds):
        listed = np.concatenate([np.flatnonzero(body[w] == b) for b in range(bodies)])
        expected[w, : len(listed)] = w * points + listed

    of, counts = (
        wp.array(body.ravel(), dtype=int, device="cpu"),
        wp.zeros(worlds * bodies * parts, dtype=int, device="cpu"),
    )
    found, row = Exchange(), wp.full(worlds * points, -2, dtype=int, device="cpu")
    found.first, found.count = (wp.zeros(worlds * bodies, dtype=int, device="cpu") for _ in range(2))
    sizes = [bodies, points, parts]
    launch(count_points_kernel, (worlds, parts), [*sizes, of], [counts], of.device)
    launch(add_counts_kernel, worlds * bodies, [parts], [counts, found], of.device)
    launch(list_points_kernel, (worlds, parts), [*sizes, of], [counts, found, row], of.device)

    assert row.numpy().reshape(worlds, points).tolist() == expected.tolist()
    count = np.array([[(own == b).sum() for b in range(bodies)] for own in body])
    first = np.arange(worlds)[:, None] * points + np.cumsum(count, axis=1) - count
    assert found.count.numpy().tolist() == count.ravel().tolist()
    assert found.first.numpy().tolist() == first.ravel().tolist()
