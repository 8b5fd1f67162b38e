"""Quadratic B-splines on the 9 nodes around a particle in 2D: the functions of `stencil_3d` without the third axis."""

import warp as wp

from warpbots.numerics import NODE, index_vector, matrix, real, vector
from warpbots.numerics.simd import add, deposit, fetch, multiply, multiply_add, scale
from warpbots.solvers.mpm.spline import distance, spline, spline_slope
from warpbots.solvers.mpm.stencil_lines import line_sums, on_cpu

__all__ = ["gather", "mark", "momentum", "node", "reach", "scatter", "slope"]

vec2, mat22, ivec2 = vector(2), matrix(2), index_vector(2)
lines = line_sums(2)


@wp.func
def node(v: vec2, m: real):
    """The node value made of a momentum and a mass; its third component is zero."""
    return NODE(v[0], v[1], real(0.0), m)


@wp.func
def momentum(h: NODE):
    """The momentum contained in a node value."""
    return vec2(h[0], h[1])


@wp.func
def origin(x: vec2):
    """Indices of the first node of the stencil of a particle at `x` [cells], one for each axis."""
    return ivec2(int(wp.floor(x[0] - real(0.5))), int(wp.floor(x[1] - real(0.5))))


@wp.func
def reach(x: vec2, resolution: ivec2):
    """Whether the whole stencil of a particle at `x` [cells] lies on the grid; false if `x` has a NaN."""
    return (
        x[0] >= real(0.5) and x[1] >= real(0.5)
        and x[0] < real(resolution[0]) - real(1.5)
        and x[1] < real(resolution[1]) - real(1.5)
    )  # fmt: skip


@wp.func
def pencil(cell: ivec2, i: int):
    """Index, within a world, of the pencil of the nodes with index `i` along the first axis of the stencil."""
    return cell[0] + i


@wp.func
def offset(x: vec2, cell: ivec2):
    """Position of a particle relative to the first node of its stencil [cells]; each component is in [0.5, 1.5)."""
    return x - vec2(real(cell[0]), real(cell[1]))


@wp.func
def mark(active: wp.array[int], first: int, resolution: ivec2, x: vec2):
    """Mark as active the pencils in the stencil of a particle at `x` [cells].

    `first` is the first pencil of its world.
    """
    cell = origin(x)
    for i in range(3):
        active[first + pencil(cell, i)] = 1


@wp.func
def column(A: mat22, axis: int):
    """A column of A as a node value without a mass."""
    return node(vec2(A[0, axis], A[1, axis]), real(0.0))


@wp.func
def scatter(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22):
    """Adds the derivative of the pairing with respect to the grid: h_i += w_i (q + A d_i, m)."""
    scatter_planes(grid, first, resolution, x, q, m, A, 0, 3)


@wp.func
def scatter_between(
    grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22, low: int, high: int
):
    """`scatter` to the nodes whose index along the first axis is at least `low` and below `high`."""
    cell = origin(x)
    scatter_planes(grid, first, resolution, x, q, m, A, low - cell[0], high - cell[0])


@wp.func
def scatter_planes(
    grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22, begin: int, end: int
):
    """`scatter` to the nodes whose index along the first axis of the stencil is at least `begin` and below `end`."""
    if on_cpu():
        lines.scatter(grid, first, resolution, x, q, m, A, begin, end)
    else:
        cell = origin(x)
        f = offset(x, cell)
        wx = spline(f[0])
        wy = spline(f[1])
        Ax, Ay = column(A, 0), column(A, 1)
        corner = node(q - A @ f, m)
        for i in range(3):
            if i >= begin and i < end:
                n = (first + pencil(cell, i)) * resolution[1] + cell[1]
                value = corner
                for j in range(3):
                    deposit(grid, n + j, wx[i] * wy[j], value)
                    value = add(value, Ay)
            corner = add(corner, Ax)


@wp.func
def gather(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2):
    """Derivatives of the pairing with respect to q and A: the sums over the nodes of w_i h_i and of w_i h_i d_i^T.

    The second sum uses only the momentum of the node value h_i.
    """
    if on_cpu():
        sums = lines.gather(grid, first, resolution, x)
        return sums[0], wp.matrix_from_cols(momentum(sums[1]), momentum(sums[3]))
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    dx = distance(f[0])
    q = NODE()
    Ax = NODE()
    Ay = NODE()
    for i in range(3):
        n = (first + pencil(cell, i)) * resolution[1] + cell[1]
        h1 = scale(wy[1], fetch(grid, n + 1))
        h2 = scale(wy[2], fetch(grid, n + 2))
        h = multiply_add(add(h1, h2), wy[0], fetch(grid, n))
        q = multiply_add(q, wx[i], h)
        Ax = multiply_add(Ax, dx[i] * wx[i], h)
        Ay = multiply_add(Ay, wx[i], multiply_add(h1, real(2.0), h2))
    Ay = multiply_add(Ay, -f[1], q)
    return q, wp.matrix_from_cols(momentum(Ax), momentum(Ay))


@wp.func
def total(h: NODE):
    """Sum of the components of a node value."""
    return (h[0] + h[1]) + h[3]


@wp.func
def slope(grid: wp.array[NODE], first: int, resolution: ivec2, x: vec2, q: vec2, m: real, A: mat22):
    """Derivative of the pairing with respect to x, through the weights only [1/cell].

    It is the sum over the nodes of grad w_i (q + A d_i, m) . h_i.
    """
    if on_cpu():
        return lines.slope(grid, first, resolution, x, q, m, A)
    cell = origin(x)
    f = offset(x, cell)
    wx = spline(f[0])
    wy = spline(f[1])
    dx = spline_slope(f[0])
    dy = spline_slope(f[1])
    Ax, Ay = column(A, 0), column(A, 1)
    corner = node(q - A @ f, m)
    gx = NODE()
    gy = NODE()
    for i in range(3):
        n = (first + pencil(cell, i)) * resolution[1] + cell[1]
        line1 = add(corner, Ay)
        p0 = multiply(corner, fetch(grid, n))
        p1 = multiply(line1, fetch(grid, n + 1))
        p2 = multiply(add(line1, Ay), fetch(grid, n + 2))
        gx = multiply_add(gx, dx[i], multiply_add(multiply_add(scale(wy[0], p0), wy[1], p1), wy[2], p2))
        gy = multiply_add(gy, wx[i], multiply_add(multiply_add(scale(dy[0], p0), dy[1], p1), dy[2], p2))
        corner = add(corner, Ax)
    return vec2(total(gx), total(gy))
