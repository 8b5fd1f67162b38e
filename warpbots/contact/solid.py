"""Signed distances of solids on the device, with gradient and Hessian, for the contact of all solvers.

A solid is a shape in a frame of its own. Its pose (a rotation R and a position p) and its velocity are arguments; for a
solid at rest, the pose is its place in the scene. With the signed distance D in the frame of the solid, the distance d,
its gradient n and its Hessian C in the world are

    d(x) = D(y),   n = R grad D(y),   C = R grad^2 D(y) R^T,   y = R^T (x - p),

and d' = n . (v - u) for a point of velocity v and a solid with the velocity u = v_p + w x (x - p) at the point. The
adjoint follows from the gradient and the Hessian, which every kind of solid gives in closed form:

    x* = R y*,   p* = -x*,   R* = n* (R^T n)^T + (x - p) y*^T,   y* = d* grad D + grad^2 D R^T n*

The distances of planes, spheres, boxes, capsules and cylinders are closed forms. Distances of all other shapes are
sampled on a regular grid, and interpolated either linearly or by quadratic B-splines, which have a continuous gradient.
All computations are in double precision, whatever the precision of the process, and in three dimensions: a 2D scene is
the plane z = 0.

Inside a box near an edge, two faces may be equally near; there the gradient of the distance, and with it the force,
would jump, and a point could move back and forth without an equilibrium. Edges of boxes and rims of cylinders may
therefore be rounded; the gradient is then continuous down to a depth of the radius of the rounding.
"""

import warp as wp

from warpbots.contact.closed_distances import box_distance, capsule_distance, cylinder_distance, sphere_distance

__all__ = [
    "BOX",
    "CAPSULE",
    "CYLINDER",
    "LINEAR",
    "PLANE",
    "SPHERE",
    "SPLINE",
    "Solids",
    "solid_distance_adjoint",
    "may_touch",
    "shape_distance",
    "solid_curvature",
    "solid_distance",
    "solid_frame",
]

PLANE, SPHERE, BOX, CAPSULE, CYLINDER, LINEAR, SPLINE = (wp.constant(k) for k in range(7))
"""Codes of the kinds of solids: closed forms, and from `LINEAR` on samples, interpolated linearly or by splines."""

_scalar, _vec3, _mat33 = wp.float64, wp.vec3d, wp.mat33d
_ZERO, _HALF, _ONE = (wp.constant(_scalar(c)) for c in (0.0, 0.5, 1.0))


@wp.struct
class Solids:
    """Solids, all of shape (n_solids,) except for the samples.

    kind: Code of the closed form, or of the interpolation of samples.
    body: Index of the body to which the solid is fixed, -1 for the world.
    rotation: Orientation of its frame in the frame of the body.
    position: Origin of its frame in the frame of the body [m]: a point of a plane, whose normal is z; the centre of
        another closed form; the first sample.
    size: Radius of a sphere; half edges of a box; radius and half length of a capsule or cylinder along z; spacing of
        samples [m].
    resolution: Number of samples along each axis.
    rounding: Radius of edges and rims [m].
    reach: Radius of a ball around the origin of the frame that contains the solid [m]; infinite if it is not known.
    first: Index of the first sample of each solid.
    sample: Samples, or coefficients of splines, of all sampled solids in turn [m], shape (rows, n_samples).
    """

    kind: wp.array[int]
    body: wp.array[int]
    rotation: wp.array[_mat33]
    position: wp.array[_vec3]
    size: wp.array[_vec3]
    resolution: wp.array[wp.vec3i]
    rounding: wp.array[_scalar]
    reach: wp.array[_scalar]
    first: wp.array[int]
    sample: wp.array2d[_scalar]


@wp.func
def _linear_cell(top: wp.vec3i, h: _vec3, y: _vec3):
    """Cell of samples around y, position of y in the cell from 0 to 1, and per axis 1 if y is between samples, else 0.

    For a point outside of the box of the samples, cell and position belong to the nearest point of the box.
    """
    cell = wp.vec3i()
    t = _vec3()
    inside = _vec3()
    for a in range(3):
        last = _scalar(top[a] - 1)
        g = y[a] / h[a]
        inner = wp.clamp(g, _ZERO, last)
        inside[a] = wp.where(g == inner, _ONE, _ZERO)
        cell[a] = wp.min(int(wp.floor(inner)), top[a] - 2)
        t[a] = inner - _scalar(cell[a])
    return cell, t, inside


