"""Compressible neo-Hookean elasticity (Bonet & Wood 1997, eq. 6.28; ChainQueen eq. 13).

    Psi = mu/2 (F : F - d) - mu ln J + lambda/2 (ln J)^2
    P   = mu (F - F^-T) + lambda ln(J) F^-T
    tau = P F^T = mu (F F^T - I) + lambda ln(J) I

In 2D (d = 2) the law describes plane strain. Valid while J = det F > 0; ln J makes inverted matter NaN, which stops the
run.
"""

import warp as wp

from warpbots.materials.distortion import distortion
from warpbots.numerics import cofactor, cofactor_differential, matrix, real

__all__ = ["differential", "law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat, cof, distortion_of = matrix(dim), cofactor(dim), distortion(dim)

    @wp.func
    def neo_hookean_energy(F: mat, mu: real, lam: real):
        """Psi = mu/2 (F : F - d) - mu ln J + lambda/2 (ln J)^2."""
        log_J = wp.log(wp.determinant(F))
        return real(0.5) * (mu * distortion_of(F, log_J) + lam * log_J * log_J)

    @wp.func
    def neo_hookean_stress(F: mat, mu: real, lam: real):
        """tau = mu (F F^T - I) + lambda ln(J) I."""
        I = wp.identity(n=dim, dtype=real)
        return mu * (F @ wp.transpose(F) - I) + lam * wp.log(wp.determinant(F)) * I

    @wp.func
    def neo_hookean_piola(F: mat, mu: real, lam: real):
        """P = mu F + (lambda ln(J) - mu) F^-T."""
        J = wp.determinant(F)
        return mu * F + ((lam * wp.log(J) - mu) / J) * cof(F)

    return neo_hookean_energy, neo_hookean_stress, neo_hookean_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat, cof, change_of_cof = matrix(dim), cofactor(dim), cofactor_differential(dim)

    @wp.struct
    class NeoHookeanPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        C: cof F.
        mu: Lamé's constant mu [Pa].
        along: Derivative of (lambda ln(J) - mu) / J with respect to J [Pa].
        across: (lambda ln(J) - mu) / J [Pa].
        """

        F: mat
        C: mat
        mu: real
        along: real
        across: real

    @wp.func
    def neo_hookean_point(F: mat, mu: real, lam: real):
        """The terms of dP at F."""
        J = wp.determinant(F)
        point = NeoHookeanPoint()
        point.F = F
        point.C = cof(F)
        point.mu = mu
        point.across = (lam * wp.log(J) - mu) / J
        point.along = (lam / J - point.across) / J
        return point

    @wp.func
    def neo_hookean_differential(point: NeoHookeanPoint, dF: mat):
        """dP = mu dF + ((lambda ln(J) - mu) / J)' (cof F : dF) cof F + (lambda ln(J) - mu) / J d(cof F)."""
        dJ = wp.ddot(point.C, dF)
        return point.mu * dF + (point.along * dJ) * point.C + point.across * change_of_cof(point.F, dF)

    return NeoHookeanPoint, neo_hookean_point, neo_hookean_differential
