"""Sums and maxima over the threads of a block.

A CPU has one thread per block, and these functions return their argument. Warp's own expression for the same,
``wp.tile_sum(wp.tile(x))[0]``, moves the sum to the memory that the threads of a block share. On a CPU this memory
belongs to the module, so that two threads of a process could not run its kernels at the same time.
"""

import functools

import warp as wp

__all__ = ["largest_of_lanes", "sum_of_lanes"]


def _over_lanes(combined: str) -> str:
    """Native code that combines the values of all threads.

    Args:
        combined: Expression for the combination of the tile `own` with the values of all threads.
    """
    return f"""
    auto value = x;
    auto own = wp::tile<decltype(value)>(value);
    auto all = wp::{combined};
    return wp::tile_extract(all, 0);
"""


@functools.cache
def sum_of_lanes(dtype: type) -> wp.Function:
    """Warp function of a value of type `dtype`: the sum over the threads of the block, for all its threads."""

    @wp.func_native(_over_lanes("tile_sum(own)"))
    def sum_over_lanes(x: dtype) -> dtype:
        """Sum of the values x of all threads."""

    return sum_over_lanes


@functools.cache
def largest_of_lanes(dtype: type) -> wp.Function:
    """Warp function of a number of type `dtype`: the largest over the threads of the block, NaN if any is NaN."""

    @wp.func_native(_over_lanes("tile_reduce_impl([](auto a, auto b) { return b <= a || wp::isnan(a) ? a : b; }, own)"))
    def largest_over_lanes(x: dtype) -> dtype:
        """Largest of the numbers x of all threads, or NaN."""

    return largest_over_lanes