@wp.func
def _corner(top: wp.vec3i, cell: wp.vec3i, t: _vec3, k: int):
    """Index of the sample at corner k of a cell, its weight at t, and gradient and Hessian of the weight by t."""
    number = int(0)
    value = _vec3()
    side = _vec3()
    for a in range(3):
        bit = (k >> a) & 1
        number = number * top[a] + cell[a] + bit
        value[a] = wp.where(bit == 1, t[a], _ONE - t[a])
        side[a] = wp.where(bit == 1, _ONE, -_ONE)
    across = _vec3(value[1] * value[2], value[2] * value[0], value[0] * value[1])
    xy = side[0] * side[1] * value[2]
    xz = side[0] * side[2] * value[1]
    yz = side[1] * side[2] * value[0]
    bend = _mat33(_ZERO, xy, xz, xy, _ZERO, yz, xz, yz, _ZERO)
    return number, value[0] * value[1] * value[2], wp.cw_mul(side, across), bend


@wp.func
def _linear(solids: Solids, w: int, s: int, y: _vec3, curved: int):
    """Distance, gradient and Hessian by linear interpolation between samples; the first sample is at the origin."""
    h = solids.size[s]
    top = solids.resolution[s]
    first = solids.first[s]
    cell, t, _inside = _linear_cell(top, h, y)
    d = _scalar(0.0)
    n = _vec3()
    C = _mat33()
    k = int(0)
    while k < 8:  # not unrolled: that would take long to compile
        number, weight, slope, bend = _corner(top, cell, t, k)
        f = solids.sample[w, first + number]
        d += weight * f
        n += wp.cw_div(slope * f, h)
        if curved == 1:
            C += wp.cw_div(bend * f, wp.outer(h, h))
        k += 1
    return d, n, C


@wp.func
def _spline(t: _scalar):
    """Values, first and second derivatives of three quadratic B-splines at t in [-1/2, 1/2] from the middle one."""
    value = _vec3(_HALF * (_HALF - t) * (_HALF - t), _scalar(0.75) - t * t, _HALF * (_HALF + t) * (_HALF + t))
    return value, _vec3(t - _HALF, -_scalar(2.0) * t, t + _HALF), _vec3(_ONE, -_scalar(2.0), _ONE)


@wp.func
def _cell(solids: Solids, s: int, y: _vec3):
    """Sample nearest to y, position of y relative to it [samples], distance of y from the box of the splines [m]."""
    h = solids.size[s]
    top = solids.resolution[s]
    cell = wp.vec3i()
    t = _vec3()
    outside = _vec3()
    for a in range(3):
        g = y[a] / h[a]
        inner = wp.clamp(g, _ONE, _scalar(top[a] - 2))
        outside[a] = (g - inner) * h[a]
        cell[a] = wp.min(int(inner + _HALF), top[a] - 2)
        t[a] = inner - _scalar(cell[a])
    return cell, t, wp.length(outside)


@wp.func
def _row(solids: Solids, s: int, cell: wp.vec3i, i: int, j: int):
    """Index of the first of three samples along z, in row (i, j) from (0, 0) to (2, 2) around the sample `cell`."""
    top = solids.resolution[s]
    return solids.first[s] + ((cell[0] + i - 1) * top[1] + cell[1] + j - 1) * top[2] + cell[2] - 1


