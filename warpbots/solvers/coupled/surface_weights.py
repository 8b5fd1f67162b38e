"""Weights with which a particle of MPM exchanges velocities and impulses with its nodes at a place near by.

MLS-MPM gives a particle at x_p an affine velocity field from the nodes at x_i, with the distances d_i = x_i - x_p,
quadratic B-splines w_i and cells of size h. At the distance e from the particle this field is

    v(x_p + e) = sum_i w_i v_i + (4/h^2) sum_i w_i v_i d_i^T e = sum_i W_i v_i,   W_i = w_i (1 + (4/h^2) d_i . e).

Because sum_i w_i d_i = 0 and sum_i w_i d_i d_i^T = (h^2/4) I, the weights W_i add up to one, and the weighted positions
of the nodes to x_p + e. So an impulse p that acts on the nodes as W_i p has the momentum p and the angular momentum
(x_p + e) cross p. Far from the surface W_i may be negative; shares of mass take the weights |W_i|.

As in `stencil_3d`, all functions are derivatives of one pairing, of a vector q and a scalar m at the particle with a
vector v_i and a scalar s_i at each node; distances are in cells:

    L = sum_i (W_i q . v_i + |W_i| m s_i)

In 2D the nodes of a particle are three rows of three nodes: the sums below run over one row in the middle direction,
with the weight 1 and no distance.
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.numerics import NODE, index_vector, real, vector
from warpbots.numerics.simd import deposit, fetch
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.mpm.spline import distance, spline, spline_slope

__all__ = ["SurfaceWeights", "surface_weights"]

vec3 = vector(3)
_ZERO, _ONE, _FOUR = (wp.constant(real(c)) for c in (0.0, 1.0, 4.0))


class SurfaceWeights(NamedTuple):
    """Warp functions of the pairing of particles and nodes."""

    gather: wp.Function
    scatter: wp.Function
    slopes: wp.Function


class _Rows(NamedTuple):
    """Warp functions of the rows of three nodes around a particle, which follow one another in two directions.

    Attributes:
        row: row(first, cell, i, j, resolution): index of the first node of a row.
        in_rows: in_rows(x, alone): components of x in the first and the second direction and along rows.
        from_rows: Inverse of `in_rows`.
        middle: middle(values, alone): values of three rows in the second direction; in 2D `alone`, of the only row.
    """

    row: wp.Function
    in_rows: wp.Function
    from_rows: wp.Function
    middle: wp.Function


def _rows(dim: int) -> _Rows:
    vec, ivec, s = vector(dim), index_vector(dim), stencil(dim)

    if dim == 2:

        @wp.func
        def row(first: int, cell: ivec, i: int, j: int, resolution: ivec):
            """Index of the first node of row i."""
            return (first + s.pencil(cell, i)) * resolution[1] + cell[1]

        @wp.func
        def in_rows(x: vec, alone: real):
            """The vector x with `alone` in the middle."""
            return vec3(x[0], alone, x[1])

        @wp.func
        def from_rows(x: vec3):
            """The first and the last component."""
            return vec(x[0], x[2])

        @wp.func
        def middle(values: vec3, alone: real):
            """`alone`, and zeros for rows that do not exist."""
            return vec3(alone, real(0.0), real(0.0))

    else:

        @wp.func
        def row(first: int, cell: ivec, i: int, j: int, resolution: ivec):
            """Index of the first node of row (i, j)."""
            return (first + s.pencil(cell, i, j, resolution)) * resolution[2] + cell[2]

        @wp.func
        def in_rows(x: vec, alone: real):
            """The vector x."""
            return x

        @wp.func
        def from_rows(x: vec3):
            """The vector x."""
            return x

        @wp.func
        def middle(values: vec3, alone: real):
            """The values."""
            return values

    return _Rows(row, in_rows, from_rows, middle)


@functools.cache
def surface_weights(dim: int) -> SurfaceWeights:
    """Functions for matter in `dim` dimensions."""
    vec, ivec, s, rows = vector(dim), index_vector(dim), stencil(dim), wp.constant({2: 1, 3: 3}[dim])
    row, in_rows, from_rows, middle = _rows(dim)

    @wp.func
    def around(x: vec, e: vec):
        """First cell, offsets in it, splines and distances in the three directions of rows, and e in these."""
        cell = s.origin(x)
        f = in_rows(s.offset(x, cell), _ONE)
        wx, wy, wz = spline(f[0]), middle(spline(f[1]), _ONE), spline(f[2])
        dx, dy, dz = distance(f[0]), middle(distance(f[1]), _ZERO), distance(f[2])
        return cell, f, wx, wy, wz, dx, dy, dz, in_rows(e, _ZERO)

    @wp.func
    def scatter(grid: wp.array[NODE], first: int, resolution: ivec, x: vec, e: vec, q: vec, m: real):
        """Add the derivative of the pairing by the values of nodes: v_i += W_i q, s_i += |W_i| m."""
        cell, _f, wx, wy, wz, dx, dy, dz, arm = around(x, e)
        for i in range(3):
            for j in range(rows):
                n = row(first, cell, i, j, resolution)
                for k in range(3):
                    a = _ONE + _FOUR * (dx[i] * arm[0] + dy[j] * arm[1] + dz[k] * arm[2])
                    deposit(grid, n + k, wx[i] * wy[j] * wz[k], s.node(a * q, wp.abs(a) * m))

    @wp.func
    def gather(grid: wp.array[NODE], first: int, resolution: ivec, x: vec, e: vec):
        """Derivative of the pairing by q and m: a node value with sum_i W_i v_i and sum_i |W_i| s_i."""
        cell, _f, wx, wy, wz, dx, dy, dz, arm = around(x, e)
        v = vec()
        shares = real(0.0)
        for i in range(3):
            for j in range(rows):
                n = row(first, cell, i, j, resolution)
                for k in range(3):
                    a = _ONE + _FOUR * (dx[i] * arm[0] + dy[j] * arm[1] + dz[k] * arm[2])
                    W = wx[i] * wy[j] * wz[k] * a
                    h = fetch(grid, n + k)
                    v += W * s.momentum(h)
                    shares += wp.abs(W) * h[3]
        return s.node(v, shares)

    @wp.func
    def slopes(grid: wp.array[NODE], first: int, resolution: ivec, x: vec, e: vec, q: vec, m: real):
        """Derivatives of the pairing by the position of the particle, at a fixed distance e, and by e [1/cell]."""
        cell, f, wx, wy, wz, dx, dy, dz, arm = around(x, e)
        sx = spline_slope(f[0])
        sy = middle(spline_slope(f[1]), _ZERO)
        sz = spline_slope(f[2])
        by_x = vec3()
        by_e = vec3()
        total = real(0.0)
        for i in range(3):
            for j in range(rows):
                n = row(first, cell, i, j, resolution)
                for k in range(3):
                    a = _ONE + _FOUR * (dx[i] * arm[0] + dy[j] * arm[1] + dz[k] * arm[2])
                    h = fetch(grid, n + k)
                    own = wp.dot(q, s.momentum(h))
                    share = m * h[3]
                    c = a * own + wp.abs(a) * share
                    slope = wx[i] * wy[j] * wz[k] * (own + wp.sign(a) * share)
                    by_x += c * vec3(sx[i] * wy[j] * wz[k], wx[i] * sy[j] * wz[k], wx[i] * wy[j] * sz[k])
                    by_e += slope * vec3(dx[i], dy[j], dz[k])
                    total += slope
        return from_rows(by_x) - _FOUR * total * e, from_rows(_FOUR * by_e)

    return SurfaceWeights(gather, scatter, slopes)
