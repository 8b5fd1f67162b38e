"""Quadratic B-splines on the 27 nodes around a particle, and the three sums over these nodes that MLS-MPM needs.

A particle carries an affine field q + A d over its neighbourhood, with the distance d = x_i - x_p to a node in cells;
each node i has a value h_i. All transfers are the pairing

    L(q, A, x_p; h) = sum_i w_i(x_p) (q + A d_i) . h_i

and its derivatives: `scatter` computes dL/dh, `gather` computes dL/dq and dL/dA, and `slope` computes the part of
dL/dx_p that comes from the weights. Therefore the adjoint of a particle-to-grid transfer is a grid-to-particle
transfer, and vice versa.

The last axis is contiguous in memory: the nodes along this axis form a pencil, and every sum runs over nine pencils
with three nodes each. Sums are taken over whole node values, in vector registers (`warpbots.numerics.simd`).
"""

import warp as wp

from warpbots.numerics import NODE, index_vector, matrix, real, vector
from warpbots.numerics.simd import add, deposit, fetch, multiply, multiply_add, scale
from warpbots.solvers.mpm.spline import distance, spline, spline_slope
from warpbots.solvers.mpm.stencil_lines import line_sums, on_cpu

__all__ = ["gather", "mark", "momentum", "node", "reach", "scatter", "slope"]

vec3, mat33, ivec3 = vector(3), matrix(3), index_vector(3)
lines = line_sums(3)


@wp.func
def node(v: vec3, m: real):
    """The node value made of a momentum and a mass."""
    return NODE(v[0], v[1], v[2], m)


@wp.func
def momentum(h: NODE):
    """The momentum contained in a node value."""
    return vec3(h[0], h[1], h[2])


@wp.func
def origin(x: vec3):
    """Indices of the first node of the stencil of a particle at `x` [cells], one for each axis."""
    return ivec3(int(wp.floor(x[0] - real(0.5))), int(wp.floor(x[1] - real(0.5))), int(wp.floor(x[2] - real(0.5))))


@wp.func
def reach(x: vec3, resolution: ivec3):
    """Whether the whole stencil of a particle at `x` [cells] lies on the grid; false if `x` has a NaN."""
    return (
        x[0] >= real(0.5) and x[1] >= real(0.5) and x[2] >= real(0.5)
        and x[0] < real(resolution[0]) - real(1.5)
        and x[1] < real(resolution[1]) - real(1.5)
        and x[2] < real(resolution[2]) - real(1.5)
    )  # fmt: skip


@wp.func
def pencil(cell: ivec3, i: int, j: int, resolution: ivec3):
    """Index, within a world, of the pencil of the nodes with indices (i, j) along the first two axes of the stencil."""
    return (cell[0] + i) * resolution[1] + cell[1] + j


@wp.func
def offset(x: vec3, cell: ivec3):
    """Position of a particle relative to the first node of its stencil [cells]; each component is in [0.5, 1.5)."""
    return x - vec3(real(cell[0]), real(cell[1]), real(cell[2]))


@wp.func
def mark(active: wp.array[int], first: int, resolution: ivec3, x: vec3):
    """Mark as active the pencils in the stencil of a particle at `x` [cells].

    `first` is the first pencil of its world.
    """
    cell = origin(x)
    for i in range(3):
        for j in range(3):
            active[first + pencil(cell, i, j, resolution)] = 1


@wp.func
def column(A: mat33, axis: int):
    """A column of A as a node value without a mass."""
    return node(vec3(A[0, axis], A[1, axis], A[2, axis]), real(0.0))


@wp.func
def scatter(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33):
    """Adds the derivative of the pairing with respect to the grid: h_i += w_i (q + A d_i, m)."""
    scatter_planes(grid, first, resolution, x, q, m, A, 0, 3)


@wp.func
def scatter_between(
    grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33, low: int, high: int
):
    """`scatter` to the nodes whose index along the first axis is at least `low` and below `high`."""
    cell = origin(x)
    scatter_planes(grid, first, resolution, x, q, m, A, low - cell[0], high - cell[0])


