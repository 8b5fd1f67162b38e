"""Pneumatic cells: elasticity towards a volume (soft multi-body paper, eq. 39 and 40; Bouaziz et al. 2014).

    Psi = k/2 |F - R|^2,   P = k (F - R),   R = argmin |F - R|  with  det R = a

with the target volume a of the cell relative to the undeformed volume. Because |F - R| is minimal, F - R is normal to
all changes of R that keep the volume, so that the change of R does not contribute to the derivative P of Psi. With F =
U diag(s) V^T the matrix R = U diag(r) V^T obeys

    r_i (r_i - s_i) = c,   r_1 r_2 r_3 = a.

All r_i follow from the smallest one, t = r_3: c = t (t - s_3) and r_i = (s_i + q_i) / 2 with q_i^2 = s_i^2 + 4 c, so
that Newton's method has one unknown, ln t. The derivative of ln(r_1 r_2 r_3) with respect to ln t is between 1 and 3
for t > s_3 / 2, and eight Newton steps reach rounding from any start; a dozen are needed in the case t < s_3 / 2 below.

In an inverted tetrahedron s_3 is negative, while all r_i are positive: the stress pulls the tetrahedron back through
zero volume to its correct orientation. If det F is so much larger than a that no t > s_3 / 2 gives the volume a (this
never happens for det F < 2 a, and always for det F > 8 a), a t < s_3 / 2 restores the volume by the smallest value
alone. If s_2 is close to s_3, two such matrices R exist near det F = 7 a, and R of a cell that is stretched so far
jumps from one matrix to the other.

The change of F - R that follows from a change of F, which is M = U^T dF V in the frame of U and V, and from a change da
of a, needs no derivative of U and V. With q_i = 2 r_i - s_i and d_i = r_i - s_i,

    diagonal       (d_i M_ii - dc) / q_i,   dc sum_i 1 / (r_i q_i) = da / a - sum_i M_ii / q_i
    symmetric      (d_i + d_j) / (q_i + q_j) (M_ij + M_ji) / 2
    antisymmetric  -(d_i + d_j) / (s_i + s_j) (M_ij - M_ji) / 2,

which also holds if singular values coincide, as in every body at rest. The exception is s_i + s_j = 0, a reflection,
whose rotation is not unique. No eigenvalue of the Hessian of Psi exceeds k, because |F|^2 / 2 - Psi / k is convex: it
is the maximum of R : F - |R|^2 / 2 over all R with det R = a.
"""

import functools

import warp as wp

from warpbots.numerics import matrix, real, vector

__all__ = ["cell_functions"]


@functools.cache
def cell_functions() -> tuple[wp.Function, wp.Function, wp.Function]:
    """Warp functions of a pneumatic cell in 3D.

    Returns:
        ``stress(F, k, a)`` returns P [Pa]; ``frame(F, a)`` returns the tuple U, s, r, V; ``change(s, r, a, M, da)``
        returns the change of F - R in the frame of U and V.
    """
    vec, mat = vector(3), matrix(3)
    tolerance = wp.constant(real({wp.float32: 1e-7, wp.float64: 1e-15}[real]))

    @wp.func
    def above(s: vec, t: real, i: int):
        """q_i for t = r_3."""
        q = real(2.0) * t - s[2]
        return wp.sqrt(q * q + (s[i] - s[2]) * (s[i] + s[2]))

    @wp.func
    def volume(s: vec, t: real):
        """r_1 r_2 r_3 for t = r_3."""
        return real(0.25) * t * (s[0] + above(s, t, 0)) * (s[1] + above(s, t, 1))

    @wp.func
    def values(s: vec, a: real):
        """The values r with r_1 r_2 r_3 = a for which r_i (r_i - s_i) is equal for all i."""
        t = wp.max(s[2], wp.cbrt(a))
        if s[2] > real(0.0) and volume(s, real(0.5) * s[2]) > a:
            t = a / (s[0] * s[1])
        for _ in range(20):
            q0 = above(s, t, 0)
            q1 = above(s, t, 1)
            r0 = real(0.5) * (s[0] + q0)
            r1 = real(0.5) * (s[1] + q1)
            slope = real(1.0) + t * (real(2.0) * t - s[2]) * (real(1.0) / (r0 * q0) + real(1.0) / (r1 * q1))
            step = wp.log(a / (r0 * r1 * t)) / slope
            t *= wp.exp(step)
            if wp.abs(step) <= tolerance:
                break
        return vec(real(0.5) * (s[0] + above(s, t, 0)), real(0.5) * (s[1] + above(s, t, 1)), t)

    @wp.func
    def frame(F: mat, a: real):
        """The factors U, s and V of F = U diag(s) V^T, and the values r of R, in the order U, s, r, V."""
        U = mat()
        s = vec()
        V = mat()
        wp.svd3(F, U, s, V)
        return U, s, values(s, a), V

    @wp.func
    def change(s: vec, r: vec, a: real, M: mat, da: real):
        """Change of F - R in the frame of U and V."""
        q = real(2.0) * r - s
        d = r - s
        wanted = da / a
        softness = real(0.0)
        for i in range(3):
            wanted -= M[i, i] / q[i]
            softness += real(1.0) / (r[i] * q[i])
        N = mat()
        for i in range(3):
            N[i, i] = (d[i] * M[i, i] - wanted / softness) / q[i]
        for i in range(3):
            for j in range(3):
                if i != j:
                    even = real(0.5) * (M[i, j] + M[j, i]) / (q[i] + q[j])
                    odd = real(0.5) * (M[i, j] - M[j, i]) / (s[i] + s[j])
                    N[i, j] = (d[i] + d[j]) * (even - odd)
        return N

    @wp.func
    def stress(F: mat, k: real, a: real):
        """P = k (F - R) = -k U diag(c / r) V^T."""
        U, s, r, V = frame(F, a)
        return U @ wp.diag(-k * r[2] * (r[2] - s[2]) * wp.cw_div(vec(real(1.0)), r)) @ wp.transpose(V)

    @wp.func_grad(stress)
    def adj_stress(F: mat, k: real, a: real, adj_ret: mat):
        U, s, r, V = frame(F, a)
        M = wp.transpose(U) @ adj_ret @ V
        by_F = change(s, r, a, M, real(0.0))
        by_a = change(s, r, a, mat(), real(1.0))
        wp.adjoint[F] += k * U @ by_F @ wp.transpose(V)
        wp.adjoint[k] += wp.ddot(M, wp.diag(s - r))
        wp.adjoint[a] += k * wp.ddot(M, by_a)

    return stress, frame, change
