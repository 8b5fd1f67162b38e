"""The rotation R of a deformation gradient F = R S, and its derivative.

In 2D the rotation follows from an angle. In 3D the rotation follows from the invariants of the stretch S,

    I1 = tr S,   I2 = (I1^2 - F : F) / 2,   I3 = det F,
    R = (I1 cof F + (I1^2 - I2) F - F F^T F) / (I1 I2 - I3),

which is the theorem of Cayley and Hamilton for S, multiplied by R (Hoger & Carlson 1984, "Determination of the stretch
and rotation in the polar decomposition"). I1 is the largest root of the quartic polynomial

    x^4 - 2 (F : F) x^2 - 8 det F x + 2 tr(F^T F)^2 - (F : F)^2

whose four roots are the sums s1 + s2 + s3, s1 - s2 - s3, ... of the singular values (Higham & Noferini 2016, "An
algorithm to compute the polar decomposition of a 3 x 3 matrix"); Newton's method converges to this root from above. If
det F is negative, the smallest singular value is taken as negative, so that R is a rotation also for inverted matter.
The derivative is

    dR = R [w]x,   (tr S - S) w = axial(R^T dF - dF^T R).

All divisions are by (s1 + s2) (s2 + s3) (s3 + s1), a product that vanishes only if the rotation itself is not unique,
as for a reflection. Close to matrices whose rotation is not unique, rounding would make R differ from a rotation, and
the singular value decomposition is used instead. The singular value decomposition takes five times as long, and is not
differentiable if two singular values are equal, as in every undeformed body.
"""

import functools

import warp as wp

from warpbots.numerics.scalars import matrix, real, vector

__all__ = ["cofactor", "cofactor_differential", "rotation", "rotation_differential"]


@functools.cache
def cofactor(dim: int) -> wp.Function:
    """Warp function cof(F) = det(F) F^-T of a matrix F, shape (`dim`, `dim`); cof(F) is the derivative of det F."""
    vec, mat = vector(dim), matrix(dim)

    if dim == 2:

        @wp.func
        def cofactor_2d(F: mat):
            """Cofactor [[d, -c], [-b, a]] of the matrix F = [[a, b], [c, d]]."""
            return mat(F[1, 1], -F[1, 0], -F[0, 1], F[0, 0])

        return cofactor_2d

    @wp.func
    def cofactor_3d(F: mat):
        """Cofactor of F; its columns are cross products of the columns of F."""
        a = vec(F[0, 0], F[1, 0], F[2, 0])
        b = vec(F[0, 1], F[1, 1], F[2, 1])
        c = vec(F[0, 2], F[1, 2], F[2, 2])
        return wp.matrix_from_cols(wp.cross(b, c), wp.cross(c, a), wp.cross(a, b))

    return cofactor_3d


@functools.cache
def cofactor_differential(dim: int) -> wp.Function:
    """Warp function that maps (F, dF), matrices of shape (`dim`, `dim`), to the differential d(cof F)."""
    vec, mat = vector(dim), matrix(dim)
    cof = cofactor(dim)

    if dim == 2:

        @wp.func
        def cofactor_differential_2d(F: mat, dF: mat):
            """Differential d(cof F) = cof dF, because the cofactor is linear in 2D."""
            return cof(dF)

        return cofactor_differential_2d

    @wp.func
    def cofactor_differential_3d(F: mat, dF: mat):
        """Differential d(cof F); its columns are differentials of cross products of the columns of F."""
        a = vec(F[0, 0], F[1, 0], F[2, 0])
        b = vec(F[0, 1], F[1, 1], F[2, 1])
        c = vec(F[0, 2], F[1, 2], F[2, 2])
        da = vec(dF[0, 0], dF[1, 0], dF[2, 0])
        db = vec(dF[0, 1], dF[1, 1], dF[2, 1])
        dc = vec(dF[0, 2], dF[1, 2], dF[2, 2])
        return wp.matrix_from_cols(
            wp.cross(db, c) + wp.cross(b, dc), wp.cross(dc, a) + wp.cross(c, da), wp.cross(da, b) + wp.cross(a, db)
        )

    return cofactor_differential_3d


@functools.cache
def rotation(dim: int) -> wp.Function:
    """Warp function R(F): the rotation (with det R = 1) nearest to the matrix F of shape (`dim`, `dim`)."""
    return {2: _rotation_2d, 3: _rotation_3d}[dim]()


