"""Weakly compressible fluid: Tait's equation of state with the exponent 7 of water.

Monaghan 1994, "Simulating free surface flows with SPH".

    Psi = K/42 (6 J + J^-6 - 7)
    p   = -dPsi/dJ = K/7 (J^-7 - 1)
    tau = -p J I,   P = -p cof F

with the bulk modulus K = lambda + 2/3 mu = E / (3 (1 - 2 nu)), which for nu = 1/3 is E. Only damping resists shear: the
viscosity is beta mu. The stress depends on J alone, so the deformation gradient is reset to J^(1/d) I after each step:
with the accumulated shear, det F would be a small difference of large numbers. Valid for J > 0.
"""

import functools

import warp as wp

from warpbots.numerics import cofactor, matrix, real

__all__ = ["law", "without_shear"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat, cof = matrix(dim), cofactor(dim)

    @wp.func
    def bulk_modulus_of(mu: real, lam: real):
        """K = lambda + 2/3 mu."""
        return lam + real(2.0) * mu / real(3.0)

    @wp.func
    def fluid_energy(F: mat, mu: real, lam: real):
        """Psi = K/42 (J - 1)^2 (6 J^5 + 5 J^4 + ... + 2 J + 1) / J^6, which is exact near J = 1, too."""
        J = wp.determinant(F)
        r = real(1.0) / J
        lower = real(3.0) + r * (real(2.0) + r)
        return (
            bulk_modulus_of(mu, lam)
            / real(42.0)
            * (J - real(1.0))
            * (J - real(1.0))
            * r
            * (real(6.0) + r * (real(5.0) + r * (real(4.0) + r * lower)))
        )

    @wp.func
    def fluid_stress(F: mat, mu: real, lam: real):
        """tau = K/7 (J - J^-6) I."""
        J = wp.determinant(F)
        cube = real(1.0) / (J * J * J)
        return bulk_modulus_of(mu, lam) / real(7.0) * (J - cube * cube) * wp.identity(n=dim, dtype=real)

    @wp.func
    def fluid_piola(F: mat, mu: real, lam: real):
        """P = K/7 (1 - J^-7) cof F."""
        J = wp.determinant(F)
        cube = real(1.0) / (J * J * J)
        return bulk_modulus_of(mu, lam) / real(7.0) * (real(1.0) - cube * cube / J) * cof(F)

    return fluid_energy, fluid_stress, fluid_piola


@functools.cache
def without_shear(dim: int) -> wp.Function:
    """Warp function F' = J^(1/d) I of a matrix F of shape (`dim`, `dim`) with J = det F; NaN for J < 0."""
    mat = matrix(dim)
    root = real(1.0) / real(dim)

    @wp.func
    def forget_shear(F: mat):
        """J^(1/d) I."""
        return wp.pow(wp.determinant(F), root) * wp.identity(n=dim, dtype=real)

    return forget_shear
