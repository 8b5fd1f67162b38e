"""Ogden's compressible elasticity with two terms (Ogden 1972; Bonet & Wood 1997, §6.6).

    Psi = sum_p 2 mu w_p / alpha_p^2 (sum_i s_i^alpha_p - d - alpha_p ln J) + lambda/2 (ln J)^2
    tau = sum_p 2 mu w_p / alpha_p (exp(alpha_p e) - I) + lambda ln(J) I,   e = ln(F F^T) / 2
    P   = tau F^-T

with the stretches s_i and the weights w = (1 - w_2, w_2): one exponent is positive, the other negative, and w_2 = 0
leaves one term. In Ogden's notation mu_p = 2 mu w_p / alpha_p, so that sum_p mu_p alpha_p = 2 mu. At small strains mu
and lambda are Lamé's constants, for all exponents. The exponent 2 alone is the law `neo_hookean`, the exponents 2 and
-2 are `mooney_rivlin`, and the limit of small exponents is `hencky`. In 2D the law describes plane strain. Valid while
J = det F is positive; ln J makes inverted matter NaN, which stops the run.
"""

import warp as wp

from warpbots.materials.distortion import trace_excess
from warpbots.materials.hencky import log_strain
from warpbots.materials.law_constants import LawConstant, with_constants
from warpbots.numerics import (
    cofactor,
    eigen,
    exp_differential,
    exp_symmetric,
    log_differential,
    matrix,
    real,
    vector,
)

__all__ = ["differential", "law"]

_constants = wp.types.vector(3, real)


@with_constants(
    LawConstant("exponent", "alpha_1", "1", "exponent of the stretches in the first term", lower=0.1),
    LawConstant("second_exponent", "alpha_2", "1", "exponent of the second term", upper=-0.1, default=-2.0),
    LawConstant("second_share", "w_2", "1", "share of the second term in mu", 0.0, 1.0, inclusive=True, default=0.0),
)
def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi, tau and P [Pa] of (F, mu, lambda, c) in `dim` dimensions, with c = (alpha_1, alpha_2, w_2)."""
    mat, cof = matrix(dim), cofactor(dim)
    strain, exp, excess = log_strain(dim), exp_symmetric(dim), trace_excess(dim)

    @wp.func
    def term_energy(e: mat, alpha: real):
        """2 / alpha^2 (sum s_i^alpha - d - alpha ln J)."""
        A = exp(alpha * e) - wp.identity(n=dim, dtype=real)
        return real(2.0) / (alpha * alpha) * excess(A, alpha * wp.trace(e))

    @wp.func
    def term_stress(e: mat, alpha: real):
        """2 / alpha (exp(alpha e) - I)."""
        return real(2.0) / alpha * (exp(alpha * e) - wp.identity(n=dim, dtype=real))

    @wp.func
    def ogden_energy(F: mat, mu: real, lam: real, c: _constants):
        """Psi = mu (w_1 Psi_1 + w_2 Psi_2) + lambda/2 (ln J)^2."""
        e = strain(F)
        log_J = wp.log(wp.determinant(F))
        terms = (real(1.0) - c[2]) * term_energy(e, c[0]) + c[2] * term_energy(e, c[1])
        return mu * terms + real(0.5) * lam * log_J * log_J

    @wp.func
    def ogden_stress(F: mat, mu: real, lam: real, c: _constants):
        """tau = mu (w_1 tau_1 + w_2 tau_2) + lambda ln(J) I."""
        e = strain(F)
        terms = (real(1.0) - c[2]) * term_stress(e, c[0]) + c[2] * term_stress(e, c[1])
        return mu * terms + lam * wp.log(wp.determinant(F)) * wp.identity(n=dim, dtype=real)

    @wp.func
    def ogden_piola(F: mat, mu: real, lam: real, c: _constants):
        """P = tau F^-T."""
        return ogden_stress(F, mu, lam, c) @ cof(F) / wp.determinant(F)

    return ogden_energy, ogden_stress, ogden_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda, c) that fills it, and dP(point, dF)."""
    vec, mat, cof, eigen_of = vector(dim), matrix(dim), cofactor(dim), eigen(dim)
    log_slopes, along = log_differential(dim)
    exp_slopes, _ = exp_differential(dim)
    _, stress, _ = law(dim)

    @wp.struct
    class OgdenPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        inverse: Transposed inverse F^-T.
        tau: Kirchhoff stress tau [Pa].
        Q: Eigenvectors of F F^T.
        G: Divided differences, at the eigenvalues of F F^T, of tau without its volumetric part [Pa].
        lam: Lamé's constant lambda [Pa].
        """

        F: mat
        inverse: mat
        tau: mat
        Q: mat
        G: mat
        lam: real

    @wp.func
    def ogden_point(F: mat, mu: real, lam: real, c: _constants):
        """The terms of dP at F.

        Because tau is a function of ln B, each divided difference of tau is the product of two divided differences.
        """
        squares, Q = eigen_of(F @ wp.transpose(F))
        logs = vec()
        for i in range(dim):
            logs[i] = real(0.5) * wp.log(squares[i])
        first = (real(1.0) - c[2]) * exp_slopes(c[0] * logs)
        point = OgdenPoint()
        point.F = F
        point.inverse = cof(F) / wp.determinant(F)
        point.tau = stress(F, mu, lam, c)
        point.Q = Q
        point.G = mu * wp.cw_mul(first + c[2] * exp_slopes(c[1] * logs), log_slopes(squares))
        point.lam = lam
        return point

    @wp.func
    def ogden_differential(point: OgdenPoint, dF: mat):
        """dP = (dtau - tau F^-T dF^T) F^-T, with dtau from its divided differences plus lambda (F^-T : dF) I."""
        half = dF @ wp.transpose(point.F)
        dtau = along(point.Q, point.G, half + wp.transpose(half))
        dtau += point.lam * wp.ddot(point.inverse, dF) * wp.identity(n=dim, dtype=real)
        return (dtau - point.tau @ point.inverse @ wp.transpose(dF)) @ point.inverse

    return OgdenPoint, ogden_point, ogden_differential
