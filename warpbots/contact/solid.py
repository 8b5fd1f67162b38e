"""Signed distances of solids on the device, with slope and curvature, for penalty contact.

Planes, spheres, boxes, capsules and cylinders are closed forms in a frame of their own; everything else is sampled on a
regular grid and interpolated by quadratic B-splines, so that the distance has a continuous slope. In double precision,
whatever the precision of the process.

Below the edge of a box two faces are equally near, and the slope would jump from one to the other: so would the force,
and a point could move back and forth without an equilibrium. Edges of boxes and rims of cylinders are rounded, so that
the slope is continuous down to the radius of the rounding.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.contact.distance import signed_distance
from warpbots.contact.sample_grid import AROUND, SampleGrid
from warpbots.scene import Box, Capsule, Cylinder, HalfSpace, Posed, Shape, Sphere

__all__ = [
    "BOX",
    "CAPSULE",
    "CYLINDER",
    "PLANE",
    "SAMPLED",
    "SPHERE",
    "SolidForm",
    "Solids",
    "add_sample_adjoint",
    "closed_form",
    "grid_of",
    "solid_distance",
    "solids_of",
    "widths",
]

PLANE, SPHERE, BOX, CAPSULE, CYLINDER, SAMPLED = (wp.constant(k) for k in range(6))

_scalar, _vec3, _mat33 = wp.float64, wp.vec3d, wp.mat33d
_ZERO, _HALF, _ONE = (wp.constant(_scalar(c)) for c in (0.0, 0.5, 1.0))


@wp.struct
class Solids:
    """Solids, each of shape (n_solids,) but the samples.

    kind: Which closed form, or sampled.
    body: Body to which it is fixed, -1 for the world.
    rotation: Orientation of its frame in that of the body.
    position: Origin of its frame in that of the body [m]: a point of a plane, whose normal is z; a centre; the first
        sample.
    size: Radius [m]; half edges [m]; radius and half length of a capsule or cylinder along z [m]; spacing of samples.
    resolution: Samples along each axis.
    rounding: Radius of edges and rims [m].
    first: Number of the first sample.
    sample: Coefficients of the splines of all sampled solids [m], shape (worlds, n_samples).
    """

    kind: wp.array[int]
    body: wp.array[int]
    rotation: wp.array[_mat33]
    position: wp.array[_vec3]
    size: wp.array[_vec3]
    resolution: wp.array[wp.vec3i]
    rounding: wp.array[_scalar]
    first: wp.array[int]
    sample: wp.array2d[_scalar]


@wp.func
def _around(y: _vec3, radius: _scalar, flat: _vec3):
    """Distance to the sphere of `radius` around the origin, of a y without the components where `flat` is 0."""
    r = wp.length(y)
    n = _vec3(flat[0], _ZERO, _ZERO)
    C = _mat33()
    if r > _ZERO:
        n = y / r
        C = (wp.diag(flat) - wp.outer(n, n)) / r
    return r - radius, n, C


@wp.func
def _box(y: _vec3, half: _vec3):
    """A box with half edges `half` about the origin."""
    d = half[0]
    n = _vec3()
    C = _mat33()
    beyond = _vec3()
    flat = _vec3()
    nearest = int(0)
    depth = wp.abs(y[0]) - half[0]
    for a in range(3):
        q = wp.abs(y[a]) - half[a]
        if q > depth:
            depth = q
            nearest = a
        if q > _ZERO:
            beyond[a] = wp.where(y[a] < _ZERO, -q, q)
            flat[a] = _ONE
    if depth > _ZERO:
        d, n, C = _around(beyond, _ZERO, flat)
    else:
        d = depth
        n[nearest] = wp.where(y[nearest] < _ZERO, -_ONE, _ONE)
    return d, n, C


@wp.func
def _capsule(y: _vec3, radius: _scalar, half: _scalar):
    """A capsule along z with a segment of half length `half`."""
    along = y[2] - wp.clamp(y[2], -half, half)
    flat = _vec3(_ONE, _ONE, wp.where(along == _ZERO, _ZERO, _ONE))
    return _around(_vec3(y[0], y[1], along), radius, flat)


@wp.func
def _cylinder(y: _vec3, radius: _scalar, half: _scalar):
    """A cylinder along z of half length `half`."""
    d, n, C = _around(_vec3(y[0], y[1], _ZERO), radius, _vec3(_ONE, _ONE, _ZERO))
    above = wp.abs(y[2]) - half
    up = wp.where(y[2] < _ZERO, -_ONE, _ONE)
    if d > _ZERO and above > _ZERO:  # nearest to the rim
        gap = wp.sqrt(d * d + above * above)
        m = (d * n + above * up * _vec3(_ZERO, _ZERO, _ONE)) / gap
        C = (wp.outer(n, n) + d * C + wp.diag(_vec3(_ZERO, _ZERO, _ONE)) - wp.outer(m, m)) / gap
        d = gap
        n = m
    elif above > d:
        d = above
        n = _vec3(_ZERO, _ZERO, up)
        C = _mat33()
    return d, n, C


@wp.func
def _spline(t: _scalar):
    """Values, slopes and curvatures of the three quadratic B-splines at t in [-1/2, 1/2] from the middle one."""
    value = _vec3(_HALF * (_HALF - t) * (_HALF - t), _scalar(0.75) - t * t, _HALF * (_HALF + t) * (_HALF + t))
    return value, _vec3(t - _HALF, -_scalar(2.0) * t, t + _HALF), _vec3(_ONE, -_scalar(2.0), _ONE)


@wp.func
def _cell(solids: Solids, s: int, y: _vec3):
    """Middle one of the samples around y, how far y is from it [samples], and from all cells with splines [m]."""
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
    """Number of the first of the three samples along z at i and j, from 0 to 2, of those around a cell."""
    top = solids.resolution[s]
    return solids.first[s] + ((cell[0] + i - 1) * top[1] + cell[1] + j - 1) * top[2] + cell[2] - 1


@wp.func
def _sampled(solids: Solids, w: int, s: int, y: _vec3):
    """Splines through samples, whose first is at the origin."""
    h = solids.size[s]
    cell, t, d = _cell(solids, s, y)  # no contact outside: the samples surround the solid
    bx, dx, cx = _spline(t[0])
    by, dy, cy = _spline(t[1])
    bz, dz, cz = _spline(t[2])
    n = _vec3()
    C = _mat33()
    if d == _ZERO:
        for i in range(3):
            for j in range(3):
                row = _row(solids, s, cell, i, j)
                f = _vec3(solids.sample[w, row], solids.sample[w, row + 1], solids.sample[w, row + 2])
                value = wp.dot(f, bz)
                slope = wp.dot(f, dz) / h[2]
                d += bx[i] * by[j] * value
                n += _vec3(dx[i] * by[j] * value / h[0], bx[i] * dy[j] * value / h[1], bx[i] * by[j] * slope)
                xy = dx[i] * dy[j] * value / (h[0] * h[1])
                xz = dx[i] * by[j] * slope / h[0]
                yz = bx[i] * dy[j] * slope / h[1]
                xx = cx[i] * by[j] * value / (h[0] * h[0])
                yy = bx[i] * cy[j] * value / (h[1] * h[1])
                zz = bx[i] * by[j] * wp.dot(f, cz) / (h[2] * h[2])
                C += _mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)
    return d, n, C


@wp.func
def add_sample_adjoint(
    solids: Solids, w: int, s: int, y: _vec3, d_adj: _scalar, n_adj: _vec3, sample_adj: wp.array2d[_scalar]
):
    """Add to the gradient of the samples around y, from those of its distance and slope, which are linear in them."""
    h = solids.size[s]
    cell, t, outside = _cell(solids, s, y)
    if outside > _ZERO:
        return
    bx, dx, _cx = _spline(t[0])
    by, dy, _cy = _spline(t[1])
    bz, dz, _cz = _spline(t[2])
    for i in range(3):
        for j in range(3):
            row = _row(solids, s, cell, i, j)
            across = d_adj * bx[i] * by[j] + n_adj[0] * dx[i] * by[j] / h[0] + n_adj[1] * bx[i] * dy[j] / h[1]
            along = n_adj[2] * bx[i] * by[j] / h[2]
            for k in range(3):
                wp.atomic_add(sample_adj, w, row + k, across * bz[k] + along * dz[k])


@wp.func
def solid_distance(solids: Solids, w: int, s: int, y: _vec3):
    """Signed distance [m] of a point y in the frame of solid s of world w, its slope and its curvature [1/m].

    The slope is the outward unit normal; for samples it is a unit vector as nearly as they are fine. On edges, axes and
    centres, where there is none, it is that of one side. Outside of samples the distance is a lower bound.
    """
    kind = solids.kind[s]
    size = solids.size[s]
    rounding = solids.rounding[s]
    d = y[2]
    n = _vec3(_ZERO, _ZERO, _ONE)
    C = _mat33()
    if kind == SPHERE:
        d, n, C = _around(y, size[0], _vec3(_ONE, _ONE, _ONE))
    elif kind == BOX:
        d, n, C = _box(y, size - _vec3(rounding, rounding, rounding))
        d = d - rounding
    elif kind == CAPSULE:
        d, n, C = _capsule(y, size[0], size[1])
    elif kind == CYLINDER:
        d, n, C = _cylinder(y, size[0] - rounding, size[1] - rounding)
        d = d - rounding
    elif kind == SAMPLED:
        d, n, C = _sampled(solids, w, s, y)
    return d, n, C


def solids_of(
    shapes: Sequence[tuple[int, Shape]], samples: int, rounding: float, device: wp.Device, room: float = 0.0
) -> Solids:
    """Solids on the device, with one row of samples.

    Args:
        shapes: The body to which each is fixed, -1 for the world, and its shape in the frame of the body.
        samples: Samples along the longest edge of a shape without a closed form.
        rounding: Radius of edges and rims, in smallest half edges of a box, or the smaller of radius and half length of
            a cylinder [1].
        device: Device of the arrays.
        room: How much farther than needed samples reach around a shape, with which `widths` are larger [m].

    Raises:
        SceneError: A shape without a closed form has no end, or its samples do not fit into memory.
    """
    rows = [closed_form(shape) or _sample(shape, samples, room) for _, shape in shapes]
    kinds, rotations, positions, sizes, grids = zip(*rows, strict=True) if rows else ((),) * 5
    firsts = np.cumsum([0] + [g.size for g in grids])
    solids = Solids()

    def array(values: object, dtype: type, shape: tuple = ()) -> wp.array:
        numpy_type = np.int32 if dtype in (int, wp.vec3i) else np.float64
        return wp.array(np.array(values, dtype=numpy_type).reshape(len(rows), *shape), dtype=dtype, device=device)

    solids.kind, solids.body = array(kinds, int), array([b for b, _ in shapes], int)
    solids.rotation, solids.position = array(rotations, _mat33, (3, 3)), array(positions, _vec3, (3,))
    solids.size, solids.resolution = array(sizes, _vec3, (3,)), array([g.shape for g in grids], wp.vec3i, (3,))
    smallest = [s[:count].min() if count else 0.0 for s, count in zip(sizes, map(_EDGES.get, kinds), strict=True)]
    solids.rounding = array([rounding * s for s in smallest], _scalar)
    solids.first = array(firsts[:-1], int)
    flat = np.concatenate([np.zeros(0), *(g.reshape(-1) for g in grids)])
    solids.sample = wp.array(flat[None], dtype=_scalar, device=device)
    return solids


def grid_of(solids: Solids, s: int) -> SampleGrid | None:
    """The samples of solid s, or None if it is a closed form."""
    if solids.kind.numpy()[s] != SAMPLED:
        return None
    counts = tuple(int(n) for n in solids.resolution.numpy()[s])
    return SampleGrid(
        solids.position.numpy()[s], float(solids.size.numpy()[s, 0]), counts, int(solids.first.numpy()[s])
    )


def widths(solids: Solids) -> np.ndarray:
    """Smallest and second smallest width of each solid [m], 0 for a half-space, which has none, shape (n_solids, 2)."""

    def across(kind: int, size: np.ndarray, samples: np.ndarray) -> np.ndarray:
        if kind == SAMPLED:
            return size * (samples - AROUND)
        a, b, c = size
        return 2.0 * np.array({BOX: (a, b, c), CYLINDER: (a, a, b), PLANE: (0.0, 0.0, 0.0)}.get(kind, (a, a, a)))

    arrays = (a.numpy() for a in (solids.kind, solids.size, solids.resolution))
    rows = [np.sort(across(int(kind), *row))[:2] for kind, *row in zip(*arrays, strict=True)]
    return np.array(rows).reshape(-1, 2)


class SolidForm(NamedTuple):
    """A solid in the frame of its body, with the fields of `Solids`; `samples` is empty for a closed form."""

    kind: int
    rotation: np.ndarray
    position: np.ndarray
    size: np.ndarray
    samples: np.ndarray


_NO_SAMPLES = np.zeros((0, 0, 0))
_EDGES = {BOX: 3, CYLINDER: 2}
"""Of kinds with edges, the number of sizes that bound their rounding."""


def closed_form(shape: Shape) -> SolidForm | None:
    """A half-space, sphere, box, capsule or cylinder; None for other shapes."""
    if isinstance(shape, Posed):
        form = closed_form(shape.shape)
        if form is None:
            return None
        Q = np.array(shape.rotation)
        return form._replace(rotation=Q @ form.rotation, position=Q @ form.position + np.array(shape.translation))
    if isinstance(shape, HalfSpace):
        return SolidForm(PLANE, _frame_along(np.array(shape.normal)), np.array(shape.point), np.zeros(3), _NO_SAMPLES)
    if isinstance(shape, Sphere):
        return SolidForm(SPHERE, np.eye(3), np.array(shape.center), np.full(3, shape.radius), _NO_SAMPLES)
    if isinstance(shape, Box):
        lower, upper = shape.bounds
        return SolidForm(BOX, np.eye(3), (lower + upper) / 2.0, (upper - lower) / 2.0, _NO_SAMPLES)
    if isinstance(shape, Capsule | Cylinder):
        start, end = np.array(shape.start), np.array(shape.end)
        length = np.linalg.norm(end - start)
        kind = CAPSULE if isinstance(shape, Capsule) else CYLINDER
        size = np.array([shape.radius, length / 2.0, 0.0])
        return SolidForm(kind, _frame_along((end - start) / length), (start + end) / 2.0, size, _NO_SAMPLES)
    return None


def _frame_along(z: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the unit vector z."""
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _sample(shape: Shape, samples: int, room: float) -> SolidForm:
    """The signed distance of a shape on a grid around it, as coefficients of quadratic B-splines."""
    grid = SampleGrid.around(shape, samples, room)
    coefficients = grid.coefficients(signed_distance(shape, grid.positions))
    return SolidForm(SAMPLED, np.eye(3), grid.origin, np.full(3, grid.spacing), coefficients)
