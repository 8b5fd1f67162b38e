"""Projections of velocities and forces onto the directions of free motion, for solvers with explicit steps."""

import functools

import warp as wp

from warpbots.numerics import vector
from warpbots.scene import FREEDOMS

__all__ = ["projection"]

_LINE, _PLANE = wp.constant(FREEDOMS.index("line")), wp.constant(FREEDOMS.index("plane"))


@functools.cache
def projection(dim: int) -> wp.Function:
    """Warp function project(a, freedom, n), which keeps the part of a vector in the directions of free motion.

    The function is its own adjoint.
    """
    vec = vector(dim)

    @wp.func
    def project(a: vec, freedom: int, n: vec):
        """n (n . a) for motion along a line, a - n (n . a) for motion in a plane, 0 for a fixed point."""
        along = wp.dot(n, a) * n
        left = vec()
        if freedom == _LINE:
            left = along
        if freedom == _PLANE:
            left = a - along
        return left

    return project
