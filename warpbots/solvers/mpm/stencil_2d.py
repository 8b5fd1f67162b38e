"""Quadratic B-splines on the 9 nodes around a particle in the plane: `stencil_3d` without its third axis."""

import warp as wp

from warpbots.math import NODE, index_vector, matrix, real, vector
from warpbots.solvers.mpm.spline import distance, spline, spline_slope

__all__ = ["gather", "momentum", "node", "origin", "reach", "scatter", "slope"]

vec2, mat22, ivec2 = vector(2), matrix(2), index_vector(2)


@wp.func
def node(v: vec2, m: real):
    """A node value from a momentum and a mass; its third component is zero."""
    return NODE(v[0], v[1], real(0.0), m)


@wp.func
def momentum(h: NODE):
    """The momentum of a node value."""
    return vec2(h[0], h[1])


@wp.func
def origin(x: vec2):
    """First cell of the stencil of a particle at `x` [cells]."""
    return ivec2(int(wp.floor(x[0] - real(0.5))), int(wp.floor(x[1] - real(0.5))))


@wp.func
def reach(x: vec2, resolution: ivec2):
    """Whether the whole stencil of a particle at `x` [cells] lies on the grid; false for a NaN."""
    return (
        x[0] >= real(0.5) and x[1] >= real(0.5)
        and x[0] < real(resolution[0]) - real(1.5)
        and x[1] < real(resolution[1]) - real(1.5)
    )  # fmt: skip


@wp.func
def row(cell: ivec2, i: int, resolution: ivec2):
    """Index of the first node of row i of the stencil at `cell`."""
    return (cell[0] + i) * resolution[1] + cell[1]


@wp.func
def offset(x: vec2, cell: ivec2):
    """Position of a particle relative to the first node of its stencil [cells], in [0.5, 1.5)."""
    return x - vec2(real(cell[0]), real(cell[1]))


@wp.func
def column(A: mat22, a: int):
    """Column `a` of A as the change of a node value per cell along axis `a`."""
    return NODE(A[0, a], A[1, a], real(0.0), real(0.0))


@wp.func
def scatter(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: NODE, A: mat22):
    """h_i += w_i (q + A d_i): the derivative of the pairing by the grid."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    Ax = column(A, 0)
    Ay = column(A, 1)
    corner = q - f[0] * Ax - f[1] * Ay
    for i in range(3):
        n = first + row(cell, i, resolution)
        wp.atomic_add(grid, n, (wx[i] * wy[0]) * corner)
        wp.atomic_add(grid, n + 1, (wx[i] * wy[1]) * (corner + Ay))
        wp.atomic_add(grid, n + 2, (wx[i] * wy[2]) * (corner + real(2.0) * Ay))
        corner += Ax


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2):
    """Sums over the nodes of w_i h_i and of w_i h_i d_i^T: the derivatives of the pairing by q and by A."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    dx = distance(f[0])
    q = NODE()
    Ax = NODE()
    Ay = NODE()
    for i in range(3):
        n = first + row(cell, i, resolution)
        h0 = wy[0] * grid[n]
        h1 = wy[1] * grid[n + 1]
        h2 = wy[2] * grid[n + 2]
        h = wx[i] * (h0 + h1 + h2)
        q += h
        Ax += dx[i] * h
        Ay += wx[i] * (h1 + real(2.0) * h2)
    Ay = Ay - f[1] * q
    return q, mat22(Ax[0], Ay[0], Ax[1], Ay[1])


@wp.func
def slope(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: NODE, A: mat22):
    """Sum over the nodes of grad w_i ((q + A d_i) . h_i): the derivative of the pairing by x in the weights [1/cell]."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    dx = spline_slope(f[0])
    dy = spline_slope(f[1])
    Ax = vec2(A[0, 0], A[1, 0])
    Ay = vec2(A[0, 1], A[1, 1])
    corner = momentum(q) - A @ f
    m = q[3]
    g = vec2()
    for i in range(3):
        n = first + row(cell, i, resolution)
        value = corner
        h0 = grid[n]
        h1 = grid[n + 1]
        h2 = grid[n + 2]
        p0 = wp.dot(value, momentum(h0)) + m * h0[3]
        value = value + Ay
        p1 = wp.dot(value, momentum(h1)) + m * h1[3]
        value = value + Ay
        p2 = wp.dot(value, momentum(h2)) + m * h2[3]
        g += vec2(
            dx[i] * (wy[0] * p0 + wy[1] * p1 + wy[2] * p2), wx[i] * (dy[0] * p0 + dy[1] * p1 + dy[2] * p2)
        )  # fmt: skip
        corner += Ax
    return g
