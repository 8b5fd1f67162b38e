"""Projections of velocities and forces onto constraints, for solvers with explicit steps."""

import functools

import warp as wp

from warpbots.numerics import vector
from warpbots.scene import FREEDOMS

__all__ = ["projection"]

_LINE, _PLANE = wp.constant(FREEDOMS.index("line")), wp.constant(FREEDOMS.index("plane"))


@functools.cache
def projection(dim: int) -> wp.Function:
    """Warp function project(a, freedom, n) of a vector onto a constraint; it is its own adjoint."""
    vec = vector(dim)

    @wp.func
    def project(a: vec, freedom: int, n: vec):
        """n (n . a) on a line, a - n (n . a) in a plane, 0 where all is fixed."""
        along = wp.dot(n, a) * n
        left = vec()
        if freedom == _LINE:
            left = along
        if freedom == _PLANE:
            left = a - along
        return left

    return project
