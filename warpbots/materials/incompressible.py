"""Added resistance to changes of volume (Bonet & Wood 1997; ChainQueen eq. 14, corrected).

    Psi = K (J - 1)^p,   K = E / (3 (1 - 2 nu)),   p even
    tau = K p (J - 1)^(p - 1) J I

The paper prints 2 - 2 nu instead of 1 - 2 nu in the bulk modulus K, and allows any p >= 2. With an odd p, compressed
matter would contract further.
"""

import warp as wp

from warpbots.numerics import cofactor, cofactor_differential, matrix, real

__all__ = ["incompressible", "incompressible_differential"]


def _even_power(exponent: int) -> wp.Function:
    """Warp function r^(p - 2) for the even `exponent` p, by repeated multiplication.

    Warp does not differentiate loops that it does not unroll, so functions that call it define their own derivative.
    """
    factors = wp.constant(exponent - 2)

    @wp.func
    def even_power(r: real):
        """r^(p - 2)."""
        power = real(1.0)
        for _ in range(factors):
            power = power * r
        return power

    return even_power


def incompressible(dim: int, exponent: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, E, nu), tau(F, E, nu) and P(F, E, nu) [Pa] for the even `exponent` p."""
    mat, cof = matrix(dim), cofactor(dim)
    p = real(exponent)
    even_power = _even_power(exponent)

    @wp.func
    def bulk_modulus(E: real, nu: real):
        """K = E / (3 (1 - 2 nu))."""
        return E / (real(3.0) * (real(1.0) - real(2.0) * nu))

    @wp.func
    def odd_power(r: real):
        """r^(p - 1), with the sign of r."""
        return even_power(r) * r

    @wp.func_grad(odd_power)
    def adj_odd_power(r: real, adj_ret: real):
        wp.adjoint[r] += (p - real(1.0)) * even_power(r) * adj_ret

    @wp.func
    def incompressible_energy(F: mat, E: real, nu: real):
        """Psi = K (J - 1)^p."""
        r = wp.determinant(F) - real(1.0)
        return bulk_modulus(E, nu) * odd_power(r) * r

    @wp.func
    def incompressible_stress(F: mat, E: real, nu: real):
        """tau = K p (J - 1)^(p - 1) J I."""
        J = wp.determinant(F)
        return bulk_modulus(E, nu) * p * odd_power(J - real(1.0)) * J * wp.identity(n=dim, dtype=real)

    @wp.func
    def incompressible_piola(F: mat, E: real, nu: real):
        """P = K p (J - 1)^(p - 1) cof F."""
        return bulk_modulus(E, nu) * p * odd_power(wp.determinant(F) - real(1.0)) * cof(F)

    return incompressible_energy, incompressible_stress, incompressible_piola


def incompressible_differential(dim: int, exponent: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, E, nu) that fills it, and dP(point, dF) [Pa]."""
    mat, cof, change_of_cof = matrix(dim), cofactor(dim), cofactor_differential(dim)
    p = real(exponent)
    even_power = _even_power(exponent)

    @wp.struct
    class IncompressiblePoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        C: cof F.
        along: K p (p - 1) (J - 1)^(p - 2) [Pa].
        across: K p (J - 1)^(p - 1) [Pa].
        """

        F: mat
        C: mat
        along: real
        across: real

    @wp.func
    def incompressible_point(F: mat, E: real, nu: real):
        """The terms of dP at F."""
        r = wp.determinant(F) - real(1.0)
        power = p * E / (real(3.0) * (real(1.0) - real(2.0) * nu)) * even_power(r)
        point = IncompressiblePoint()
        point.F = F
        point.C = cof(F)
        point.along = (p - real(1.0)) * power
        point.across = power * r
        return point

    @wp.func
    def dP(point: IncompressiblePoint, dF: mat):
        """dP = K p (J - 1)^(p - 2) ((p - 1) (cof F : dF) cof F + (J - 1) d(cof F))."""
        dJ = wp.ddot(point.C, dF)
        return (point.along * dJ) * point.C + point.across * change_of_cof(point.F, dF)

    return IncompressiblePoint, incompressible_point, dP
