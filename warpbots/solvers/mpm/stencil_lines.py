"""The sums over the nodes around a particle as native code for the vector registers of a CPU.

Three nodes of a pencil are twelve consecutive numbers, which this code adds and multiplies at once, in a vector of 16;
a compiler divides it where registers are shorter. Weights of all axes are one vector, too. What is the same on all
pencils is done once: weights along the pencil are applied before a `scatter`, and after the sums of the others. On a
GPU, where a thread has no vector registers, `stencil_2d` and `stencil_3d` visit one node after the other instead.

The functions are those of `stencil_3d`. None has an adjoint.
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.numerics import NODE, index_vector, matrix, real, vector
from warpbots.numerics.threads import emulated

__all__ = ["LineSums", "line_sums", "on_cpu"]

_SCALAR, _INTEGER = {wp.float32: ("float", "int"), wp.float64: ("double", "long long")}[real]
SUMS = wp.types.matrix(shape=(4, 4), dtype=real)
"""Four sums of nodes, as rows."""

_TYPES = f"""
#if defined(__CUDA_ARCH__)
    return {{}};
#else
#pragma clang fp contract(fast)
    typedef {_SCALAR} real;
    typedef real one __attribute__((vector_size(4 * sizeof(real))));  // a node
    typedef real two __attribute__((vector_size(8 * sizeof(real))));
    typedef real all __attribute__((vector_size(16 * sizeof(real))));  // the three nodes of a pencil, and four zeros
    typedef {_INTEGER} integers __attribute__((vector_size(4 * sizeof(real))));
    auto line = [](one a, one b, one c) {{
        const two ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
        const two c0 = __builtin_shufflevector(c, one{{}}, 0, 1, 2, 3, 4, 5, 6, 7);
        return __builtin_shufflevector(ab, c0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }};
    auto alike = [](real a) {{ return one{{a, a, a, a}}; }};
    auto load = [](const real* p) {{
        two A;
        one B;
        __builtin_memcpy(&A, p, sizeof(two));
        __builtin_memcpy(&B, p + 8, sizeof(one));
        const two B0 = __builtin_shufflevector(B, one{{}}, 0, 1, 2, 3, 4, 5, 6, 7);
        return __builtin_shufflevector(A, B0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }};
    auto sum = [](all a) {{  // of the three nodes
        return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7)
            + __builtin_shufflevector(a, a, 8, 9, 10, 11);
    }};
"""

_WEIGHTS = """
    const integers cell = __builtin_convertvector(c - real(0.5), integers);  // truncated; c is 0.5 or more
    const one f = c - __builtin_convertvector(cell, one);
    const one u = real(1.5) - f, s = f - real(1), t = f - real(0.5);
    const one w0 = real(0.5) * u * u, w1 = real(0.75) - s * s, w2 = real(0.5) * t * t;
"""


def _native(dim: int, code: str) -> str:
    """Native code for a CPU in `dim` dimensions; in 2D a plane is one pencil of weight 1, and the axes are 0 and 2.

    It knows the position c, the first node `cell` and the distance f from it [cells] and weights w0, w1, w2 of the
    nodes along all axes; and for indices i of planes and j of pencils `at(i, j)`, the numbers of the pencil.
    """
    if dim == 2:
        position, step, plane, pencils, wy = "{x[0], real(1), x[1], 0}", "resolution[1]", "step", 1, "1, 0, 0"
        columns = """const one X = {A.data[0][0], A.data[1][0]}, Y = {}, Z = {A.data[0][1], A.data[1][1]};
    const one value = {q[0], q[1], 0, m};"""
    else:
        position, step, plane, pencils = "{x[0], x[1], x[2], 0}", "resolution[2]", "resolution[1] * step", 3
        wy = "w0[1], w1[1], w2[1]"
        columns = """const one X = {A.data[0][0], A.data[1][0], A.data[2][0]};
    const one Y = {A.data[0][1], A.data[1][1], A.data[2][1]}, Z = {A.data[0][2], A.data[1][2], A.data[2][2]};
    const one value = {q[0], q[1], q[2], m};"""
    return f"""{_TYPES}
    const one c = {position};
    {_WEIGHTS}
    constexpr int pencils = {pencils};
    const real wx[3] = {{w0[0], w1[0], w2[0]}}, wy[3] = {{{wy}}};
    const long long step = {step}, plane = {plane};
    auto* start = &grid.data[first * step + cell[0] * plane + cell[1] * step + cell[2]].c[0];
    auto at = [&](int i, int j) {{ return start + 4 * (i * plane + j * step); }};
    {code.replace("COLUMNS", columns)}
#endif
"""


_SCATTER = """
    COLUMNS
    auto pair = [](one a, one b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); };
    const two wz = pair(alike(w0[2]), alike(w1[2]));
    const two xx = wz * pair(X, X), yy = wz * pair(Y, Y);
    const one x2 = w2[2] * X, y2 = w2[2] * Y;
    const one corner = value - f[0] * X - f[1] * Y - f[2] * Z;
    two plane01 = wz * pair(corner, corner + Z);
    one plane2 = w2[2] * (corner + 2 * Z);
    for (int i = 0; i < 3; i++) {
        if (i >= begin && i < end) {
            two pencil01 = plane01;
            one pencil2 = plane2;
            for (int j = 0; j < pencils; j++) {
                real* p = at(i, j);
                const real w = wx[i] * wy[j];
                two A;
                one B;
                __builtin_memcpy(&A, p, sizeof(two));
                __builtin_memcpy(&B, p + 8, sizeof(one));
                A += w * pencil01;
                B += w * pencil2;
                __builtin_memcpy(p, &A, sizeof(two));
                __builtin_memcpy(p + 8, &B, sizeof(one));
                pencil01 += yy;
                pencil2 += y2;
            }
        }
        plane01 += xx;
        plane2 += x2;
    }
    return 0;
