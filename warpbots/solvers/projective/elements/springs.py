"""Springs along a line, for bars and fibres: an energy that depends on the length of y = F."""

import warp as wp

from warpbots.actuation_laws import fibre_pull
from warpbots.numerics import real, vector
from warpbots.solvers.projective.elements.generator.energy import Energy, one
from warpbots.solvers.projective.elements.generator.family import rows

__all__ = ["SPRING"]

_vec, _line = vector(3), rows(3, 1)
_pull = fibre_pull(3)


@wp.func
def _along(F: _line):
    """y."""
    return _vec(F[0, 0], F[1, 0], F[2, 0])


@wp.func
def density(F: _line, k: real, L: real):
    """k/2 (|y| - L)^2."""
    d = wp.length(_along(F)) - L
    return real(0.5) * k * d * d


@wp.func
def stress(F: _line, k: real, L: real):
    """k (y - L y / |y|)."""
    return wp.matrix_from_cols(_pull(_along(F), k, L))


SPRING = Energy("spring", density, stress, one)
"""Psi = k/2 (|y| - L)^2 for the stretch L at rest. Crushed to a point, it has no force, the mean of all directions."""
