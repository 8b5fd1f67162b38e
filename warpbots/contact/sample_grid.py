"""Regular grids on which the signed distance of a solid without a closed form is sampled."""

import dataclasses
from typing import Self

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.scene import SceneError, Shape
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["AROUND", "SampleGrid", "lost_surface", "refuse_flat"]

AROUND = 6
"""Number of samples along an axis outside of the shape."""

_MARGIN = 2.0
"""Least distance between a shape and the outermost samples, at which the splines end [spacings]."""

_BEYOND = 8
"""Number of samples by which rows are extended; each sample reduces the effect of the end to a sixth."""

_SAMPLE = 200.0
"""Memory of a sample during the computation [bytes]."""

_PROBES = 1000
"""Number of points at which the samples of a shape are compared with the shape."""


@dataclasses.dataclass(frozen=True, eq=False)
class SampleGrid:
    """Regular grid of samples of a signed distance; quadratic B-splines interpolate between the samples.

    Attributes:
        origin: Position of the first sample [m], shape (3,).
        spacing: Distance between neighbouring samples [m].
        counts: Number of samples along each axis; in the order of the samples, the index along z changes fastest.
        first: Index of the first sample of this grid in the list of the samples of all solids.
    """

    origin: np.ndarray
    spacing: float
    counts: tuple[int, int, int]
    first: int = 0

    @classmethod
    def around(cls, shape: Shape, samples: int, room: float) -> Self:
        """Build a grid around a shape, with more than two samples along each axis.

        Args:
            shape: The shape.
            samples: Number of samples along the longest edge of the bounding box of the shape.
            room: Additional distance by which the grid extends beyond the shape [m].

        Raises:
            SceneError: The shape is unbounded or has no extent, or the samples do not fit into memory.
        """
        lower, upper = shape.bounds
        if not np.isfinite(upper - lower).all():
            raise SceneError(f"a {type(shape).__name__} has no end and cannot be sampled; cut it, or use a HalfSpace")
        refuse_flat(shape)
        h = float((upper - lower).max()) / (samples - 1)
        counts = np.ceil((upper - lower + 2.0 * room) / h) + AROUND
        refuse_excess(
            counts.prod(), _SAMPLE, f"{type(shape).__name__}: samples of its distance", "use fewer, or less room"
        )
        origin = (lower + upper) / 2.0 - h * (counts - 1) / 2.0
        return cls(origin, h, tuple(int(n) for n in counts))

    @property
    def size(self) -> int:
        """Number of samples."""
        return int(np.prod(self.counts))

    @property
    def positions(self) -> np.ndarray:
        """Positions of the samples [m], shape (n, 3)."""
        axes = [o + self.spacing * np.arange(n) for o, n in zip(self.origin, self.counts, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    def coefficients(self, distance: np.ndarray) -> np.ndarray:
        """Coefficients of the splines [m] that interpolate distances at the samples, both of shape (n_x, n_y, n_z)."""
        found = distance.reshape(self.counts)
        for axis in range(3):
            found = _filtered(found, axis)
        return found

    def filters(self) -> list[np.ndarray]:
        """Matrices that map distances to coefficients of the splines, one for each of the axes x, y and z."""
        return [_filtered(np.eye(n), 0) for n in self.counts]

    def excess(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Distance by which a box extends beyond the space in which the splines are accurate [m].

        The distance is negative if the box is inside this space.

        Args:
            lower: Lower corner of the box [m], shape (3,).
            upper: Upper corner of the box [m], shape (3,).
        """
        low = self.origin + _MARGIN * self.spacing
        high = self.origin + (np.array(self.counts) - 1 - _MARGIN) * self.spacing
        return float(np.maximum(low - lower, upper - high).max())


def refuse_flat(shape: Shape) -> None:
    """Raise an error if a shape has no extent along an axis, so that no sample could lie inside.

    Raises:
        SceneError: The shape has no extent.
    """
    lower, upper = shape.bounds
    if not (upper > lower).any():
        raise SceneError(
            f"a {type(shape).__name__} at {np.asarray(lower).tolist()} m alone has no extent and is no solid; use a "
            f"Sphere, a Box or another shape with a surface"
        )


def _filtered(values: np.ndarray, axis: int) -> np.ndarray:
    """Coefficients of the splines that interpolate values along one axis.

    The values are extrapolated linearly beyond the ends of the axis. Without this extrapolation the gradient would have
    to vanish at the ends, which would change the distance even at the solid.
    """
    from scipy.ndimage import spline_filter1d

    ends = [(_BEYOND, _BEYOND) if a == axis else (0, 0) for a in range(values.ndim)]
    longer = np.pad(values, ends, mode="reflect", reflect_type="odd")
    found = spline_filter1d(longer, order=2, axis=axis, mode="nearest")
    return np.take(found, np.arange(_BEYOND, _BEYOND + values.shape[axis]), axis=axis)


def lost_surface(grid: SampleGrid, coefficients: np.ndarray, shape: Shape) -> float:
    """Fraction of the surface of a shape behind which the interpolated distance is nowhere negative.

    The depths tested are at most the distance between samples. A wall that is thinner than this distance is lost in
    some places, and no contact is detected there.

    Args:
        grid: Grid of the samples.
        coefficients: Coefficients of the splines [m], shape (n_x, n_y, n_z).
        shape: The shape.
    """
    from scipy.ndimage import map_coordinates

    h = grid.spacing
    x = grid.origin + h * np.argwhere(np.abs(coefficients) < h)
    x = x[:: len(x) // _PROBES + 1]
    d = signed_distance(shape, x)
    x, d = x[d > 0.0], d[d > 0.0, None]
    ahead, back = ([signed_distance(shape, x + side * e) for e in 1e-3 * h * np.eye(3)] for side in (1, -1))
    n = np.subtract(ahead, back).T / (2e-3 * h)
    behind = x - d * n - h * np.linspace(0.1, 1.0, 10)[:, None, None] * n
    found = map_coordinates(
        coefficients, np.moveaxis((behind - grid.origin) / h, -1, 0), order=2, prefilter=False, mode="nearest"
    )
    return float((found >= 0.0).all(axis=0).mean()) if len(d) else 0.0
