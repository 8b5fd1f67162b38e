"""Fixed corotated elasticity (Stomakhin et al. 2012, "Energetically consistent invertible elasticity").

Equation 12 of the ChainQueen paper.

    Psi = mu |F - R|^2 + lambda/2 (J - 1)^2
    P   = 2 mu (F - R) + lambda (J - 1) J F^-T
    tau = P F^T = 2 mu (F - R) F^T + lambda (J - 1) J I

with R the rotation of F. The stress of inverted matter is finite, too, and restores the shape.
"""

import warp as wp

from warpbots.numerics import cofactor, cofactor_differential, matrix, real, rotation, rotation_differential

__all__ = ["differential", "law"]


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
        """tau = 2 mu (F - R) F^T + lambda (J - 1) J I."""
        J = wp.determinant(F)
        I = wp.identity(n=dim, dtype=real)
        return real(2.0) * mu * (F - R(F)) @ wp.transpose(F) + lam * (J - real(1.0)) * J * I

    @wp.func
    def fixed_corotated_piola(F: mat, mu: real, lam: real):
        """P = 2 mu (F - R) + lambda (J - 1) cof F."""
        return real(2.0) * mu * (F - R(F)) + lam * (wp.determinant(F) - real(1.0)) * cof(F)

    return fixed_corotated_energy, fixed_corotated_stress, fixed_corotated_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat, cof, change_of_cof = matrix(dim), cofactor(dim), cofactor_differential(dim)
    rotate = rotation(dim)
    spin, change_of_rotation = rotation_differential(dim)

    @wp.struct
    class FixedCorotatedPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        C: cof F.
        R: Rotation R of F.
        Y: Matrix Y of `rotation_differential` at F.
        mu: Lamé's constant mu [Pa].
        lam: Lamé's constant lambda [Pa].
        across: lambda (J - 1) [Pa].
        """

        F: mat
        C: mat
        R: mat
        Y: mat
        mu: real
        lam: real
        across: real

    @wp.func
    def fixed_corotated_point(F: mat, mu: real, lam: real):
        """The terms of dP at F."""
        point = FixedCorotatedPoint()
        point.F = F
        point.C = cof(F)
        point.R = rotate(F)
        point.Y = spin(F, point.R)
        point.mu = mu
        point.lam = lam
        point.across = lam * (wp.determinant(F) - real(1.0))
        return point

    @wp.func
    def fixed_corotated_differential(point: FixedCorotatedPoint, dF: mat):
        """dP = 2 mu (dF - dR) + lambda (cof F : dF) cof F + lambda (J - 1) d(cof F)."""
        dR = change_of_rotation(point.R, point.Y, dF)
        dJ = wp.ddot(point.C, dF)
        volumetric = (point.lam * dJ) * point.C + point.across * change_of_cof(point.F, dF)
        return real(2.0) * point.mu * (dF - dR) + volumetric

    return FixedCorotatedPoint, fixed_corotated_point, fixed_corotated_differential