@wp.func
def _splines(solids: Solids, w: int, s: int, y: _vec3, curved: int):
    """Distance, gradient and Hessian of the splines through samples; the first sample is at the origin."""
    h = solids.size[s]
    cell, t, d = _cell(solids, s, y)  # no contact outside: the samples surround the solid
    bx, dx, cx = _spline(t[0])
    by, dy, cy = _spline(t[1])
    bz, dz, cz = _spline(t[2])
    n = _vec3()
    C = _mat33()
    inside = d == _ZERO
    k = int(0)
    while inside and k < 9:  # not unrolled: that would take long to compile
        i = k // 3
        j = k % 3
        row = _row(solids, s, cell, i, j)
        f = _vec3(solids.sample[w, row], solids.sample[w, row + 1], solids.sample[w, row + 2])
        value = wp.dot(f, bz)
        slope = wp.dot(f, dz) / h[2]
        d += bx[i] * by[j] * value
        n += _vec3(dx[i] * by[j] * value / h[0], bx[i] * dy[j] * value / h[1], bx[i] * by[j] * slope)
        if curved == 1:
            xy = dx[i] * dy[j] * value / (h[0] * h[1])
            xz = dx[i] * by[j] * slope / h[0]
            yz = bx[i] * dy[j] * slope / h[1]
            xx = cx[i] * by[j] * value / (h[0] * h[0])
            yy = bx[i] * cy[j] * value / (h[1] * h[1])
            zz = bx[i] * by[j] * wp.dot(f, cz) / (h[2] * h[2])
            C += _mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)
        k += 1
    return d, n, C


@wp.func
def _add_sample_adjoint(
    solids: Solids, w: int, s: int, y: _vec3, d_adj: _scalar, n_adj: _vec3, sample_adj: wp.array2d[_scalar]
):
    """Add to `sample_adj` from the adjoints `d_adj` of the distance and `n_adj` of its gradient at y.

    Distance and gradient are linear in the samples.
    """
    if solids.kind[s] == LINEAR:
        base, at, _inside = _linear_cell(solids.resolution[s], solids.size[s], y)
        slope_adj = wp.cw_div(n_adj, solids.size[s])
        corner = int(0)
        while corner < 8:
            number, weight, slope, _bend = _corner(solids.resolution[s], base, at, corner)
            wp.atomic_add(sample_adj, w, solids.first[s] + number, d_adj * weight + wp.dot(slope_adj, slope))
            corner += 1
        return
    h = solids.size[s]
    cell, t, outside = _cell(solids, s, y)
    if outside > _ZERO:
        return
    bx, dx, _cx = _spline(t[0])
    by, dy, _cy = _spline(t[1])
    bz, dz, _cz = _spline(t[2])
    k = int(0)
    while k < 9:
        i = k // 3
        j = k % 3
        row = _row(solids, s, cell, i, j)
        across = d_adj * bx[i] * by[j] + n_adj[0] * dx[i] * by[j] / h[0] + n_adj[1] * bx[i] * dy[j] / h[1]
        along = n_adj[2] * bx[i] * by[j] / h[2]
        for l in range(3):
            wp.atomic_add(sample_adj, w, row + l, across * bz[l] + along * dz[l])
        k += 1


@wp.func
def shape_distance(solids: Solids, w: int, s: int, y: _vec3, curved: int):
    """Signed distance [m] of y, in the frame of solid s of world w, its gradient, and its Hessian [1/m].

    The Hessian is computed only if `curved` is 1. The gradient is the outward unit normal; for a sampled solid it is
    close to a unit vector if the samples are fine. On edges, axes and centres, at which the distance is not
    differentiable, the gradient is one-sided. Outside of the box in which the splines are defined, the distance to this
    box is returned, a lower bound, with a gradient of zero. Outside of the box of linear samples, the values at the
    nearest point of this box are returned.
    """
    kind = solids.kind[s]
    size = solids.size[s]
    rounding = solids.rounding[s]
    d = y[2]
    n = _vec3(_ZERO, _ZERO, _ONE)
    C = _mat33()
    if kind == SPHERE:
        d, n, C = sphere_distance(y, size[0], _vec3(_ONE, _ONE, _ONE), curved)
    elif kind == BOX:
        d, n, C = box_distance(y, size - _vec3(rounding, rounding, rounding), curved)
        d = d - rounding
    elif kind == CAPSULE:
        d, n, C = capsule_distance(y, size[0], size[1], curved)
    elif kind == CYLINDER:
        d, n, C = cylinder_distance(y, size[0] - rounding, size[1] - rounding, curved)
        d = d - rounding
    elif kind == LINEAR:
        d, n, C = _linear(solids, w, s, y, curved)
    elif kind == SPLINE:
        d, n, C = _splines(solids, w, s, y, curved)
    return d, n, C


