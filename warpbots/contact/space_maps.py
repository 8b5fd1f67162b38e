"""Maps between vectors of a scene in the precision of the process, and vectors in 3D in double precision."""

import functools

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["space_maps"]


@functools.cache
def space_maps(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions that map a vector of `dim` components to a vector in 3D in double precision, and back."""
    vec = vector(dim)

    @wp.func
    def in_space(x: vec):
        """The vector x in 3D, with z = 0 if `dim` is 2."""
        y = wp.vec3d()
        for a in range(dim):
            y[a] = wp.float64(x[a])
        return y

    @wp.func
    def from_space(y: wp.vec3d):
        """The first `dim` components of y."""
        x = vec()
        for a in range(dim):
            x[a] = real(y[a])
        return x

    return in_space, from_space