@functools.cache
def rotation_differential(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions Y(F, R) and dR(R, Y, dF) for the rotation R of F, with dR = R [Y axial(R^T dF - dF^T R)]x.

    Y = (tr S - S)^-1 depends only on F, so one Y serves for all dF. Y is infinite if the rotation is not unique.
    """
    return {2: _rotation_differential_2d, 3: _rotation_differential_3d}[dim]()


def _rotation_differential_2d() -> tuple[wp.Function, wp.Function]:
    mat = matrix(2)

    @wp.func
    def spin_2d(F: mat, R: mat):
        """Multiple Y = 1 / tr S of the unit matrix, with the stretch S = R^T F.

        Only Y_00 is used, because a 2D rotation has one component.
        """
        return wp.identity(n=2, dtype=real) / wp.ddot(R, F)

    @wp.func
    def rotation_differential_2d(R: mat, Y: mat, dF: mat):
        """dR = w R [[0, -1], [1, 0]] with w = Y_00 axial(R^T dF - dF^T R)."""
        N = wp.transpose(R) @ dF
        w = Y[0, 0] * (N[1, 0] - N[0, 1])
        return R @ mat(real(0.0), -w, w, real(0.0))

    return spin_2d, rotation_differential_2d


def _rotation_differential_3d() -> tuple[wp.Function, wp.Function]:
    vec, mat = vector(3), matrix(3)

    @wp.func
    def spin_3d(F: mat, R: mat):
        """Matrix Y = (tr S - S)^-1 with the stretch S = R^T F."""
        S = wp.transpose(R) @ F
        return wp.inverse(wp.trace(S) * wp.identity(n=3, dtype=real) - S)

    @wp.func
    def rotation_differential_3d(R: mat, Y: mat, dF: mat):
        """dR = R [w]x with w = Y axial(R^T dF - dF^T R)."""
        N = wp.transpose(R) @ dF
        return R @ wp.skew(Y @ vec(N[2, 1] - N[1, 2], N[0, 2] - N[2, 0], N[1, 0] - N[0, 1]))

    return spin_3d, rotation_differential_3d


def _rotation_2d() -> wp.Function:
    mat = matrix(2)

    @wp.func
    def rotation_2d(F: mat):
        """R = [[c, -s], [s, c]] with the unit vector (c, s) along (F_00 + F_11, F_10 - F_01).

        R is a smooth function of F as long as the vector (F_00 + F_11, F_10 - F_01) is not zero.
        """
        a = F[0, 0] + F[1, 1]
        b = F[1, 0] - F[0, 1]
        r = wp.sqrt(a * a + b * b)
        return mat(a / r, -b / r, b / r, a / r)

    return rotation_2d


def _rotation_3d() -> wp.Function:
    vec, mat = vector(3), matrix(3)
    cof = cofactor(3)
    spin, differential = _rotation_differential_3d()
    tolerance = wp.constant(real({wp.float32: 1e-6, wp.float64: 1e-14}[real]))
    blurred = wp.constant(real(0.01))

    @wp.func
    def trace_of_stretch(norm: real, I3: real, constant: real):
        """Largest root I1 = tr S of x^4 - 2 norm x^2 - 8 I3 x + constant, with norm = F : F."""
        x = wp.sqrt(real(3.0) * norm)  # not below the root, for s1 + s2 + s3 <= sqrt(3 (s1^2 + s2^2 + s3^2))
        last = x
        for _ in range(50):  # three or four as a rule, but one bit each where s2 = -s3 makes the root a double one
            value = ((x * x - real(2.0) * norm) * x - real(8.0) * I3) * x + constant
            step = value / ((real(4.0) * x * x - real(4.0) * norm) * x - real(8.0) * I3)
            if step <= real(0.0) or step > last:  # steps only become smaller; at a multiple root rounding makes others
                break
            x -= step
            if step <= tolerance * x:
                break
            last = step
        return x

    @wp.func
    def rotation_by_svd(F: mat):
        """R = U V^T from the singular value decomposition F = U diag(s) V^T."""
        U = mat()
        s = vec()
        V = mat()
        wp.svd3(F, U, s, V)
        return U @ wp.transpose(V)

    @wp.func
    def rotation_3d(F: mat):
        """R = (I1 cof F + (I1^2 - I2) F - F F^T F) / (I1 I2 - I3), or R from the singular value decomposition."""
        C = wp.transpose(F) @ F
        norm = wp.trace(C)
        I3 = wp.determinant(F)
        I1 = trace_of_stretch(norm, I3, real(2.0) * wp.ddot(C, C) - norm * norm)
        I2 = real(0.5) * (I1 * I1 - norm)
        gaps = I1 * I2 - I3  # (s1 + s2) (s2 + s3) (s3 + s1)
        if gaps < blurred * norm * wp.sqrt(norm):
            return rotation_by_svd(F)
        return (I1 * cof(F) + (I1 * I1 - I2) * F - F @ C) / gaps

    @wp.func_grad(rotation_3d)
    def adj_rotation_3d(F: mat, adj_ret: mat):
        R = rotation_3d(F)
        wp.adjoint[F] += differential(R, spin(F, R), adj_ret)  # dR/dF is symmetric: the Hessian of tr S

    return rotation_3d
