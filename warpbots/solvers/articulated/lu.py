"""Dense linear systems: LU factorisation with partial pivoting, by one thread or by all threads of a world.

Both variants compute the same factors, P A = L U, stored row by row; row k was exchanged with row `pivot[k]`. A single
thread processes rows one after the other. The threads of a warp process adjacent columns, and eliminate the right-hand
side together with the matrix. If all threads need a sum, each thread computes the sum in the same order, so that runs
repeat to the bit.

The code of a single thread is native: the loops of Warp, with a stride and a test of each index, take a tenth of the
step of a hand. It has no adjoint.
"""

import warp as wp

from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.thread_team import sync

__all__ = [
    "clear_entries",
    "copy_entries",
    "eliminate",
    "eliminate_at",
    "factorise",
    "factorise_at",
    "solve",
    "solve_at",
    "solve_transposed",
    "solve_transposed_together",
]


_COPY = """
    for (int i = lane; i < count; i += lanes)
        to.data[first + i] = values.data[first + i];
"""


@wp.func_native(_COPY)
def copy_entries(values: wp.array[scalar], to: wp.array[scalar], first: int, count: int, lane: int, lanes: int):
    """Copy `count` entries of `values` to the same places of the array `to`, by all threads of a world."""


_CLEAR = """
    for (int i = lane; i < count; i += lanes)
        values.data[first + i] = 0.0;
"""


@wp.func_native(_CLEAR)
def clear_entries(values: wp.array[scalar], first: int, count: int, lane: int, lanes: int):
    """Set `count` entries of an array to zero, by all threads of a world."""


@wp.func
def pivot_row(A: wp.array[scalar], a: int, n: int, k: int):
    """Index of the row with the largest absolute entry in column k, among row k and all rows below it."""
    best = k
    most = wp.abs(A[a + k * n + k])
    for i in range(k + 1, n):
        size = wp.abs(A[a + i * n + k])
        if size > most:
            best = i
            most = size
    return best


@wp.func
def factorise(A: wp.array[scalar], pivot: wp.array[int], w: int, n: int):
    """Replace the matrix of world w by its factors, by one thread.

    A column without a pivot leaves a zero on the diagonal of U.
    """
    factorise_at(A, pivot, w * n * n, w * n, n)


_FACTORISE = """
#pragma clang fp contract(off)
    double* m = A.data + a;
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (::fabs(m[i * n + k]) > ::fabs(m[best * n + k]))
                best = i;
        pivot.data[s + k] = best;
        double* row = m + k * n;
        if (best != k)
            for (int j = 0; j < n; j++) {
                const double t = row[j];
                row[j] = m[best * n + j];
                m[best * n + j] = t;
            }
        const double d = row[k];
        if (d == 0.0)
            continue;
        for (int i = k + 1; i < n; i++) {
            double* __restrict__ other = m + i * n;
            if (other[k] == 0.0)
                continue;
            const double l = other[k] / d;
            other[k] = l;
            for (int j = k + 1; j < n; j++)
                other[j] -= l * row[j];
        }
    }
"""


@wp.func_native(_FACTORISE)
def factorise_at(A: wp.array[scalar], pivot: wp.array[int], a: int, s: int, n: int):
    """`factorise` for a matrix whose entries begin at `a`, and its rows in `pivot` at `s`."""


@wp.func
def solve(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int):
    """Replace b of world w by the solution x of A x = b, given the factors of A, by one thread."""
    solve_at(A, pivot, b, w * n * n, w * n, n)


_SOLVE = """
#pragma clang fp contract(off)
    const double* m = A.data + a;
    double* x = b.data + s;
    for (int k = 0; k < n; k++) {
        const int p = pivot.data[s + k];
        const double t = x[p];
        x[p] = x[k];
        x[k] = t;
    }
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++)
            x[i] -= m[i * n + k] * x[k];
    for (int k = n - 1; k >= 0; k--) {
        x[k] /= m[k * n + k];
        for (int i = 0; i < k; i++)
            x[i] -= m[i * n + k] * x[k];
    }
"""


