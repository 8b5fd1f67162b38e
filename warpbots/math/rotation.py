"""The rotation of a deformation gradient, with a derivative that is right where singular values coincide.

The polar decomposition F = R S has a smooth rotation wherever no two singular values sum to zero, but the singular
value decomposition from which it is computed does not: the derivatives of U and V divide by differences of singular
values, which vanish in every undeformed body. So the adjoint of R is given in closed form,

    dR = U W V^T,   W_ij = (M_ij - M_ji) / (s_i + s_j),   M = U^T dF V,

which divides by sums only (Papadopoulo & Lourakis 2000, "Estimating the Jacobian of the singular value
decomposition"; the same form is used for corotated elasticity by Twigg & Kacic-Alesic 2010).
"""

import functools

import warp as wp

from warpbots.math.types import matrix, vector

__all__ = ["rotation"]


@functools.cache
def rotation(dim: int) -> wp.Function:
    """Warp function R(F): the rotation nearest to the matrix F of shape (`dim`, `dim`), det R = 1."""
    return {2: _rotation_2d, 3: _rotation_3d}[dim]()


def _rotation_2d() -> wp.Function:
    mat = matrix(2)

    @wp.func
    def rotation_2d(F: mat):
        """R = [[c, -s], [s, c]] with (c, s) along (F_00 + F_11, F_10 - F_01); smooth while that vector is not zero."""
        a = F[0, 0] + F[1, 1]
        b = F[1, 0] - F[0, 1]
        r = wp.sqrt(a * a + b * b)
        return mat(a / r, -b / r, b / r, a / r)

    return rotation_2d


def _rotation_3d() -> wp.Function:
    vec, mat = vector(3), matrix(3)

    @wp.func
    def rotation_3d(F: mat):
        """R = U V^T of F = U diag(s) V^T."""
        U = mat()
        s = vec()
        V = mat()
        wp.svd3(F, U, s, V)
        return U @ wp.transpose(V)

    @wp.func_grad(rotation_3d)
    def adj_rotation_3d(F: mat, adj_ret: mat):
        U = mat()
        s = vec()
        V = mat()
        wp.svd3(F, U, s, V)
        N = wp.transpose(U) @ adj_ret @ V
        M = mat()
        for i in range(3):
            for j in range(3):
                if i != j:
                    M[i, j] = (N[i, j] - N[j, i]) / (s[i] + s[j])
        wp.adjoint[F] += U @ M @ wp.transpose(V)

    return rotation_3d
