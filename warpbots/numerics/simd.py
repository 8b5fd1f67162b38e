"""Arithmetic on whole grid nodes, which are vectors of four components, on runs of vectors, and flat arrays.

Warp's own operators work on one component after the other, and the compiler for CPUs uses vector instructions only for
groups of components that are stored together. These functions use the vector registers directly. On a GPU these
functions are Warp's operators. `add_multiples`, `add_multiple`, `combine_rows` and the functions of rows are loops
without strides and the tests for negative indices in loops of Warp, which keep a CPU from vector instructions. `item`,
`index`, `put` and `add_to` read and write flat arrays without this stride and this test, which are six instructions for
each access on a CPU; an index out of range is not noticed. No function of this file has an adjoint: code that uses them
has adjoints written by hand.
"""

import warp as wp

from warpbots.numerics.scalars import NODE, matrix, real, vector

__all__ = [
    "add", "add_multiple", "add_multiple_of", "add_multiples", "add_to", "combine_rows", "deposit", "dot",
    "eliminate_rows", "factorise_rows", "fetch", "gather_rows", "index", "item", "multiply", "multiply_add", "put",
    "scale", "solve_rows", "subtract",
]  # fmt: skip


_SCALAR = {wp.float32: "float", wp.float64: "double"}[real]


def _snippet(cuda: str, cpu: str, start: str = "", end: str = "return a;") -> str:
    """Native code of a function: the statement `cuda` on a GPU, and the assignment A = `cpu` on a CPU.

    On a CPU, A and B are the vector registers of the nodes `a` and `b`.
    """
    return f"""
#if defined(__CUDA_ARCH__)
    {cuda};
#else
#pragma clang fp contract(fast)
    {start}
    typedef {_SCALAR} lanes __attribute__((vector_size(4 * sizeof({_SCALAR}))));
    lanes A, B;
    __builtin_memcpy(&A, &a, sizeof(lanes));
    __builtin_memcpy(&B, &b, sizeof(lanes));
    A = {cpu};
    __builtin_memcpy(&a, &A, sizeof(lanes));
    {end}
#endif
"""


@wp.func_native(_snippet("return wp::add(a, b)", "A + B"))
def add(a: NODE, b: NODE) -> NODE:
    """Sum a + b of two nodes."""


@wp.func_native(_snippet("return wp::sub(a, b)", "A - B"))
def subtract(a: NODE, b: NODE) -> NODE:
    """Difference a - b of two nodes."""


@wp.func_native(_snippet("return wp::cw_mul(a, b)", "A * B"))
def multiply(a: NODE, b: NODE) -> NODE:
    """Product a * b of two nodes, component by component."""


@wp.func_native(_snippet("return wp::add(a, wp::mul(s, b))", "A + s * B"))
def multiply_add(a: NODE, s: real, b: NODE) -> NODE:
    """Node a plus the multiple s b of node b."""


@wp.func
def dot(a: NODE, b: NODE):
    """Scalar product a . b of the first three components; the fourth component is a mass or unused."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@wp.func
def scale(s: real, a: NODE):
    """Multiple s a of node a."""
    return multiply(NODE(s), a)


# Warp does not know that nodes of four floats are aligned to 16 bytes; a GPU then moves them in one instruction.
_FETCH, _ATOMIC = "return grid.data[n]", "wp::atomic_add(grid, n, wp::mul(s, b))"
if real is wp.float32:
    _FETCH = """
    float4 h = *reinterpret_cast<const float4*>(&grid.data[n]);
    return wp::vec_t<4, float>(h.x, h.y, h.z, h.w)"""
    _ATOMIC = f"""
#if __CUDA_ARCH__ >= 900
    float4 h = make_float4(s * b.c[0], s * b.c[1], s * b.c[2], s * b.c[3]);
    atomicAdd(reinterpret_cast<float4*>(&grid.data[n]), h);
#else
    {_ATOMIC};
#endif"""


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    {_FETCH};
#else
    return grid.data[n];
