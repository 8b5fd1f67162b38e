"""Quadratic B-splines on the 27 nodes around a particle, and the three sums over them that MLS-MPM is made of.

A particle carries an affine field q + A d over its neighbourhood, d = x_i - x_p in cells; a node carries a value h_i.
All transfers are the pairing

    L(q, A, x_p; h) = sum_i w_i(x_p) (q + A d_i) . h_i

and its derivatives: `scatter` is dL/dh, `gather` is dL/dq and dL/dA, `slope` is the part of dL/dx_p that comes from
the weights. So the adjoint of a particle-to-grid transfer is a grid-to-particle transfer, and the other way round.

The last axis is contiguous in memory, which is why every sum is written as rows of three nodes. A gather returns
whole node values, which a kernel of its own stores: only then does the CPU's compiler keep them in vector registers,
and a gather takes half the time (docs/design/mpm-transfers.md).
"""

import warp as wp

from warpbots.math import NODE, index_vector, matrix, real, vector
from warpbots.solvers.mpm.spline import distance, spline, spline_slope

__all__ = ["gather", "moment", "momentum", "node", "reach", "scatter", "slope"]

vec3, mat33, ivec3 = vector(3), matrix(3), index_vector(3)
Moments = wp.types.matrix((4, 4), real)


@wp.func
def node(v: vec3, m: real):
    """A node value from a momentum and a mass."""
    return NODE(v[0], v[1], v[2], m)


@wp.func
def momentum(h: NODE):
    """The momentum of a node value."""
    return vec3(h[0], h[1], h[2])


@wp.func
def origin(x: vec3):
    """First cell of the stencil of a particle at `x` [cells]."""
    return ivec3(int(wp.floor(x[0] - real(0.5))), int(wp.floor(x[1] - real(0.5))), int(wp.floor(x[2] - real(0.5))))


@wp.func
def reach(x: vec3, resolution: ivec3):
    """Whether the whole stencil of a particle at `x` [cells] lies on the grid; false for a NaN."""
    return (
        x[0] >= real(0.5) and x[1] >= real(0.5) and x[2] >= real(0.5)
        and x[0] < real(resolution[0]) - real(1.5)
        and x[1] < real(resolution[1]) - real(1.5)
        and x[2] < real(resolution[2]) - real(1.5)
    )  # fmt: skip


@wp.func
def row(cell: ivec3, i: int, j: int, resolution: ivec3):
    """Index of the first node of row (i, j) of the stencil at `cell`."""
    return ((cell[0] + i) * resolution[1] + cell[1] + j) * resolution[2] + cell[2]


@wp.func
def offset(x: vec3, cell: ivec3):
    """Position of a particle relative to the first node of its stencil [cells], in [0.5, 1.5)."""
    return x - vec3(real(cell[0]), real(cell[1]), real(cell[2]))


@wp.func
def scatter(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33):
    """h_i += w_i (q + A d_i, m): the derivative of the pairing by the grid."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    Ax = vec3(A[0, 0], A[1, 0], A[2, 0])
    Ay = vec3(A[0, 1], A[1, 1], A[2, 1])
    Az = vec3(A[0, 2], A[1, 2], A[2, 2])
    corner = q - A @ f
    for i in range(3):
        line = corner
        for j in range(3):
            n = first + row(cell, i, j, resolution)
            value = line
            for k in range(3):
                w = wx[i] * wy[j] * wz[k]
                wp.atomic_add(grid, n + k, NODE(w * value[0], w * value[1], w * value[2], w * m))
                value = value + Az
            line = line + Ay
        corner = corner + Ax


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3):
    """Sums over the nodes of w_i h_i (row 0) and of w_i d_i h_i (rows 1 to 3): the derivatives by q and by A."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    dx = distance(f[0])
    dy = distance(f[1])
    q = NODE()
    Ax = NODE()
    Ay = NODE()
    Az = NODE()
    for i in range(3):
        for j in range(3):
            n = first + row(cell, i, j, resolution)
            w = wx[i] * wy[j]
            h0 = wz[0] * grid[n]
            h1 = wz[1] * grid[n + 1]
            h2 = wz[2] * grid[n + 2]
            h = w * (h0 + h1 + h2)
            q += h
            Ax += dx[i] * h
            Ay += dy[j] * h
            Az += w * (h1 + real(2.0) * h2)
    return wp.matrix_from_rows(q, Ax, Ay, Az - f[2] * q)


@wp.func
def moment(M: Moments):
    """Sum of w_i h_i d_i^T over the momenta of the nodes, from the rows of `gather`."""
    return mat33(M[1, 0], M[2, 0], M[3, 0], M[1, 1], M[2, 1], M[3, 1], M[1, 2], M[2, 2], M[3, 2])


@wp.func
def pair(v: vec3, m: real, h: NODE):
    """(v, m) . h."""
    return v[0] * h[0] + v[1] * h[1] + v[2] * h[2] + m * h[3]


@wp.func
def slope(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33):
    """Sum over the nodes of grad w_i (q + A d_i, m) . h_i: the derivative by x in the weights [1/cell]."""
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    dx = spline_slope(f[0])
    dy = spline_slope(f[1])
    dz = spline_slope(f[2])
    Ax = vec3(A[0, 0], A[1, 0], A[2, 0])
    Ay = vec3(A[0, 1], A[1, 1], A[2, 1])
    Az = vec3(A[0, 2], A[1, 2], A[2, 2])
    corner = q - A @ f
    g = vec3()
    for i in range(3):
        gx = real(0.0)
        gy = real(0.0)
        gz = real(0.0)
        line = corner
        for j in range(3):
            n = first + row(cell, i, j, resolution)
            p0 = pair(line, m, grid[n])
            p1 = pair(line + Az, m, grid[n + 1])
            p2 = pair(line + real(2.0) * Az, m, grid[n + 2])
            p = wz[0] * p0 + wz[1] * p1 + wz[2] * p2
            gx += wy[j] * p
            gy += dy[j] * p
            gz += wy[j] * (dz[0] * p0 + dz[1] * p1 + dz[2] * p2)
            line = line + Ay
        g += vec3(dx[i] * gx, wx[i] * gy, wx[i] * gz)
        corner = corner + Ax
    return g
