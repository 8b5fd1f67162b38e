"""A Maxwell branch: a spring and a dashpot in series, at finite strains.

Finite linear viscoelasticity in logarithmic strains, integrated by the exponential map (Reese & Govindjee 1998): the
branch has an elastic deformation G of its own. It follows the motion as the deformation gradient does, and relaxes:

    e   = dev ln(G G^T) / 2                          (logarithmic strain of the spring, without its volume)
    Psi = mu e : e
    tau = 2 mu e
    de/dt = - e / T   at constant strain, so that   e' = exp(-dt/T) e   is exact for a step dt

for the shear modulus mu and the relaxation time T. As e' has the axes of e, G' = exp(e' - e) G, which has the rotation
and the determinant of G. The dashpot dissipates 2 mu e : e / T >= 0. In 2D, dev is that of the plane.
"""

import functools

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["maxwell", "relaxation"]


@functools.cache
def _deviator(dim: int) -> wp.Function:
    mat, strain = matrix(dim), log_strain(dim)
    d = real(dim)

    @wp.func
    def spring_strain(G: mat):
        """e = dev ln(G G^T) / 2."""
        e = strain(G)
        return e - wp.trace(e) / d * wp.identity(n=dim, dtype=real)

    return spring_strain


@functools.cache
def maxwell(dim: int) -> tuple[wp.Function, wp.Function]:
    """Psi(G, mu) and tau(G, mu) [Pa] of the elastic deformation of the spring, of shape (`dim`, `dim`)."""
    mat, spring_strain = matrix(dim), _deviator(dim)

    @wp.func
    def branch_energy(G: mat, mu: real):
        """Psi = mu e : e."""
        e = spring_strain(G)
        return mu * wp.ddot(e, e)

    @wp.func
    def branch_stress(G: mat, mu: real):
        """tau = 2 mu e."""
        return real(2.0) * mu * spring_strain(G)

    return branch_energy, branch_stress


@functools.cache
def relaxation(dim: int) -> wp.Function:
    """Warp function G'(G, T, dt): the elastic deformation of the spring after a time dt [s] at constant strain."""
    mat, spring_strain, exp = matrix(dim), _deviator(dim), exp_symmetric(dim)

    @wp.func
    def relaxed(G: mat, T: real, dt: real):
        """G' = exp((exp(-dt/T) - 1) e) G."""
        x = real(0.5) * dt / T
        lost = real(2.0) * wp.exp(-x) * wp.sinh(x)  # 1 - exp(-dt/T) without a difference of nearly equal numbers
        return exp(-lost * spring_strain(G)) @ G

    return relaxed