"""

_GATHER = """
    const one d0 = -f * w0, d1 = (real(1) - f) * w1, d2 = (real(2) - f) * w2;
    const real dx[3] = {d0[0], d1[0], d2[0]}, dy[3] = {d0[1], d1[1], d2[1]};
    all q = {}, qx = {}, qy = {};
    for (int i = 0; i < 3; i++) {
        all p = {}, py = {};
        for (int j = 0; j < pencils; j++) {
            const all h = load(at(i, j));
            p += wy[j] * h;
            py += dy[j] * h;
        }
        q += wx[i] * p;
        qx += dx[i] * p;
        qy += wx[i] * py;
    }
    const all wz = line(alike(w0[2]), alike(w1[2]), alike(w2[2]));
    const all dz = line(alike(d0[2]), alike(d1[2]), alike(d2[2]));
    const one sums[4] = {sum(q * wz), sum(qx * wz), sum(qy * wz), sum(q * dz)};
    wp::mat_t<4, 4, real> result;
    __builtin_memcpy(&result, sums, sizeof(sums));
    return result;
"""

_SLOPE = """
    const one s0 = f - real(1.5), s1 = real(2) - 2 * f, s2 = f - real(0.5);
    const real dx[3] = {s0[0], s1[0], s2[0]}, dy[3] = {s0[1], s1[1], s2[1]};
    COLUMNS
    const all yyy = line(Y, Y, Y), xxx = line(X, X, X);
    const one corner = value - f[0] * X - f[1] * Y - f[2] * Z;
    all plane012 = line(corner, corner + Z, corner + 2 * Z);
    all g = {}, gx = {}, gy = {};
    for (int i = 0; i < 3; i++) {
        all pencil = plane012, p = {}, py = {};
        for (int j = 0; j < pencils; j++) {
            const all h = load(at(i, j)) * pencil;
            p += wy[j] * h;
            py += dy[j] * h;
            pencil += yyy;
        }
        g += wx[i] * p;
        gx += dx[i] * p;
        gy += wx[i] * py;
        plane012 += xxx;
    }
    const all wz = line(alike(w0[2]), alike(w1[2]), alike(w2[2]));
    const all dz = line(alike(s0[2]), alike(s1[2]), alike(s2[2]));
    const one a = sum(gx * wz), b = sum(gy * wz), d = sum(g * dz);
    const one low = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    const real total[3] = {low[0] + low[1], low[2] + low[3], (d[0] + d[1]) + (d[2] + d[3])};
"""


class LineSums(NamedTuple):
    """Functions of a grid, the first pencil of a world, the resolution, and the position of a particle [cells].

    Attributes:
        scatter: Adds w_i (value + Ax d_x + Ay d_y + Az d_z) to the nodes, of planes from `begin` up to `end`.
        gather: The sums of w_i h_i, and of w_i h_i times the distance along each axis, as rows.
        slope: The sums of dw_i / dx (value + Ax d_x + Ay d_y + Az d_z) . h_i for each axis.
    """

    scatter: wp.Function
    gather: wp.Function
    slope: wp.Function


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    return false;
#else
    return {str(not emulated()).lower()};
#endif
""")
def on_cpu() -> bool:
    """Whether this is code for a CPU, unless it uses the kernels of a GPU; a compiler leaves out the other code."""


@functools.cache
def line_sums(dim: int) -> LineSums:
    """The sums for `dim` dimensions; in 2D the sum along axis 1 is of no use."""
    vec, mat, ivec = vector(dim), matrix(dim), index_vector(dim)
    slope_end = "return wp::vec_t<3, real>(total[0], total[1], total[2]);"
    if dim == 2:
        slope_end = "return wp::vec_t<2, real>(total[0], total[2]);"

    @wp.func_native(_native(dim, _SCATTER))
    def scatter_lines(
        grid: wp.array[NODE], first: int, resolution: ivec, x: vec, q: vec, m: real, A: mat,
        begin: int, end: int,
    ) -> int:  # fmt: skip
        """Add w_i (value + A d_i) to the nodes of the planes from `begin` up to `end`."""

    @wp.func_native(_native(dim, _GATHER))
    def gather_lines(grid: wp.array[NODE], first: int, resolution: ivec, x: vec) -> SUMS:
        """Sums of w_i h_i and w_i h_i d_i."""

    @wp.func_native(_native(dim, _SLOPE + slope_end))
    def slope_lines(grid: wp.array[NODE], first: int, resolution: ivec, x: vec, q: vec, m: real, A: mat) -> vec:
        """Sums of grad w_i (value + A d_i) . h_i."""

    return LineSums(scatter_lines, gather_lines, slope_lines)
