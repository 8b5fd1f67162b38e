"""The loop of a sweep over contacts: multiples of a change of a force are added to a run of gaps."""

import numpy as np
import warp as wp

from warpbots.numerics import real, real_numpy, vector
from warpbots.numerics.simd import add_multiples

_vec = vector(3)
FIRST, ROW, COUNT = 3, 5, 37
"""Beginnings of the runs, and their length, which no vector register divides."""


@wp.kernel(enable_backward=False, module="unique")
def add_kernel(a_out: wp.array[_vec], s: wp.array[real], v: _vec, lanes: int):
    """Add all multiples of v, by one thread after the other."""
    for lane in range(lanes):
        add_multiples(a_out, FIRST, s, ROW, v, COUNT, lane, lanes)


def test_multiples_are_added_to_the_run_alone():
    """By one thread or by several, as NumPy adds them; entries before and after the run stay as they are."""
    rng = np.random.default_rng(5)
    a, s, v = (rng.normal(size=n).astype(real_numpy) for n in ((50, 3), 60, 3))
    expected = a.copy()
    expected[FIRST : FIRST + COUNT] += s[ROW : ROW + COUNT, None] * v
    for lanes in (1, 4):
        found = wp.array(a, dtype=_vec, device="cpu")
        wp.launch(add_kernel, 1, [found, wp.array(s, dtype=real, device="cpu"), _vec(*v), lanes], device="cpu")
        np.testing.assert_allclose(found.numpy(), expected, rtol=0.0, atol=8.0 * np.finfo(real_numpy).eps)
        outside = np.r_[:FIRST, FIRST + COUNT : len(a)]
        np.testing.assert_array_equal(found.numpy()[outside], a[outside])
