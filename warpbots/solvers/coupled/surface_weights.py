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
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.numerics.simd import deposit, fetch
from warpbots.solvers.mpm.spline import distance, spline, spline_slope
from warpbots.solvers.mpm.stencil_3d import ivec3, momentum, node, offset, origin, pencil

__all__ = ["gather", "scatter", "slopes"]

_vec = vector(3)
_ONE, _FOUR = wp.constant(real(1.0)), wp.constant(real(4.0))


@wp.func
def scatter(grid: wp.array[NODE], first: int, resolution: ivec3, x: _vec, e: _vec, q: _vec, m: real):
    """Add the derivative of the pairing by the values of nodes: v_i += W_i q, s_i += |W_i| m."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    dx = distance(f[0])
    dy = distance(f[1])
    dz = distance(f[2])
    for i in range(3):
        for j in range(3):
            n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
            for k in range(3):
                a = _ONE + _FOUR * (dx[i] * e[0] + dy[j] * e[1] + dz[k] * e[2])
                deposit(grid, n + k, wx[i] * wy[j] * wz[k], node(a * q, wp.abs(a) * m))


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec3, x: _vec, e: _vec):
    """Derivative of the pairing by q and m: a node value with sum_i W_i v_i and sum_i |W_i| s_i."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    dx = distance(f[0])
    dy = distance(f[1])
    dz = distance(f[2])
    v = _vec()
    s = real(0.0)
    for i in range(3):
        for j in range(3):
            n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
            for k in range(3):
                a = _ONE + _FOUR * (dx[i] * e[0] + dy[j] * e[1] + dz[k] * e[2])
                W = wx[i] * wy[j] * wz[k] * a
                h = fetch(grid, n + k)
                v += W * momentum(h)
                s += wp.abs(W) * h[3]
    return node(v, s)


@wp.func
def slopes(grid: wp.array[NODE], first: int, resolution: ivec3, x: _vec, e: _vec, q: _vec, m: real):
    """Derivatives of the pairing by the position of the particle, at a fixed distance e, and by e [1/cell]."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    sx = spline_slope(f[0])
    sy = spline_slope(f[1])
    sz = spline_slope(f[2])
    dx = distance(f[0])
    dy = distance(f[1])
    dz = distance(f[2])
    by_x = _vec()
    by_e = _vec()
    total = real(0.0)
    for i in range(3):
        for j in range(3):
            n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
            for k in range(3):
                a = _ONE + _FOUR * (dx[i] * e[0] + dy[j] * e[1] + dz[k] * e[2])
                h = fetch(grid, n + k)
                own = wp.dot(q, momentum(h))
                share = m * h[3]
                c = a * own + wp.abs(a) * share
                slope = wx[i] * wy[j] * wz[k] * (own + wp.sign(a) * share)
                by_x += c * _vec(sx[i] * wy[j] * wz[k], wx[i] * sy[j] * wz[k], wx[i] * wy[j] * sz[k])
                by_e += slope * _vec(dx[i], dy[j], dz[k])
                total += slope
    return by_x - _FOUR * total * e, _FOUR * by_e
