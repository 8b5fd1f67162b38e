"""Gent's elasticity: rubber with a largest extension (Gent 1996, "A new constitutive relation for rubber").

    x   = F : F - d - 2 ln J
    Psi = -mu/2 J_m ln(1 - x / J_m) + lambda/2 (ln J)^2
    g   = J_m / (J_m - x)
    P   = mu g (F - F^-T) + lambda ln(J) F^-T
    tau = mu g (F F^T - I) + lambda ln(J) I

x >= 0 is the invariant in the law `neo_hookean`; this law is the limit of large J_m. Without change of volume x is I_1
- 3, and Psi is Gent's energy; the term -2 ln J (compare Horgan & Saccomandi 2004) keeps the state at rest free of
stress, and mu and lambda Lamé's constants at small strains for every J_m. In 2D the law describes plane strain.

Valid while J = det F > 0 and x < J_m. Stiffness grows without bound as x approaches J_m. For x > J_m the formula of the
stress would push matter further apart; energy and stress are therefore NaN, which stops the run.
"""

import warp as wp

from warpbots.materials.distortion import distortion, log_excess
from warpbots.materials.law_constants import LawConstant, with_constants
from warpbots.numerics import cofactor, cofactor_differential, matrix, real

__all__ = ["differential", "law"]

_constants = wp.types.vector(1, real)
_NAN = wp.constant(real(float("nan")))


@wp.func
def stiffening(x: real, J_m: real):
    """g = J_m / (J_m - x); NaN for x >= J_m."""
    if x < J_m:
        return J_m / (J_m - x)
    return _NAN


@with_constants(
    LawConstant(
        "locking_invariant", "J_m", "1", "largest value of the first invariant I_1 - 3 (rubber: 30 to 100)", 0.0
    )
)
def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda, c), tau(F, mu, lambda, c) and P(F, mu, lambda, c) [Pa] in `dim` dimensions, with c = (J_m)."""
    mat, cof, distortion_of = matrix(dim), cofactor(dim), distortion(dim)
    d = real(dim)

    @wp.func
    def invariant(F: mat, log_J: real):
        """x = F : F - d - 2 ln J."""
        return wp.ddot(F, F) - d - real(2.0) * log_J

    @wp.func
    def gent_energy(F: mat, mu: real, lam: real, c: _constants):
        """Psi = -mu/2 J_m ln(1 - x / J_m) + lambda/2 (ln J)^2, with -ln(1 - z) = z + log_excess(-z)."""
        log_J = wp.log(wp.determinant(F))
        z = distortion_of(F, log_J) / c[0]
        return real(0.5) * (mu * c[0] * (z + log_excess(-z)) + lam * log_J * log_J)

    @wp.func
    def gent_stress(F: mat, mu: real, lam: real, c: _constants):
        """tau = mu g (F F^T - I) + lambda ln(J) I."""
        I = wp.identity(n=dim, dtype=real)
        log_J = wp.log(wp.determinant(F))
        return mu * stiffening(invariant(F, log_J), c[0]) * (F @ wp.transpose(F) - I) + lam * log_J * I

    @wp.func
    def gent_piola(F: mat, mu: real, lam: real, c: _constants):
        """P = mu g F + (lambda ln(J) - mu g) F^-T."""
        J = wp.determinant(F)
        log_J = wp.log(J)
        stiff = mu * stiffening(invariant(F, log_J), c[0])
        return stiff * F + ((lam * log_J - stiff) / J) * cof(F)

    return gent_energy, gent_stress, gent_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda, c) that fills it, and dP(point, dF)."""
    mat, cof, change_of_cof = matrix(dim), cofactor(dim), cofactor_differential(dim)
    d = real(dim)

    @wp.struct
    class GentPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        inverse: Transposed inverse F^-T.
        J: Determinant J of F.
        stiff: mu g [Pa].
        slope: 2 mu dg/dx = 2 mu g^2 / J_m [Pa].
        along: Derivative of (lambda ln(J) - mu g) / J with respect to J, at constant g, times J^2 [Pa].
        across: lambda ln(J) - mu g [Pa].
        """

        F: mat
        inverse: mat
        J: real
        stiff: real
        slope: real
        along: real
        across: real

    @wp.func
    def gent_point(F: mat, mu: real, lam: real, c: _constants):
        """The terms of dP at F."""
        point = GentPoint()
        point.F = F
        point.J = wp.determinant(F)
        point.inverse = cof(F) / point.J
        log_J = wp.log(point.J)
        g = stiffening(wp.ddot(F, F) - d - real(2.0) * log_J, c[0])
        point.stiff = mu * g
        point.slope = real(2.0) * mu * g * g / c[0]
        point.across = lam * log_J - mu * g
        point.along = lam - point.across
        return point

    @wp.func
    def gent_differential(point: GentPoint, dF: mat):
        """dP = mu g dF + mu dg (F - F^-T) + lambda (F^-T : dF) F^-T + (lambda ln(J) - mu g) dF^-T."""
        A = point.inverse
        D = point.F - A
        volumetric = point.along * wp.ddot(A, dF) * A + (point.across / point.J) * change_of_cof(point.F, dF)
        return point.stiff * dF + (point.slope * wp.ddot(D, dF)) * D + volumetric

    return GentPoint, gent_point, gent_differential
