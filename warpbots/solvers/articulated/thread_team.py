"""The threads of a world: how many there are, and how they wait for one another.

A thread knows its number `lane` among `lanes`. On a GPU the threads of a world are one warp, on a CPU there is one.
"""

import warp as wp

from warpbots.numerics import parallel

__all__ = ["WARP", "lanes_of", "sync"]

WARP = 32
"""Threads of a warp."""


def lanes_of(device: wp.Device) -> int:
    """Number of threads for each world."""
    return WARP if parallel(device) else 1


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncwarp();
#elif WP_TILE_BLOCK_DIM > 1
    wp_cpu_tile_sync();
#endif
""")
def sync():
    """Wait for the other threads of the world, and see what they have written."""
