"""The quadratic B-spline: weights and distances of the three nodes nearest to a particle along one axis."""

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["distance", "spline", "spline_slope"]

vec3 = vector(3)


@wp.func
def spline(f: real):
    """Weights N of the three nodes nearest to a particle along one axis.

    `f` is the distance of the particle from the first of the three nodes [cells], in [0.5, 1.5).
    """
    a = real(1.5) - f
    b = f - real(1.0)
    c = f - real(0.5)
    return vec3(real(0.5) * a * a, real(0.75) - b * b, real(0.5) * c * c)


@wp.func
def spline_slope(f: real):
    """Derivatives dN/df of the three weights of `spline` [1/cell]."""
    return vec3(f - real(1.5), real(2.0) - real(2.0) * f, f - real(0.5))


@wp.func
def distance(f: real):
    """Signed distances from the particle to the three nodes of `spline` along one axis [cells]."""
    return vec3(-f, real(1.0) - f, real(2.0) - f)
