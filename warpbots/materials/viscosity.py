"""Kelvin-Voigt damping: a time beta, multiplied by the elastic stress for the strain rate in place of the strain.

    d     = (L + L^T)/2, the rate of deformation, with L = dv/dx
    tau_v = beta (2 mu d + lambda' tr(d) I)

tau_v is a Kirchhoff stress; mu and lambda are Lamé's constants of the undeformed material, for every law. An added
incompressibility with exponent 2 gives lambda' = lambda + 2 K, otherwise lambda' = lambda (higher exponents have no
stiffness at J = 1). Small vibrations of angular frequency omega have the damping ratio beta omega / 2. The stress is
objective, symmetric, and never adds energy: tau_v : d = beta (2 mu d : d + lambda' (tr d)^2) >= 0.
"""

import functools

import warp as wp

from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import matrix, real

__all__ = ["viscous_stress"]


@functools.cache
def viscous_stress(incompressibility: int, dim: int) -> wp.Function:
    """Warp function tau_v(L, E, nu, beta) [Pa] of the velocity gradient L = dv/dx [1/s].

    Args:
        incompressibility: Even exponent of the added volumetric energy; 0 for no added energy.
        dim: 2 or 3.
    """
    mat = matrix(dim)
    added = real(2.0 if incompressibility == 2 else 0.0)

    @wp.func
    def kelvin_voigt_stress(L: mat, E: real, nu: real, beta: real):
        """tau_v = beta (2 mu d + lambda' tr(d) I)."""
        d = real(0.5) * (L + wp.transpose(L))
        K = E / (real(3.0) * (real(1.0) - real(2.0) * nu))
        lam = lame_lambda(E, nu) + added * K
        return beta * (real(2.0) * lame_mu(E, nu) * d + lam * wp.trace(d) * wp.identity(n=dim, dtype=real))

    return kelvin_voigt_stress
