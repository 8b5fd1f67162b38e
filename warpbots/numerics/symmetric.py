"""Logarithm and exponential of symmetric matrices, with derivatives that also exist for equal eigenvalues.

For A = Q diag(a) Q^T and a scalar function f, f(A) = Q diag(f(a)) Q^T, and its derivative is (Daleckii & Krein 1965;
Higham 2008, "Functions of matrices", theorem 3.11)

    df = Q (G o (Q^T dA Q)) Q^T,   G_ij = (f(a_i) - f(a_j)) / (a_i - a_j),   G_ii = f'(a_i),

with the entrywise product o. This linear map is its own adjoint. If two eigenvalues are close to each other, their
divided difference G_ij is computed from a series, so that no digit is lost.

Eigenvalues are found by Jacobi's method (Golub & Van Loan, "Matrix computations", section 8.5) and are exact up to
rounding. `wp.eig3` and `wp.svd3` of Warp 1.19 have relative errors of up to 1e-3 in single precision.
"""

import functools

import warp as wp

from warpbots.numerics.scalars import matrix, real, vector

__all__ = ["eigen", "exp_differential", "exp_symmetric", "log_differential", "log_symmetric"]


@functools.cache
def eigen(dim: int) -> wp.Function:
    """Warp function that maps a symmetric matrix A, shape (`dim`, `dim`), to (a, Q) with A = Q diag(a) Q^T.

    The function reads only the upper triangle of A.
    """
    mat = matrix(dim)
    sweeps = wp.constant({2: 1, 3: 12}[dim])  # a single rotation solves the plane; in space four to six sweeps do
    negligible = wp.constant(real({wp.float32: 1e-16, wp.float64: 1e-34}[real]))

    @wp.func
    def rotation_to_zero(A: mat, p: int, q: int):
        """Rotation J in the plane of the axes p and q with (J^T A J)_pq = 0; of two solutions, the smaller rotation."""
        J = wp.identity(n=dim, dtype=real)
        if A[p, q] != real(0.0):
            cot = (A[q, q] - A[p, p]) / (real(2.0) * A[p, q])
            t = wp.sign(cot) / (wp.abs(cot) + wp.sqrt(real(1.0) + cot * cot))
            c = real(1.0) / wp.sqrt(real(1.0) + t * t)
            J[p, p] = c
            J[q, q] = c
            J[p, q] = t * c
            J[q, p] = -t * c
        return J

    @wp.func
    def eigen_of(A: mat):
        """Eigenvalues and eigenvectors of A by Jacobi's method.

        The method rotates one pair of axes after the other until all entries off the diagonal vanish.
        """
        D = A
        Q = wp.identity(n=dim, dtype=real)
        for _ in range(sweeps):
            left = real(0.0)
            for p in range(dim - 1):
                for q in range(p + 1, dim):
                    left += D[p, q] * D[p, q]
                    J = rotation_to_zero(D, p, q)
                    D = wp.transpose(J) @ D @ J
                    Q = Q @ J
            if left <= negligible * wp.ddot(D, D):
                break
        return wp.get_diag(D), Q

    return eigen_of


@wp.func
def log_slope(a: real, b: real):
    """Divided difference (ln a - ln b) / (a - b) = 2 artanh(x) / x / (a + b), with x = (a - b) / (a + b).

    For small x it is computed from a series with the relative error x^14/15.
    """
    x = (a - b) / (a + b)
    if wp.abs(x) > real(0.05):
        return (wp.log(a) - wp.log(b)) / (a - b)
    s = x * x
    series = real(0.0)
    for k in range(7):  # 1 + s/3 + s^2/5 + ... + s^6/13
        series = s * series + real(1.0) / real(13 - 2 * k)
    return real(2.0) * series / (a + b)


@wp.func
def exp_slope(a: real, b: real):
    """Divided difference (e^a - e^b) / (a - b) = e^((a + b)/2) sinh(x) / x, with x = (a - b) / 2.

    For small x it is computed from a series with the relative error x^8 / 362880.
    """
    x = real(0.5) * (a - b)
    if wp.abs(x) > real(0.05):
        return (wp.exp(a) - wp.exp(b)) / (a - b)
    s = x * x
    series = real(1.0) + s / real(6.0) * (real(1.0) + s / real(20.0) * (real(1.0) + s / real(42.0)))
    return wp.exp(real(0.5) * (a + b)) * series


@functools.cache
def _slopes(dim: int, slope: wp.Function) -> wp.Function:
    """Warp function that maps the eigenvalues a to the matrix G of divided differences, shape (`dim`, `dim`)."""
    vec, mat = vector(dim), matrix(dim)

    @wp.func
    def slopes(a: vec):
        """Matrix G with the entries G_ij = (f(a_i) - f(a_j)) / (a_i - a_j)."""
        G = mat()
        for i in range(dim):
            for j in range(dim):
                G[i, j] = slope(a[i], a[j])
        return G

    return slopes


@functools.cache
def log_symmetric(dim: int) -> wp.Function:
    """Warp function that computes ln A of a symmetric positive definite matrix A of shape (`dim`, `dim`)."""
    mat = matrix(dim)
    eigen_of = eigen(dim)
    slopes, along = log_differential(dim)

    @wp.func
    def log_of(A: mat):
        """ln A = Q diag(ln a) Q^T."""
        a, Q = eigen_of(A)
        for i in range(dim):
            a[i] = wp.log(a[i])
        return Q @ wp.diag(a) @ wp.transpose(Q)

    @wp.func_grad(log_of)
    def adj_log_of(A: mat, adj_ret: mat):
        a, Q = eigen_of(A)
        wp.adjoint[A] += along(Q, slopes(a), adj_ret)

    return log_of


@functools.cache
def log_differential(dim: int) -> tuple[wp.Function, wp.Function]:
    """Two Warp functions for the differential of ln A.

    The first function maps the eigenvalues a of A to the divided differences G; the second function maps (Q, G, dA),
    with the eigenvectors Q of A, to d(ln A).
    """
    return _slopes(dim, log_slope), _along(dim)


@functools.cache
def exp_symmetric(dim: int) -> wp.Function:
    """Warp function that computes exp A of a symmetric matrix A of shape (`dim`, `dim`)."""
    mat = matrix(dim)
    eigen_of = eigen(dim)
    slopes, along = exp_differential(dim)

    @wp.func
    def exp_of(A: mat):
        """exp A = Q diag(e^a) Q^T."""
        a, Q = eigen_of(A)
        for i in range(dim):
            a[i] = wp.exp(a[i])
        return Q @ wp.diag(a) @ wp.transpose(Q)

    @wp.func_grad(exp_of)
    def adj_exp_of(A: mat, adj_ret: mat):
        a, Q = eigen_of(A)
        wp.adjoint[A] += along(Q, slopes(a), adj_ret)

    return exp_of


@functools.cache
def exp_differential(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions a -> G, for the eigenvalues a of A, and (Q, G, dA) -> d(exp A), for its eigenvectors Q."""
    return _slopes(dim, exp_slope), _along(dim)


@functools.cache
def _along(dim: int) -> wp.Function:
    mat = matrix(dim)

    @wp.func
    def along(Q: mat, G: mat, dA: mat):
        """Differential df = Q (G o (Q^T dA Q)) Q^T along dA."""
        return Q @ wp.cw_mul(G, wp.transpose(Q) @ dA @ Q) @ wp.transpose(Q)

    return along
