"""The list of the points of matter that touch bodies, made in parts of the matter at the same time."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.coupled.touching_points import add_counts_kernel, list_points_kernel


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_points_are_listed_by_body_in_the_order_of_the_matter(parts, rng):
    """For two worlds of 50 points and four bodies, one of which nothing touches."""
    worlds, points, bodies = 2, 50, 4
    body = rng.choice([-1, -1, 0, 1, 3], size=(worlds, points))
    expected = np.full((worlds, points), -1)
    for w in range(worlds):
        listed = np.concatenate([np.flatnonzero(body[w] == b) for b in range(bodies)])
        expected[w, : len(listed)] = w * points + listed

    def zeros(size: int) -> wp.array:
        return wp.zeros(size, dtype=int, device="cpu")

    of, row = wp.array(body.ravel(), dtype=int, device="cpu"), wp.full(worlds * points, -2, dtype=int, device="cpu")
    counts, following = zeros(worlds * bodies * parts), zeros(worlds * bodies * parts)
    for (w, p), b in np.ndenumerate(body):
        if b >= 0:
            counts.numpy()[(w * bodies + b) * parts + p // -(-points // parts)] += 1
    first, total = zeros(worlds * bodies), zeros(worlds * bodies)
    launch(add_counts_kernel, worlds * bodies, [parts, counts], [following, total], of.device)
    inputs, outputs = [bodies, points, parts, of, total], [following, first, row]
    launch(list_points_kernel, (worlds, parts), inputs, outputs, of.device)

    assert row.numpy().reshape(worlds, points).tolist() == expected.tolist()
    count = np.array([[(own == b).sum() for b in range(bodies)] for own in body])
    begin = np.arange(worlds)[:, None] * points + np.cumsum(count, axis=1) - count
    assert total.numpy().tolist() == count.ravel().tolist()
    assert first.numpy().tolist() == begin.ravel().tolist()