#endif
""")
def fetch(grid: wp.array[NODE], n: int) -> NODE:
    """Read the node grid[n]."""


@wp.func_native(_snippet(_ATOMIC, "A + s * B", "auto& a = grid.data[n];", ""))
def deposit(grid: wp.array[NODE], n: int, s: real, b: NODE):
    """Add s b to the node grid[n]; the addition is atomic on a GPU."""


for _type in (real, vector(2), vector(3), matrix(2), matrix(3)):

    @wp.func_native("return a.data[n];")
    def item(a: wp.array[_type], n: int) -> _type:
        """Read the number, vector or matrix a[n]."""

    @wp.func_native("a.data[n] = value;")
    def put(a: wp.array[_type], n: int, value: _type):
        """Write the number, vector or matrix a[n]."""

    @wp.func_native("a.data[n] = wp::add(a.data[n], value);")
    def add_to(a: wp.array[_type], n: int, value: _type):
        """Add to a[n], which no other thread writes: the addition is not atomic."""


@wp.func_native("return a.data[n];")
def index(a: wp.array[int], n: int) -> int:
    """Read the integer a[n]."""


@wp.func_native(f"""
#pragma clang fp contract(fast)
    {_SCALAR}* __restrict__ p = reinterpret_cast<{_SCALAR}*>(a.data + i);
    const {_SCALAR}* __restrict__ q = s.data + j;
    const {_SCALAR} x = v[0], y = v[1], z = v[2];
    const int step = lanes == 1 ? 1 : lanes;  // a constant step lets a CPU use vector instructions
    for (int k = lane; k < count; k += step) {{
        p[3 * k] += q[k] * x;
        p[3 * k + 1] += q[k] * y;
        p[3 * k + 2] += q[k] * z;
    }}
""")
def add_multiples(
    a: wp.array[vector(3)], i: int, s: wp.array[real], j: int, v: vector(3), count: int, lane: int, lanes: int
):
    """Add s[j + k] v to a[i + k] for `count` indices k, of which thread `lane` takes every `lanes`-th."""


@wp.func_native("""
#pragma clang fp contract(fast)
    double* __restrict__ p = a.data + i;
    const double* __restrict__ q = a.data + j;
    for (int k = 0; k < count; ++k)
        p[k] += s * q[k];
""")
def add_multiple(a: wp.array[wp.float64], i: int, j: int, s: wp.float64, count: int):
    """Add s a[j + k] to a[i + k] for `count` indices k; the two ranges must not overlap."""


@wp.func_native("""
#pragma clang fp contract(fast)
    double* __restrict__ p = a.data + i;
    const double* __restrict__ x = b.data + j;
    const double *y = x + count, *z = y + count;
    const double r = s[0], t = s[1], u = s[2];
    for (int k = 0; k < count; ++k)
        p[k] = r * x[k] + t * y[k] + u * z[k];
""")
def combine_rows(a: wp.array[wp.float64], i: int, b: wp.array[wp.float64], j: int, s: wp.vec3d, count: int):
    """Write the combination with the weights s of three rows of `count` entries, which begin at b[j], to a[i + k]."""


@wp.func_native("""
#pragma clang fp contract(fast)
    double* __restrict__ p = a.data + i;
    const double* __restrict__ q = b.data + j;
    for (int k = 0; k < count; ++k)
        p[k] += s * q[k];
""")
def add_multiple_of(a: wp.array[wp.float64], i: int, b: wp.array[wp.float64], j: int, s: wp.float64, count: int):
    """Add s b[j + k] to a[i + k] for `count` indices k."""


@wp.func_native("""
#pragma clang fp contract(fast)
    double* m = factor.data + a;
    const double* given = A.data + a;
    for (int i = 0; i < n; ++i)
        for (int j = i; j < n; ++j)
            m[i * stride + j] = given[i * stride + j];
    for (int k = 0; k < n; ++k) {
        double* __restrict__ row = m + k * stride;
        if (!(row[k] > 0.0))
            return 0;
        const double inverse = 1.0 / row[k];
        for (int i = k + 1; i < n; ++i) {
            double* __restrict__ other = m + i * stride;
            const double l = row[i] * inverse;
            for (int j = i; j < n; ++j)
                other[j] -= l * row[j];
        }
        row[k] = inverse;
    }
    return 1;
