"""Corotated linear elasticity: small strains in a frame that turns with the matter.

The energy of projective dynamics (Bouaziz et al. 2014; Du et al. 2021, DiffPD; diff_fem).

    S   = R^T F   (stretch)
    Psi = mu |F - R|^2 + lambda/2 (tr S - d)^2
    P   = 2 mu (F - R) + lambda (tr S - d) R
    tau = P F^T

with R the rotation of F. Its volumetric term is linear in the strains, where that of `fixed_corotated` is (J - 1)^2.
"""

import warp as wp

from warpbots.math import matrix, real, rotation

__all__ = ["law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat = matrix(dim)
    rotate = rotation(dim)

    @wp.func
    def corotated_energy(F: mat, mu: real, lam: real):
        """Psi = mu |F - R|^2 + lambda/2 (R : F - d)^2."""
        R = rotate(F)
        growth = wp.ddot(R, F) - real(dim)
        return mu * wp.ddot(F - R, F - R) + real(0.5) * lam * growth * growth

    @wp.func
    def corotated_piola(F: mat, mu: real, lam: real):
        """P = 2 mu (F - R) + lambda (R : F - d) R."""
        R = rotate(F)
        return real(2.0) * mu * (F - R) + lam * (wp.ddot(R, F) - real(dim)) * R

    @wp.func
    def corotated_stress(F: mat, mu: real, lam: real):
        """Tau = P F^T."""
        return corotated_piola(F, mu, lam) @ wp.transpose(F)

    return corotated_energy, corotated_stress, corotated_piola
