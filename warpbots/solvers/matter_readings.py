"""Sums over the matter of a world, for the readings of solvers of soft bodies.

Sums are computed in double precision and in a fixed order, so that they repeat to the bit. On a CPU this is the order
of the points; on a GPU with n lanes, each lane first adds up every n-th point, and then the lanes are added up.
"""

import functools

import warp as wp

from warpbots.numerics import launch, launch_lanes, parallel

__all__ = ["add_up", "adj_add_up"]

_LANES = 64

_WIDE = {
    wp.float32: wp.float64, wp.vec2f: wp.vec2d, wp.vec3f: wp.vec3d,
    wp.float64: wp.float64, wp.vec2d: wp.vec2d, wp.vec3d: wp.vec3d,
}  # fmt: skip
"""Type of values -> double-precision type in which they are summed."""


def add_up(values: wp.array, total_out: wp.array) -> None:
    """Sum over the points of a world.

    Args:
        values: Values of the points, shape (worlds, n).
        total_out: Sum of the values in each world, shape (worlds,).
    """
    lanes = _LANES if parallel(values.device) else 1
    launch_lanes(_sum_kernel(values.dtype), values.shape[0], lanes, [values], [total_out], values.device)


def adj_add_up(values: wp.array, total: wp.array) -> None:
    """Adjoint of `add_up`: write the gradient with respect to `values` from the gradient with respect to `total`."""
    launch(_spread_kernel(values.dtype), values.shape, [total.grad], [values.grad], values.device)


@functools.cache
def _sum_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, lanes) that sums the values of points, for values of type `dtype`."""
    wide = _WIDE[dtype]

    @wp.kernel(module=wp.get_module(f"warpbots.sums_{dtype.__name__}"), enable_backward=False)
    def sum_points(values: wp.array2d[dtype], total_out: wp.array[dtype]):
        """S = sum_i a_i."""
        w, lane = wp.tid()
        total = wide(wp.float64(0.0))
        for i in range(lane, values.shape[1], wp.block_dim()):
            total += wide(values[w, i])
        added = wp.tile_sum(wp.tile(total, preserve_type=True))[0]
        if lane == 0:
            total_out[w] = dtype(added)

    return sum_points


@functools.cache
def _spread_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, points): the adjoint of the sum, for values of type `dtype`."""

    @wp.kernel(module=wp.get_module(f"warpbots.sums_{dtype.__name__}"), enable_backward=False)
    def spread_total(total_adj: wp.array[dtype], values_adj_out: wp.array2d[dtype]):
        """a_i* = S*."""
        w, i = wp.tid()
        values_adj_out[w, i] = total_adj[w]

    return spread_total
