"""The threads that work on one world: their number and their synchronisation.

Each thread has a number `lane` out of `lanes`. On a GPU the threads of a world are one warp; on a CPU there is one
thread.
"""

import warp as wp

from warpbots.numerics import parallel

__all__ = ["WARP", "lanes_of", "sync"]

WARP = 32
"""Threads of a warp."""


def lanes_of(device: wp.Device) -> int:
    """Number of threads that work on each world."""
    return WARP if parallel(device) else 1


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncwarp();
#elif WP_TILE_BLOCK_DIM > 1
    wp_cpu_tile_sync();
#endif
""")
def sync():
    """Wait until all threads of the world have arrived; after this call, their writes are visible."""
