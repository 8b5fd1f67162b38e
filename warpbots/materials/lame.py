"""Lamé's constants from Young's modulus and Poisson's ratio, as Warp functions."""

import warp as wp

from warpbots.numerics import real

__all__ = ["lame_lambda", "lame_mu"]


@wp.func
def lame_mu(E: real, nu: real):
    """mu = E / (2 (1 + nu)) [Pa]: the shear modulus."""
    return E / (real(2.0) * (real(1.0) + nu))


@wp.func
def lame_lambda(E: real, nu: real):
    """lambda = E nu / ((1 + nu) (1 - 2 nu)) [Pa]."""
    return E * nu / ((real(1.0) + nu) * (real(1.0) - real(2.0) * nu))
