"""Quadratic B-splines on the 9 nodes around a particle in the plane: `stencil_3d` without its third axis."""

import warp as wp

from warpbots.math import NODE, index_vector, matrix, real, vector
from warpbots.solvers.mpm.spline import distance, spline, spline_slope

__all__ = ["gather", "moment", "momentum", "node", "reach", "scatter", "slope"]

vec2, mat22, ivec2 = vector(2), matrix(2), index_vector(2)
Moments = wp.types.matrix((3, 4), real)


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
def scatter(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22):
    """h_i += w_i (q + A d_i, m): the derivative of the pairing by the grid."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    Ax = vec2(A[0, 0], A[1, 0])
    Ay = vec2(A[0, 1], A[1, 1])
    corner = q - A @ f
    for i in range(3):
        n = first + row(cell, i, resolution)
        value = corner
        for j in range(3):
            w = wx[i] * wy[j]
            wp.atomic_add(grid, n + j, NODE(w * value[0], w * value[1], real(0.0), w * m))
            value = value + Ay
        corner = corner + Ax


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2):
    """Sums over the nodes of w_i h_i (row 0) and of w_i d_i h_i (rows 1 and 2): the derivatives by q and by A."""
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
    return wp.matrix_from_rows(q, Ax, Ay - f[1] * q)


@wp.func
def moment(M: Moments):
    """Sum of w_i h_i d_i^T over the momenta of the nodes, from the rows of `gather`."""
    return mat22(M[1, 0], M[2, 0], M[1, 1], M[2, 1])


@wp.func
def pair(v: vec2, m: real, h: NODE):
    """(v, m) . h."""
    return v[0] * h[0] + v[1] * h[1] + m * h[3]


@wp.func
def slope(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22):
    """Sum over the nodes of grad w_i (q + A d_i, m) . h_i: the derivative by x in the weights [1/cell]."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    dx = spline_slope(f[0])
    dy = spline_slope(f[1])
    Ax = vec2(A[0, 0], A[1, 0])
    Ay = vec2(A[0, 1], A[1, 1])
    corner = q - A @ f
    g = vec2()
    for i in range(3):
        n = first + row(cell, i, resolution)
        p0 = pair(corner, m, grid[n])
        p1 = pair(corner + Ay, m, grid[n + 1])
        p2 = pair(corner + real(2.0) * Ay, m, grid[n + 2])
        p = wy[0] * p0 + wy[1] * p1 + wy[2] * p2
        g += vec2(dx[i] * p, wx[i] * (dy[0] * p0 + dy[1] * p1 + dy[2] * p2))
        corner = corner + Ax
    return g
