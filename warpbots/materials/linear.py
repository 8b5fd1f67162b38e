"""Linear elasticity: small strains and small rotations, for comparison with closed forms.

    epsilon = (F + F^T)/2 - I
    Psi = mu epsilon : epsilon + lambda/2 (tr epsilon)^2
    P   = 2 mu epsilon + lambda tr(epsilon) I
    tau = P F^T

Matter that rotates is stretched: use this law only if rotations stay small.
"""

import warp as wp

from warpbots.numerics import matrix, real

__all__ = ["differential", "law"]


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat = matrix(dim)

    @wp.func
    def small_strain(F: mat):
        """epsilon = (F + F^T)/2 - I."""
        return real(0.5) * (F + wp.transpose(F)) - wp.identity(n=dim, dtype=real)

    @wp.func
    def linear_energy(F: mat, mu: real, lam: real):
        """Psi = mu epsilon : epsilon + lambda/2 (tr epsilon)^2."""
        e = small_strain(F)
        return mu * wp.ddot(e, e) + real(0.5) * lam * wp.trace(e) * wp.trace(e)

    @wp.func
    def linear_piola(F: mat, mu: real, lam: real):
        """P = 2 mu epsilon + lambda tr(epsilon) I."""
        e = small_strain(F)
        return real(2.0) * mu * e + lam * wp.trace(e) * wp.identity(n=dim, dtype=real)

    @wp.func
    def linear_stress(F: mat, mu: real, lam: real):
        """tau = P F^T."""
        return linear_piola(F, mu, lam) @ wp.transpose(F)

    return linear_energy, linear_stress, linear_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat = matrix(dim)

    @wp.struct
    class LinearPoint:
        """Lamé's constants: dP does not depend on F.

        mu: Lamé's constant mu [Pa].
        lam: Lamé's constant lambda [Pa].
        """

        mu: real
        lam: real

    @wp.func
    def linear_point(F: mat, mu: real, lam: real):
        """Lamé's constants."""
        point = LinearPoint()
        point.mu = mu
        point.lam = lam
        return point

    @wp.func
    def linear_differential(point: LinearPoint, dF: mat):
        """dP = mu (dF + dF^T) + lambda tr(dF) I."""
        return point.mu * (dF + wp.transpose(dF)) + point.lam * wp.trace(dF) * wp.identity(n=dim, dtype=real)

    return LinearPoint, linear_point, linear_differential
