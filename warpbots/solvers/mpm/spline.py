"""The quadratic B-spline, relative to a particle."""

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["distance", "spline", "spline_slope"]

vec3 = vector(3)


@wp.func
def spline(f: real):
    """Weights N of the three nearest nodes along one axis.

    The particle is `f` cells, in [0.5, 1.5), after the first of the three nodes.
    """
    a = real(1.5) - f
    b = f - real(1.0)
    c = f - real(0.5)
    return vec3(real(0.5) * a * a, real(0.75) - b * b, real(0.5) * c * c)


@wp.func
def spline_slope(f: real):
    """Derivatives dN/df of the three weights [1/cell]."""
    return vec3(f - real(1.5), real(2.0) - real(2.0) * f, f - real(0.5))


@wp.func
def distance(f: real):
    """Signed distances from the particle to the three nodes along one axis [cells]."""
    return vec3(-f, real(1.0) - f, real(2.0) - f)
