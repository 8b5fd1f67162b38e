"""Fixed corotated elasticity (Stomakhin et al. 2012, "Energetically consistent invertible elasticity").

Equation 12 of the ChainQueen paper.

    Psi = mu |F - R|^2 + lambda/2 (J - 1)^2
    P   = 2 mu (F - R) + lambda (J - 1) J F^-T
    tau = P F^T = 2 mu (F - R) F^T + lambda (J - 1) J I

with R the rotation of F. Finite and restoring for inverted matter too.
"""

import warp as wp

from warpbots.math import cofactor, matrix, real, rotation

__all__ = ["law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat = matrix(dim)
    R, cof = rotation(dim), cofactor(dim)

    @wp.func
    def fixed_corotated_energy(F: mat, mu: real, lam: real):
        """Psi = mu |F - R|^2 + lambda/2 (J - 1)^2."""
        D = F - R(F)
        J = wp.determinant(F)
        return mu * wp.ddot(D, D) + real(0.5) * lam * (J - real(1.0)) * (J - real(1.0))

    @wp.func
    def fixed_corotated_stress(F: mat, mu: real, lam: real):
        """Tau = 2 mu (F - R) F^T + lambda (J - 1) J I."""
        J = wp.determinant(F)
        I = wp.identity(n=dim, dtype=real)
        return real(2.0) * mu * (F - R(F)) @ wp.transpose(F) + lam * (J - real(1.0)) * J * I

    @wp.func
    def fixed_corotated_piola(F: mat, mu: real, lam: real):
        """P = 2 mu (F - R) + lambda (J - 1) cof F."""
        return real(2.0) * mu * (F - R(F)) + lam * (wp.determinant(F) - real(1.0)) * cof(F)

    return fixed_corotated_energy, fixed_corotated_stress, fixed_corotated_piola
