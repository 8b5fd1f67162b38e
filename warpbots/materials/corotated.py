"""Corotated linear elasticity: small strains in a frame that rotates with the matter.

The energy of projective dynamics (Bouaziz et al. 2014; Du et al. 2021, DiffPD; diff_fem).

    S   = R^T F   (stretch)
    Psi = mu |F - R|^2 + lambda/2 (tr S - d)^2
    P   = 2 mu (F - R) + lambda (tr S - d) R
    tau = P F^T

with R the rotation of F. The volumetric term contains the linear strain tr S - d; `fixed_corotated` has J - 1 instead.
"""

import warp as wp

from warpbots.numerics import matrix, real, rotation, rotation_differential

__all__ = ["differential", "law"]


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
        """tau = P F^T."""
        return corotated_piola(F, mu, lam) @ wp.transpose(F)

    return corotated_energy, corotated_stress, corotated_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat = matrix(dim)
    rotate = rotation(dim)
    spin, change_of_rotation = rotation_differential(dim)

    @wp.struct
    class CorotatedPoint:
        """The terms of dP that depend on F.

        R: Rotation R of F.
        Y: Matrix Y of `rotation_differential` at F.
        mu: Lamé's constant mu [Pa].
        lam: Lamé's constant lambda [Pa].
        across: lambda (R : F - d) - 2 mu [Pa].
        """

        R: mat
        Y: mat
        mu: real
        lam: real
        across: real

    @wp.func
    def corotated_point(F: mat, mu: real, lam: real):
        """The terms of dP at F."""
        point = CorotatedPoint()
        point.R = rotate(F)
        point.Y = spin(F, point.R)
        point.mu = mu
        point.lam = lam
        point.across = lam * (wp.ddot(point.R, F) - real(dim)) - real(2.0) * mu
        return point

    @wp.func
    def corotated_differential(point: CorotatedPoint, dF: mat):
        """dP = 2 mu (dF - dR) + lambda (R : dF) R + lambda (R : F - d) dR; d(R : F) = R : dF, because dR : F = 0."""
        dR = change_of_rotation(point.R, point.Y, dF)
        return real(2.0) * point.mu * dF + (point.lam * wp.ddot(point.R, dF)) * point.R + point.across * dR

    return CorotatedPoint, corotated_point, corotated_differential
