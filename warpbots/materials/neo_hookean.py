"""Compressible neo-Hookean elasticity (Bonet & Wood 1997, eq. 6.28; ChainQueen eq. 13).

    Psi = mu/2 (F : F - d) - mu ln J + lambda/2 (ln J)^2
    P   = mu (F - F^-T) + lambda ln(J) F^-T
    tau = P F^T = mu (F F^T - I) + lambda ln(J) I

In 2D (d = 2) it is plane strain. Valid while J = det F > 0; ln J turns a material that has been inverted into a NaN,
which stops the run.
"""

import warp as wp

from warpbots.math import cofactor, matrix, real

__all__ = ["law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat, cof = matrix(dim), cofactor(dim)
    d = real(dim)

    @wp.func
    def neo_hookean_energy(F: mat, mu: real, lam: real):
        """Psi = mu/2 (F : F - d) - mu ln J + lambda/2 (ln J)^2."""
        log_J = wp.log(wp.determinant(F))
        return real(0.5) * mu * (wp.ddot(F, F) - d) - mu * log_J + real(0.5) * lam * log_J * log_J

    @wp.func
    def neo_hookean_stress(F: mat, mu: real, lam: real):
        """Tau = mu (F F^T - I) + lambda ln(J) I."""
        I = wp.identity(n=dim, dtype=real)
        return mu * (F @ wp.transpose(F) - I) + lam * wp.log(wp.determinant(F)) * I

    @wp.func
    def neo_hookean_piola(F: mat, mu: real, lam: real):
        """P = mu F + (lambda ln(J) - mu) F^-T."""
        J = wp.determinant(F)
        return mu * F + ((lam * wp.log(J) - mu) / J) * cof(F)

    return neo_hookean_energy, neo_hookean_stress, neo_hookean_piola
