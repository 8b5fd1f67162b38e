"""Rounding of the positions of matter that a frame carries."""

import numpy as np
import warp as wp

from warpbots.numerics import real_numpy

__all__ = ["rounding_error"]

_ULPS = wp.constant(wp.float64(4.0 * np.finfo(real_numpy).eps))
"""Relative distance from a point of a frame within which matter is at this point up to rounding."""


@wp.func
def rounding_error(rest: wp.vec3d, p: wp.vec3d, R: wp.mat33d, x: wp.vec3d):
    """Displacement from x to the point `rest` of a frame, if they differ by rounding alone; otherwise zero.

    Without this correction, matter on a slow frame would not move: the displacement of a step may be smaller than the
    rounding of x.
    """
    place = R @ rest + p
    error = place - x
    if wp.length(error) > _ULPS * wp.length(place):
        error = wp.vec3d()
    return error


@wp.func_grad(rounding_error)
def _adj_rounding_error(rest: wp.vec3d, p: wp.vec3d, R: wp.mat33d, x: wp.vec3d, adj_ret: wp.vec3d):
    pass  # rounding has no derivative
