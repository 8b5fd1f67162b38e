"""Dense systems of one world: LU factorisation with partial pivoting, shared by the threads of a world."""

import warp as wp

from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.team import sync

__all__ = ["factorise", "solve", "solve_transposed"]


@wp.func
def factorise(A: wp.array[scalar], pivot: wp.array[int], w: int, n: int, lane: int, lanes: int):
    """Replace the matrix of world w by its factors, P A = L U, row by row; row k was exchanged with row `pivot[k]`.

    A column without a pivot leaves a zero on the diagonal of U.
    """
    a = w * n * n
    for k in range(n):
        if lane == 0:
            best = k
            for i in range(k + 1, n):
                if wp.abs(A[a + i * n + k]) > wp.abs(A[a + best * n + k]):
                    best = i
            pivot[w * n + k] = best
        sync()
        best = pivot[w * n + k]
        if best != k:
            for j in range(lane, n, lanes):
                t = A[a + k * n + j]
                A[a + k * n + j] = A[a + best * n + j]
                A[a + best * n + j] = t
        sync()
        d = A[a + k * n + k]
        if d != scalar(0.0):
            for i in range(k + 1 + lane, n, lanes):
                l = A[a + i * n + k]
                if l != scalar(0.0):
                    l = l / d
                    A[a + i * n + k] = l
                    for j in range(k + 1, n):
                        A[a + i * n + j] = A[a + i * n + j] - l * A[a + k * n + j]
        sync()


@wp.func
def solve(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int):
    """Replace b of world w by the solution x of A x = b, given the factors of A; by one thread."""
    a = w * n * n
    s = w * n
    for k in range(n):
        p = pivot[s + k]
        t = b[s + p]
        b[s + p] = b[s + k]
        b[s + k] = t
    for k in range(n):
        t = b[s + k]
        for j in range(k):
            t -= A[a + k * n + j] * b[s + j]
        b[s + k] = t
    for m in range(n):
        k = n - 1 - m
        t = b[s + k]
        for j in range(k + 1, n):
            t -= A[a + k * n + j] * b[s + j]
        b[s + k] = t / A[a + k * n + k]


@wp.func
def solve_transposed(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int):
    """Replace b of world w by the solution x of A^T x = b, given the factors of A; by one thread."""
    a = w * n * n
    s = w * n
    for k in range(n):
        t = b[s + k] / A[a + k * n + k]
        b[s + k] = t
        for j in range(k + 1, n):
            b[s + j] = b[s + j] - A[a + k * n + j] * t
    for m in range(n):
        k = n - 1 - m
        t = b[s + k]
        for i in range(k + 1, n):
            t -= A[a + i * n + k] * b[s + i]
        b[s + k] = t
    for m in range(n):
        k = n - 1 - m
        p = pivot[s + k]
        t = b[s + p]
        b[s + p] = b[s + k]
        b[s + k] = t