""")
def factorise_rows(factor: wp.array[wp.float64], A: wp.array[wp.float64], a: int, stride: int, n: int) -> int:
    """Write the factor U^T D U of a symmetric matrix, whose upper half begins at A[a] in rows of `stride` entries.

    Returns 1 if the matrix is positive definite. Row k of the factor has the inverse of the pivot on the diagonal, and
    D U behind it.
    """


@wp.func_native(f"""
    const {_SCALAR}* table = s.data + b;
    const int* index = member.data + first;
    int changed = 0;
    for (int i = 0; i < n; ++i) {{
        const bool coupled = index[i] < count;
        const {_SCALAR}* row = table + index[i] * side;
        double* to = A.data + a + i * stride;
        for (int j = i + 1; j < n; ++j) {{
            const double value = coupled && index[j] < count ? row[index[j]] * factor : 0.0;
            changed |= to[j] != value;
            to[j] = value;
        }}
    }}
    return changed;
""")
def gather_rows(
    A: wp.array[wp.float64], a: int, stride: int, s: wp.array[real], b: int, side: int, member: wp.array[int],
    first: int, n: int, count: int, factor: wp.float64,
) -> int:  # fmt: skip
    """Copy some rows and columns of a matrix, times a factor, to the entries above the diagonal of another one.

    The matrix begins at s[b] and has `side` rows; `member` has, from `first` on, the indices of n of them, of which
    those from `count` on have no entries. The other matrix begins at A[a], in rows of `stride` entries. Returns 1 if
    an entry has changed.
    """


@wp.func_native("""
#pragma clang fp contract(fast)
    const double* m = factor.data + a;
    double* rows = x.data + b;
    for (int i = 1; i < n; ++i) {
        double* __restrict__ y = rows + i * width;
        int k = 0;
        for (; k + 3 < i; k += 4) {
            const double* c = m + k * stride;
            const double* __restrict__ x0 = rows + k * width;
            const double *x1 = x0 + width, *x2 = x1 + width, *x3 = x2 + width;
            const double l0 = c[i] * c[k], l1 = c[stride + i] * c[stride + k + 1],
                         l2 = c[2 * stride + i] * c[2 * stride + k + 2], l3 = c[3 * stride + i] * c[3 * stride + k + 3];
            for (int j = 0; j < width; ++j)
                y[j] -= l0 * x0[j] + l1 * x1[j] + l2 * x2[j] + l3 * x3[j];
        }
        for (; k < i; ++k) {
            const double l = m[k * stride + i] * m[k * stride + k];
            for (int j = 0; j < width; ++j)
                y[j] -= l * rows[k * width + j];
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* row = m + k * stride;
        double* __restrict__ y = rows + k * width;
        int i = k + 1;
        for (; i + 3 < n; i += 4) {
            const double* __restrict__ x0 = rows + i * width;
            const double *x1 = x0 + width, *x2 = x1 + width, *x3 = x2 + width;
            for (int j = 0; j < width; ++j)
                y[j] -= row[i] * x0[j] + row[i + 1] * x1[j] + row[i + 2] * x2[j] + row[i + 3] * x3[j];
        }
        for (; i < n; ++i)
            for (int j = 0; j < width; ++j)
                y[j] -= row[i] * rows[i * width + j];
        for (int j = 0; j < width; ++j)
            y[j] *= row[k];
    }
""")
def solve_rows(factor: wp.array[wp.float64], a: int, stride: int, x: wp.array[wp.float64], b: int, width: int, n: int):
    """Replace the n rows of `width` entries from x[b] on by the solution of the system with a factor.

    The factor is one of `factorise_rows`.
    """


@wp.func_native("""
#pragma clang fp contract(fast)
    double* m = A.data + a;
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; i < n; ++i)
            if (::fabs(m[i * width + k]) > ::fabs(m[best * width + k]))
                best = i;
        double* __restrict__ row = m + k * width;
        if (best != k)
            for (int j = k; j < width; ++j) {
                const double t = row[j];
                row[j] = m[best * width + j];
                m[best * width + j] = t;
            }
        if (!(::fabs(row[k]) > 0.0))
            return 0;
        const double inverse = 1.0 / row[k];
        for (int j = k; j < width; ++j)
            row[j] *= inverse;
        for (int i = 0; i < n; ++i) {
            double* __restrict__ other = m + i * width;
            const double l = other[k];
            if (i != k && l != 0.0)
                for (int j = k; j < width; ++j)
                    other[j] -= l * row[j];
        }
    }
    return 1;
""")
def eliminate_rows(A: wp.array[wp.float64], a: int, n: int, width: int) -> int:
    """Solve a system of n equations by elimination with partial pivoting; returns 1 if it is regular.

    Its rows of `width` entries begin at A[a]: the matrix, and the right-hand sides, which the solutions replace.
    """
