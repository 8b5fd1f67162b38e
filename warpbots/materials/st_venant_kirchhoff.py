"""St. Venant-Kirchhoff elasticity: large rotations, small strains (Bonet & Wood 1997, §6.3.2).

    G   = (F^T F - I)/2   (Green strain)
    Psi = mu G : G + lambda/2 (tr G)^2
    P   = F (2 mu G + lambda tr(G) I)
    tau = P F^T

Matter with this law softens in compression and loses all stiffness near half its length.
"""

import warp as wp

from warpbots.numerics import matrix, real

__all__ = ["differential", "law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat = matrix(dim)

    @wp.func
    def green_strain(F: mat):
        """G = (F^T F - I)/2."""
        return real(0.5) * (wp.transpose(F) @ F - wp.identity(n=dim, dtype=real))

    @wp.func
    def st_venant_kirchhoff_energy(F: mat, mu: real, lam: real):
        """Psi = mu G : G + lambda/2 (tr G)^2."""
        G = green_strain(F)
        return mu * wp.ddot(G, G) + real(0.5) * lam * wp.trace(G) * wp.trace(G)

    @wp.func
    def st_venant_kirchhoff_piola(F: mat, mu: real, lam: real):
        """P = F (2 mu G + lambda tr(G) I)."""
        G = green_strain(F)
        return F @ (real(2.0) * mu * G + lam * wp.trace(G) * wp.identity(n=dim, dtype=real))

    @wp.func
    def st_venant_kirchhoff_stress(F: mat, mu: real, lam: real):
        """tau = P F^T."""
        return st_venant_kirchhoff_piola(F, mu, lam) @ wp.transpose(F)

    return st_venant_kirchhoff_energy, st_venant_kirchhoff_stress, st_venant_kirchhoff_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat = matrix(dim)

    @wp.struct
    class StVenantKirchhoffPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        S: Second Piola-Kirchhoff stress 2 mu G + lambda tr(G) I [Pa].
        mu: Lamé's constant mu [Pa].
        lam: Lamé's constant lambda [Pa].
        """

        F: mat
        S: mat
        mu: real
        lam: real

    @wp.func
    def st_venant_kirchhoff_point(F: mat, mu: real, lam: real):
        """The terms of dP at F."""
        I = wp.identity(n=dim, dtype=real)
        G = real(0.5) * (wp.transpose(F) @ F - I)
        point = StVenantKirchhoffPoint()
        point.F = F
        point.S = real(2.0) * mu * G + lam * wp.trace(G) * I
        point.mu = mu
        point.lam = lam
        return point

    @wp.func
    def st_venant_kirchhoff_differential(point: StVenantKirchhoffPoint, dF: mat):
        """dP = dF S + F (2 mu dG + lambda tr(dG) I), dG = (F^T dF + dF^T F)/2."""
        N = wp.transpose(point.F) @ dF
        dS = point.mu * (N + wp.transpose(N)) + point.lam * wp.trace(N) * wp.identity(n=dim, dtype=real)
        return dF @ point.S + point.F @ dS

    return StVenantKirchhoffPoint, st_venant_kirchhoff_point, st_venant_kirchhoff_differential
