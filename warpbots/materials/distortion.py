"""F : F - d - 2 ln J, the invariant of elastic energies that grows with every change of shape, without lost digits.

At a small strain e its terms are of the size of e, and the invariant is of the size of e^2: in float32 the rounding of
the terms is as large as the invariant at e = 3e-4. With A = F^T F - I,

    F : F - d - 2 ln J = tr A - ln(1 + y) = (y - ln(1 + y)) - (y - tr A),   y = det(I + A) - 1
    y - ln(1 + y) = y s - 2 s^3 (1/3 + s^2/5 + s^4/7 + ...),   s = y / (2 + y)

so both differences follow from terms of second order: y - tr A is the sum of the other invariants of A.
"""

import functools

import warp as wp

from warpbots.numerics import matrix, real

__all__ = ["distortion", "log_excess", "trace_excess"]


@wp.func
def log_excess(y: real):
    """y - ln(1 + y); for small y from a series with the relative error s^15 / 17."""
    if wp.abs(y) > real(0.2):
        return y - wp.log(real(1.0) + y)
    s = y / (real(2.0) + y)
    q = s * s
    tail = real(1.0) / real(9.0) + q * (real(1.0) / real(11.0) + q * (real(1.0) / real(13.0) + q / real(15.0)))
    series = real(1.0) / real(3.0) + q * (real(1.0) / real(5.0) + q * (real(1.0) / real(7.0) + q * tail))
    return y * s - real(2.0) * s * q * series


@functools.cache
def trace_excess(dim: int) -> wp.Function:
    """Warp function (A, ln det(I + A)) -> tr A - ln det(I + A) of symmetric matrices A of shape (`dim`, `dim`)."""
    mat = matrix(dim)
    space = real(dim - 2)

    @wp.func
    def trace_excess_of(A: mat, log_det: real):
        """log_excess(y) - (y - tr A) for small A, with the second invariant of A in 3D."""
        t = wp.trace(A)
        if wp.ddot(A, A) > real(0.01):
            return t - log_det
        others = wp.determinant(A) + space * real(0.5) * (t * t - wp.ddot(A, A))
        return log_excess(t + others) - others

    return trace_excess_of


@functools.cache
def distortion(dim: int) -> wp.Function:
    """Warp function (F, ln J) -> F : F - d - 2 ln J of deformation gradients of shape (`dim`, `dim`)."""
    mat, excess = matrix(dim), trace_excess(dim)

    @wp.func
    def distortion_of(F: mat, log_J: real):
        """tr A - ln det(I + A) with A = H + H^T + H^T H for H = F - I."""
        H = F - wp.identity(n=dim, dtype=real)
        return excess(H + wp.transpose(H) + wp.transpose(H) @ H, real(2.0) * log_J)

    return distortion_of