@wp.func
def solid_distance_adjoint(
    solids: Solids, w: int, s: int, R: _mat33, p: _vec3, x: _vec3, d_adj: _scalar, n_adj: _vec3,
    sample_adj: wp.array2d[_scalar],
):  # fmt: skip
    """Adjoints of x and R from the adjoints of distance and gradient; the adjoint of p is minus the adjoint of x.

    The function also adds to `sample_adj`, unless this array is empty.
    """
    y = wp.transpose(R) @ (x - p)
    _d, n, C = shape_distance(solids, w, s, y, 1)
    slope_adj = wp.transpose(R) @ n_adj
    y_adj = d_adj * n + C @ slope_adj
    if solids.kind[s] == LINEAR:
        _cell_of, _t, inside = _linear_cell(solids.resolution[s], solids.size[s], y)
        y_adj = wp.cw_mul(inside, y_adj)
    if solids.kind[s] >= LINEAR and sample_adj.shape[0] > 0:
        _add_sample_adjoint(solids, w, s, y, d_adj, slope_adj, sample_adj)
    return R @ y_adj, wp.outer(n_adj, n) + wp.outer(x - p, y_adj)


@wp.func
def _plane(R: _mat33, p: _vec3, x: _vec3):
    """Distance of x from a plane through p whose normal is the z axis of R, and this normal."""
    n = _vec3(R[0, 2], R[1, 2], R[2, 2])
    return wp.dot(n, x - p), n


@wp.func
def solid_distance(solids: Solids, w: int, s: int, R: _mat33, p: _vec3, x: _vec3):
    """Signed distance [m] of a point x to solid s of world w with the axes R and the origin p [m], and its gradient.

    Differentiable with respect to x, R, p and, if `solids` is an argument of the kernel itself, the samples. If
    `solids` is a field of another struct, Warp does not propagate the gradient of the samples: call
    `solid_distance_adjoint` with the array of this gradient.
    """
    if solids.kind[s] == PLANE:
        return _plane(R, p, x)
    d, n, _C = shape_distance(solids, w, s, wp.transpose(R) @ (x - p), 0)
    return d, R @ n


@wp.func_grad(solid_distance)
def _adj_solid_distance(solids: Solids, w: int, s: int, R: _mat33, p: _vec3, x: _vec3, d_adj: _scalar, n_adj: _vec3):
    if d_adj == _ZERO and wp.dot(n_adj, n_adj) == _ZERO:  # of most points, which are not in contact
        return
    x_adj, R_adj = solid_distance_adjoint(solids, w, s, R, p, x, d_adj, n_adj, wp.adjoint[solids.sample])
    wp.adjoint[x] += x_adj
    wp.adjoint[p] -= x_adj
    wp.adjoint[R] += R_adj


@wp.func
def may_touch(kind: int, reach: _scalar, R: _mat33, p: _vec3, x: _vec3):
    """Whether x may be inside a solid with axes R and origin p: in its ball of radius `reach`, or below its plane.

    Warp copies a struct at each call; therefore this cheap function takes the fields `kind` and `reach` of `Solids`
    instead.
    """
    d, _n = _plane(R, p, x)
    if kind != PLANE:
        d = wp.length_sq(x - p) - reach * reach
    return d < _ZERO


@wp.func
def solid_curvature(solids: Solids, w: int, s: int, R: _mat33, p: _vec3, x: _vec3):
    """Like `solid_distance`, with the Hessian of the distance [1/m] as a third result."""
    Rt = wp.transpose(R)
    d, n, C = shape_distance(solids, w, s, Rt @ (x - p), 1)
    return d, R @ n, R @ C @ Rt


@wp.func
def solid_frame(solids: Solids, s: int, R: _mat33, p: _vec3):
    """Axes and origin [m] of solid s on a body with the axes R and the origin p.

    For a solid fixed to the world, axes and origin are `solids.rotation[s]` and `solids.position[s]`.
    """
    return R @ solids.rotation[s], p + R @ solids.position[s]