@wp.func
def scatter_planes(
    grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33, begin: int, end: int
):
    """`scatter` to the nodes whose index along the first axis of the stencil is at least `begin` and below `end`."""
    if on_cpu():
        lines.scatter(grid, first, resolution, x, q, m, A, begin, end)
    else:
        Ax, Ay, Az = column(A, 0), column(A, 1), column(A, 2)
        cell = origin(x)
        f = offset(x, cell)
        wx = spline(f[0])
        wy = spline(f[1])
        wz = spline(f[2])
        corner = node(q - A @ f, m)
        for i in range(3):
            if i >= begin and i < end:
                line = corner
                for j in range(3):
                    n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
                    w = wx[i] * wy[j]
                    value = line
                    for k in range(3):
                        deposit(grid, n + k, w * wz[k], value)
                        value = add(value, Az)
                    line = add(line, Ay)
            corner = add(corner, Ax)


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3):
    """Derivatives of the pairing with respect to q and A: the sums over the nodes of w_i h_i and of w_i h_i d_i^T.

    The second sum uses only the momentum of the node value h_i.
    """
    if on_cpu():
        sums = lines.gather(grid, first, resolution, x)
        return sums[0], wp.matrix_from_cols(momentum(sums[1]), momentum(sums[2]), momentum(sums[3]))
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
            n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
            w = wx[i] * wy[j]
            h1 = scale(wz[1], fetch(grid, n + 1))
            h2 = scale(wz[2], fetch(grid, n + 2))
            h = multiply_add(add(h1, h2), wz[0], fetch(grid, n))
            q = multiply_add(q, w, h)
            Ax = multiply_add(Ax, dx[i] * w, h)
            Ay = multiply_add(Ay, dy[j] * w, h)
            Az = multiply_add(Az, w, multiply_add(h1, real(2.0), h2))
    Az = multiply_add(Az, -f[2], q)
    return q, wp.matrix_from_cols(momentum(Ax), momentum(Ay), momentum(Az))


@wp.func
def total(h: NODE):
    """Sum of the components of a node value."""
    return (h[0] + h[1]) + (h[2] + h[3])


@wp.func
def slope(grid: wp.array[NODE], first: int, resolution: ivec3, x: vec3, q: vec3, m: real, A: mat33):
    """Derivative of the pairing with respect to x, through the weights only [1/cell].

    It is the sum over the nodes of grad w_i (q + A d_i, m) . h_i.
    """
    if on_cpu():
        return lines.slope(grid, first, resolution, x, q, m, A)
    Ax, Ay, Az = column(A, 0), column(A, 1), column(A, 2)
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    wz = spline(f[2])
    dx = spline_slope(f[0])
    dy = spline_slope(f[1])
    dz = spline_slope(f[2])
    corner = node(q - A @ f, m)
    gx = NODE()
    gy = NODE()
    gz = NODE()
    for i in range(3):
        line = corner
        px = NODE()
        py = NODE()
        pz = NODE()
        for j in range(3):
            n = (first + pencil(cell, i, j, resolution)) * resolution[2] + cell[2]
            line1 = add(line, Az)
            p0 = multiply(line, fetch(grid, n))
            p1 = multiply(line1, fetch(grid, n + 1))
            p2 = multiply(add(line1, Az), fetch(grid, n + 2))
            p = multiply_add(multiply_add(scale(wz[0], p0), wz[1], p1), wz[2], p2)
            px = multiply_add(px, wy[j], p)
            py = multiply_add(py, dy[j], p)
            p = multiply_add(multiply_add(scale(dz[0], p0), dz[1], p1), dz[2], p2)
            pz = multiply_add(pz, wy[j], p)
            line = add(line, Ay)
        gx = multiply_add(gx, dx[i], px)
        gy = multiply_add(gy, wx[i], py)
        gz = multiply_add(gz, wx[i], pz)
        corner = add(corner, Ax)
    return vec3(total(gx), total(gy), total(gz))