@wp.func_native(_SOLVE)
def solve_at(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], a: int, s: int, n: int):
    """`solve` for a matrix whose entries begin at `a`, and its rows in `pivot` and `b` at `s`."""


@wp.func
def solve_transposed(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int):
    """Replace b of world w by the solution x of A^T x = b, given the factors of A, by one thread."""
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


@wp.func
def subtract_column(A: wp.array[scalar], a: int, n: int, k: int, j: int):
    """Subtract multiples of the entry in row k from the entries of column j below row k, four entries at a time."""
    u = A[a + k * n + j]
    i = k + 1
    while i + 3 < n:
        at = a + i * n
        b0 = A[at + j] - A[at + k] * u
        b1 = A[at + n + j] - A[at + n + k] * u
        b2 = A[at + 2 * n + j] - A[at + 2 * n + k] * u
        b3 = A[at + 3 * n + j] - A[at + 3 * n + k] * u
        A[at + j] = b0
        A[at + n + j] = b1
        A[at + 2 * n + j] = b2
        A[at + 3 * n + j] = b3
        i += 4
    while i < n:
        A[a + i * n + j] = A[a + i * n + j] - A[a + i * n + k] * u
        i += 1


@wp.func
def exchange(values: wp.array[scalar], i: int, j: int):
    """Exchange the entries i and j of an array."""
    t = values[i]
    values[i] = values[j]
    values[j] = t


@wp.func
def eliminate(A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int, lane: int, lanes: int):
    """Replace the matrix of world w by its factors and b by the solution x of A x = b, by all threads of the world."""
    eliminate_at(A, pivot, b, w * n * n, w * n, n, lane, lanes)


@wp.func
def eliminate_at(
    A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], a: int, s: int, n: int, lane: int, lanes: int
):
    """`eliminate` for a matrix whose entries begin at `a`, and its rows in `pivot` and `b` at `s`."""
    for k in range(n):
        best = pivot_row(A, a, n, k)
        sync()
        if lane == 0:
            pivot[s + k] = best
            exchange(b, s + k, s + best)
        if best != k:
            for j in range(lane, n, lanes):
                exchange(A, a + k * n + j, a + best * n + j)
        sync()
        d = A[a + k * n + k]
        if d != scalar(0.0):
            t = b[s + k]
            for i in range(k + 1 + lane, n, lanes):
                l = A[a + i * n + k] / d
                A[a + i * n + k] = l
                b[s + i] = b[s + i] - l * t
            sync()
            for j in range(k + 1 + lane, n, lanes):
                if A[a + k * n + j] != scalar(0.0):  # what is not coupled costs nothing
                    subtract_column(A, a, n, k, j)
        sync()
    for m in range(n):
        k = n - 1 - m
        t = b[s + k] / A[a + k * n + k]
        sync()
        if lane == 0:
            b[s + k] = t
        for i in range(lane, k, lanes):
            b[s + i] = b[s + i] - A[a + i * n + k] * t
        sync()


@wp.func
def solve_transposed_together(
    A: wp.array[scalar], pivot: wp.array[int], b: wp.array[scalar], w: int, n: int, lane: int, lanes: int
):
    """Replace b of world w by the solution x of A^T x = b, given the factors of A, by all threads of the world."""
    a = w * n * n
    s = w * n
    for k in range(n):
        t = b[s + k] / A[a + k * n + k]
        sync()
        if lane == 0:
            b[s + k] = t
        for j in range(k + 1 + lane, n, lanes):
            b[s + j] = b[s + j] - A[a + k * n + j] * t
        sync()
    for m in range(n):
        k = n - 1 - m
        t = b[s + k]
        for j in range(lane, k, lanes):
            b[s + j] = b[s + j] - A[a + k * n + j] * t
        sync()
    if lane == 0:
        for m in range(n):
            k = n - 1 - m
            exchange(b, s + k, s + pivot[s + k])
    sync()
