"""Conversion of shapes to solids on the device: closed forms, and samples of shapes without a closed form.

A 2D shape becomes a solid that extends to infinity perpendicular to the plane z = 0: a rectangle becomes a box that is
infinite along z.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.contact.distance import signed_distance
from warpbots.contact.sample_grid import AROUND, SampleGrid
from warpbots.contact.solid import BOX, CAPSULE, CYLINDER, LINEAR, PLANE, SPHERE, SPLINE, Solids
from warpbots.scene import Box, Capsule, Cylinder, HalfSpace, Posed, SceneError, Shape, Sphere, dimension
from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.with_z import with_z

__all__ = ["SolidForm", "closed_form", "grid_of", "linear_samples", "solid_arrays", "solids_of", "widths"]

_SAMPLE = 40.0
"""Memory of a linear sample while it is computed, per dimension [bytes]."""

_EDGES = {BOX: 3, CYLINDER: 2}
"""For each kind with edges, the number of its sizes of which the smallest bounds the rounding."""


class SolidForm(NamedTuple):
    """A solid in the frame of its body; `Solids` describes the fields. `samples` is empty for a closed form."""

    kind: int
    rotation: np.ndarray
    position: np.ndarray
    size: np.ndarray
    samples: np.ndarray = np.zeros((0, 0, 0))


def closed_form(shape: Shape) -> SolidForm | None:
    """Closed form of a half-space, sphere, box, capsule or cylinder; None for other shapes."""
    if isinstance(shape, Posed):
        form = closed_form(shape.shape)
        if form is None:
            return None
        dim, Q = len(shape.translation), np.eye(3)
        Q[:dim, :dim] = shape.rotation
        return form._replace(rotation=Q @ form.rotation, position=Q @ form.position + with_z(shape.translation))
    if isinstance(shape, HalfSpace):
        return SolidForm(PLANE, _frame_along(with_z(shape.normal)), with_z(shape.point), np.zeros(3))
    if isinstance(shape, Sphere):
        return SolidForm(SPHERE, np.eye(3), with_z(shape.center), np.full(3, shape.radius))
    if isinstance(shape, Box):
        lower, upper = shape.bounds
        return SolidForm(BOX, np.eye(3), with_z((lower + upper) / 2.0), with_z((upper - lower) / 2.0, np.inf))
    if isinstance(shape, Capsule | Cylinder):
        start, end = with_z(shape.start), with_z(shape.end)
        length = np.linalg.norm(end - start)
        kind, size = CYLINDER, np.array([shape.radius, length / 2.0, 0.0])
        if isinstance(shape, Capsule):
            kind = CAPSULE
        elif len(shape.start) == 2:
            kind, size = BOX, np.array([shape.radius, np.inf, length / 2.0])
        return SolidForm(kind, _frame_along((end - start) / length), (start + end) / 2.0, size)
    return None


def _frame_along(z: np.ndarray) -> np.ndarray:
    """A rotation matrix whose third column is the unit vector z; in 2D the second column is normal to the plane."""
    last = 2 - int(np.argmin(np.abs(z[::-1])))  # of equal ones the last: across a plane
    x = np.cross(z, np.eye(3)[last])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def linear_samples(shape: Shape, lower: np.ndarray, upper: np.ndarray, spacing: float, name: str) -> SolidForm:
    """Sample the signed distance of a shape on a grid in a box, for linear interpolation.

    Beyond the box the distance is constant.

    Args:
        shape: The shape.
        lower: Lower corner of the box [m], shape (dim,).
        upper: Upper corner of the box [m], shape (dim,).
        spacing: Largest distance between neighbouring samples [m].
        name: Name of the obstacle, for messages.

    Raises:
        SceneError: The samples do not fit into memory.
    """
    dim = len(lower)
    counts = np.maximum(2.0, np.ceil((upper - lower) / spacing)) + 1.0
    refuse_excess(
        counts.prod(), _SAMPLE * dim, f"Obstacle {name!r}: samples of its distance",
        "use a larger spacing, a smaller Scene.domain, or a half-space, a sphere, a box, a capsule or a cylinder",
    )  # fmt: skip
    counts = counts.astype(int)
    h = (upper - lower) / (counts - 1)
    axes = [lo + d * np.arange(n) for lo, d, n in zip(lower, h, counts, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    samples = signed_distance(shape, x).reshape(counts)
    if dim == 2:
        samples = np.stack([samples, samples], axis=2)
    return SolidForm(LINEAR, np.eye(3), with_z(lower), with_z(h, 1.0), samples)


def _spline_samples(shape: Shape, samples: int, room: float) -> SolidForm:
    """Sample the signed distance of a shape on a grid around the shape, and return coefficients of B-splines.

    The splines are quadratic and interpolate the samples.
    """
    if dimension(shape) == 2:
        raise SceneError(
            f"contact of rigid bodies in a 2D scene is with half-spaces, discs, rectangles and capsules, got a "
            f"{type(shape).__name__}; use a Union of these"
        )
    grid = SampleGrid.around(shape, samples, room)
    coefficients = grid.coefficients(signed_distance(shape, grid.positions))
    return SolidForm(SPLINE, np.eye(3), grid.origin, np.full(3, grid.spacing), coefficients)


def solid_arrays(forms: Sequence[SolidForm], bodies: Sequence[int], rounding: float, device: wp.Device) -> Solids:
    """Copy solids to the device, with one row of samples for all worlds.

    Args:
        forms: The solids.
        bodies: Index of the body to which each solid is fixed, or -1 for the world.
        rounding: Radius of rounded edges and rims, divided by the smallest half edge of a box, or by the smaller of
            radius and half length of a cylinder [1].
        device: Device of the arrays.
    """
    kinds, rotations, positions, sizes, grids = zip(*forms, strict=True) if forms else ((),) * 5
    solids = Solids()

    def array(values: object, dtype: type, shape: tuple = ()) -> wp.array:
        numpy_type = np.int32 if dtype in (int, wp.vec3i) else np.float64
        return wp.array(np.array(values, dtype=numpy_type).reshape(len(forms), *shape), dtype=dtype, device=device)

    solids.kind, solids.body = array(kinds, int), array(bodies, int)
    solids.rotation, solids.position = array(rotations, wp.mat33d, (3, 3)), array(positions, wp.vec3d, (3,))
    solids.size, solids.resolution = array(sizes, wp.vec3d, (3,)), array([g.shape for g in grids], wp.vec3i, (3,))
    smallest = [s[:count].min() if count else 0.0 for s, count in zip(sizes, map(_EDGES.get, kinds), strict=True)]
    solids.rounding = array([rounding * s for s in smallest], wp.float64)
    solids.reach = array([_reach(int(kind), size) for kind, size in zip(kinds, sizes, strict=True)], wp.float64)
    solids.first = array(np.cumsum([0] + [g.size for g in grids])[:-1], int)
    flat = np.concatenate([np.zeros(0), *(g.reshape(-1) for g in grids)])
    solids.sample = wp.array(flat[None], dtype=wp.float64, device=device)
    return solids


def _reach(kind: int, size: np.ndarray) -> float:
    """Radius of a ball around the origin that contains a closed form [m]; infinite for all other solids.

    The radius is rounded up.
    """
    a, b, _ = size
    finite = size[np.isfinite(size)]
    around = {SPHERE: a, BOX: np.linalg.norm(finite), CAPSULE: a + b, CYLINDER: np.hypot(a, b)}
    return 1.0001 * around.get(kind, np.inf)


def solids_of(
    shapes: Sequence[tuple[int, Shape]], samples: int, rounding: float, device: wp.Device, room: float = 0.0
) -> Solids:
    """Convert shapes to solids on the device; shapes without a closed form become splines through samples.

    Args:
        shapes: For each solid, the index of the body to which it is fixed (-1 for the world), and its shape in the
            frame of the body.
        samples: Number of samples along the longest edge of a shape without a closed form.
        rounding: Relative radius of rounded edges and rims, as in `solid_arrays` [1].
        device: Device of the arrays.
        room: Additional distance around a shape that the samples cover [m]; it also increases the result of `widths`.

    Raises:
        SceneError: A shape without a closed form is unbounded, or its samples do not fit into memory.
    """
    forms = [closed_form(shape) or _spline_samples(shape, samples, room) for _, shape in shapes]
    return solid_arrays(forms, [body for body, _ in shapes], rounding, device)


def grid_of(solids: Solids, s: int) -> SampleGrid | None:
    """Grid of the samples of solid s, or None if the solid has a closed form or linear samples."""
    if solids.kind.numpy()[s] != SPLINE:
        return None
    counts = tuple(int(n) for n in solids.resolution.numpy()[s])
    return SampleGrid(
        solids.position.numpy()[s], float(solids.size.numpy()[s, 0]), counts, int(solids.first.numpy()[s])
    )


def widths(solids: Solids) -> np.ndarray:
    """Smallest and second smallest width of each solid [m], shape (n_solids, 2); 0 for a half-space."""

    def across(kind: int, size: np.ndarray, samples: np.ndarray) -> np.ndarray:
        if kind == SPLINE:
            return size * (samples - AROUND)
        a, b, c = size
        return 2.0 * np.array({BOX: (a, b, c), CYLINDER: (a, a, b), PLANE: (0.0, 0.0, 0.0)}.get(kind, (a, a, a)))

    arrays = (a.numpy() for a in (solids.kind, solids.size, solids.resolution))
    rows = [np.sort(across(int(kind), *row))[:2] for kind, *row in zip(*arrays, strict=True)]
    return np.array(rows).reshape(-1, 2)
