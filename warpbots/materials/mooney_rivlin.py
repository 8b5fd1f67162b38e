"""Compressible Mooney-Rivlin elasticity: neo-Hookean elasticity with a second invariant (Mooney 1940; Rivlin 1948).

    q   = C_2 / (C_1 + C_2)
    Psi = mu/2 ((1 - q) (F : F - d) + q (F^-1 : F^-1 - d)) - mu (1 - 2 q) ln J + lambda/2 (ln J)^2
    tau = mu (1 - q) (B - I) + mu q (I - B^-1) + lambda ln(J) I,   B = F F^T
    P   = tau F^-T

With the stretches s_i this is Ogden's compressible form (Ogden 1972) with the exponents 2 and -2. Without change of
volume F^-1 : F^-1 is the second invariant of B, so that Psi = C_1 (I_1 - 3) + C_2 (I_2 - 3) with 2 C_1 = mu (1 - q) and
2 C_2 = mu q. At small strains mu and lambda are Lamé's constants for every q; q = 0 is the law `neo_hookean`. In 2D the
law describes plane strain. Valid while J = det F > 0; ln J makes inverted matter NaN, which stops the run.
"""

import warp as wp

from warpbots.materials.distortion import distortion
from warpbots.materials.law_constants import LawConstant, with_constants
from warpbots.numerics import cofactor, matrix, real

__all__ = ["differential", "law"]

_constants = wp.types.vector(1, real)


@with_constants(
    LawConstant(
        "second_invariant_share", "q", "1", "Mooney's ratio C_2 / (C_1 + C_2)", lower=0.0, upper=1.0, inclusive=True
    )
)
def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda, c), tau(F, mu, lambda, c) and P(F, mu, lambda, c) [Pa] in `dim` dimensions, with c = (q)."""
    mat, cof, distortion_of = matrix(dim), cofactor(dim), distortion(dim)

    @wp.func
    def mooney_rivlin_energy(F: mat, mu: real, lam: real, c: _constants):
        """Psi = mu/2 ((1-q) (F : F - d - 2 ln J) + q (F^-1 : F^-1 - d + 2 ln J)) + lambda/2 (ln J)^2."""
        q = c[0]
        J = wp.determinant(F)
        log_J = wp.log(J)
        shear = (real(1.0) - q) * distortion_of(F, log_J) + q * distortion_of(cof(F) / J, -log_J)
        return real(0.5) * (mu * shear + lam * log_J * log_J)

    @wp.func
    def mooney_rivlin_stress(F: mat, mu: real, lam: real, c: _constants):
        """tau = mu (1 - q) (B - I) + mu q (I - B^-1) + lambda ln(J) I."""
        q = c[0]
        I = wp.identity(n=dim, dtype=real)
        J = wp.determinant(F)
        inverse = cof(F) / J
        first = mu * (real(1.0) - q) * (F @ wp.transpose(F) - I)
        return first + mu * q * (I - inverse @ wp.transpose(inverse)) + lam * wp.log(J) * I

    @wp.func
    def mooney_rivlin_piola(F: mat, mu: real, lam: real, c: _constants):
        """P = mu (1 - q) F - mu q B^-1 F^-T + (lambda ln(J) - mu (1 - 2 q)) F^-T."""
        q = c[0]
        J = wp.determinant(F)
        inverse = cof(F) / J
        across = lam * wp.log(J) - mu * (real(1.0) - real(2.0) * q)
        return mu * (real(1.0) - q) * F - mu * q * (inverse @ wp.transpose(inverse) @ inverse) + across * inverse

    return mooney_rivlin_energy, mooney_rivlin_stress, mooney_rivlin_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda, c) that fills it, and dP(point, dF)."""
    mat, cof = matrix(dim), cofactor(dim)

    @wp.struct
    class MooneyRivlinPoint:
        """The terms of dP that depend on F.

        inverse: Transposed inverse F^-T.
        first: mu (1 - q) [Pa].
        second: mu q [Pa].
        lam: Lamé's constant lambda [Pa].
        across: lambda ln(J) - mu (1 - 2 q) [Pa].
        """

        inverse: mat
        first: real
        second: real
        lam: real
        across: real

    @wp.func
    def mooney_rivlin_point(F: mat, mu: real, lam: real, c: _constants):
        """The terms of dP at F."""
        q = c[0]
        J = wp.determinant(F)
        point = MooneyRivlinPoint()
        point.inverse = cof(F) / J
        point.first = mu * (real(1.0) - q)
        point.second = mu * q
        point.lam = lam
        point.across = lam * wp.log(J) - mu * (real(1.0) - real(2.0) * q)
        return point

    @wp.func
    def mooney_rivlin_differential(point: MooneyRivlinPoint, dF: mat):
        """dP = mu (1-q) dF - mu q d(B^-1 F^-T) + lambda (F^-T : dF) F^-T + across dF^-T, dF^-T = -F^-T dF^T F^-T."""
        A = point.inverse
        dA = -A @ wp.transpose(dF) @ A
        AAt = A @ wp.transpose(A)
        d_second = dA @ wp.transpose(A) @ A + A @ wp.transpose(dA) @ A + AAt @ dA
        return point.first * dF - point.second * d_second + point.lam * wp.ddot(A, dF) * A + point.across * dA

    return MooneyRivlinPoint, mooney_rivlin_point, mooney_rivlin_differential
