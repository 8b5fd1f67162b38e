"""Widths of solids, which limit the spacing of points that must also fill thin parts."""

import functools
from collections.abc import Sequence

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.contact.volume import volume
from warpbots.scene import Box, Points, Posed, Shape, Sheet, Truss, Union, dimension, parts_of

__all__ = ["cells_across", "width", "width_within"]

_ALONG = 32
"""Samples along the longest edge of a shape."""

_THIN = 0.1
"""Fraction of the volume that counts as thin [1]."""


@functools.singledispatch
def width(shape: Shape) -> float:
    """Width of the thin part of a bounded shape [m].

    The width at a point of the shape is the length of the shortest chord through the point along an axis. The width of
    the thin part is the 10 % quantile of the widths at the points of a grid, with 32 points along the longest edge of
    the shape. The width of a box is its smallest edge; the width of a ball is 0.4 diameters, because chords near the
    surface are short. The width of `Points` is the size of cells that have two points along each axis. The width of a
    sheet is its thickness, the width of bars is the diameter of the thinnest bar, and the width of a union is the
    smallest width of its parts.
    """
    step, counts = _cells(shape)
    inside = _inside(shape, _centres(shape, step, np.zeros_like(counts), counts))
    if not inside.any():
        return float(step.min())
    chords = np.min([h * _runs(inside, axis) for axis, h in enumerate(step)], axis=0)
    return float(np.quantile(chords[inside], _THIN))


@width.register
def _(shape: Box) -> float:
    step, counts = _cells(shape)
    return float((step * counts).min())  # all chords along an axis are equal, so no point needs a distance


@width.register
def _(shape: Points) -> float:
    return 2.0 * float(np.median(shape.volumes)) ** (1.0 / shape.positions.shape[1])


@width.register
def _(shape: Sheet) -> float:
    return shape.thickness


@width.register
def _(shape: Truss) -> float:
    return 2.0 * float(np.min(shape.radius))


@width.register
def _(shape: Union) -> float:
    return min(map(width, shape.shapes))


@width.register
def _(shape: Posed) -> float:
    return width(shape.shape)


def width_within(part: Shape, whole: Shape) -> float:
    """Width of a part of a union, where other parts touch it or overlap with it as one body [m].

    This is `width` of the part, multiplied by the ratio of the quantiles of chords through the whole and through the
    part, at the same points of the part.

    Args:
        part: A bounded shape, part of `whole`.
        whole: The union.
    """
    (lower, upper), (low, high) = part.bounds, whole.bounds
    step, counts = _cells(part)
    before = np.ceil((lower - low) / step - 1e-6).astype(int)
    after = np.ceil((high - upper) / step - 1e-6).astype(int)
    own, chords = _inside(part, _centres(part, step, np.zeros_like(counts), counts)), []
    if not own.any():
        return width(part)
    for axis in range(len(step)):
        first, last = np.zeros(len(step), dtype=int), counts.copy()
        first[axis], last[axis] = -before[axis], counts[axis] + after[axis]
        rows = _inside(whole, _centres(part, step, first, last))
        inner = (slice(None),) * axis + (slice(before[axis], before[axis] + counts[axis]),)
        chords.append(step[axis] * np.stack([_runs(rows, axis)[inner], _runs(own, axis)]))
    across, alone = (np.quantile(lengths[own], _THIN) for lengths in np.min(chords, axis=0))
    return width(part) * float(across / alone)


def cells_across(shapes: Sequence[Shape], across: float, most: float) -> float:
    """Size of the cells [m] with which shapes are filled, rounded to three significant digits.

    There are at least `across` cells across the width of every shape, unless this would take more than `most` cells in
    all; then the cells are larger. Unbounded shapes do not count; without bounded shapes the result is 1 m.

    Args:
        shapes: Shapes to fill.
        across: Number of cells across the width of a shape.
        most: Largest number of cells in all shapes together.
    """
    shapes = [shape for shape in shapes if np.isfinite(shape.bounds).all()]
    if not shapes:
        return 1.0
    coarsest = (sum(map(volume, shapes)) / most) ** (1.0 / dimension(shapes[0]))
    return float(f"{max(min(map(width, shapes)) / across, coarsest):.3g}")


def _cells(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a cell of the grid in a shape [m], and numbers of cells along the axes; both have shape (dim,)."""
    lower, upper = shape.bounds
    counts = np.maximum(1, np.round(_ALONG * (upper - lower) / (upper - lower).max())).astype(int)
    return (upper - lower) / counts, counts


def _centres(shape: Shape, step: np.ndarray, first: np.ndarray, last: np.ndarray) -> list[np.ndarray]:
    """Coordinates of centres of cells, by axis [m]; cell 0 begins at the lower bound, and `last` is left out."""
    lower = shape.bounds[0]
    return [a + (np.arange(i, j) + 0.5) * h for a, i, j, h in zip(lower, first, last, step, strict=True)]


def _inside(shape: Shape, axes: Sequence[np.ndarray]) -> np.ndarray:
    """Whether a shape contains the points of a grid; a part of a union is asked only about points within its bounds."""
    inside = np.zeros([len(axis) for axis in axes], dtype=bool)
    for part in parts_of(shape):
        near = tuple(
            slice(np.searchsorted(a, low), np.searchsorted(a, high, side="right"))
            for a, low, high in zip(axes, *part.bounds, strict=True)
        )
        points = np.stack(np.meshgrid(*(a[n] for a, n in zip(axes, near, strict=True)), indexing="ij"), axis=-1)
        if points.size:
            distance = signed_distance(part, points.reshape(-1, len(axes)))
            inside[near] |= (distance <= 0.0).reshape(points.shape[:-1])
    return inside


def _runs(inside: np.ndarray, axis: int) -> np.ndarray:
    """Number of cells in the unbroken row of cells along an axis that contains each cell.

    A row consists of cells for which `inside` is true; for all other cells the number is 0.
    """
    rows = np.moveaxis(inside, axis, -1)
    flat = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(1, 1)]).reshape(-1)
    change = np.diff(flat.astype(np.int8))
    lengths = np.flatnonzero(change < 0) - np.flatnonzero(change > 0)
    runs = np.zeros(flat.size, dtype=int)
    runs[flat] = np.repeat(lengths, lengths)
    return np.moveaxis(runs.reshape(*rows.shape[:-1], -1)[..., 1:-1], -1, axis)
