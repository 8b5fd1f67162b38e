"""Points spread evenly over a shape, independent of the discretisation by a solver."""

import functools

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.scene import Points, Posed, Shape, Sheet, Truss, Union, dimension, parts_of

__all__ = ["points_within"]

_MOST = 1 << 20
"""Largest number of points drawn in the bounding box of a shape."""

_EDGE = 1e-6
"""Distance from a shape up to which a point counts as within, for rounding and flat regions [size of the box]."""


def points_within(shape: Shape, count: int, region: Shape | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Spread points evenly over a bounded shape, and give the volume that each point represents.

    A solid is filled with all points of the Sobol sequence over its bounding box that are inside the solid. The
    points of a sheet are its vertices, the points of a truss are on the axes of its bars, and `Points` are returned as
    they are. The points depend only on the shape, so they are the same for every solver and resolution.

    Args:
        shape: The shape.
        count: Least number of points within a solid, a power of two. There are fewer points only if the solid fills
            little of its bounding box.
        region: If given, only points inside this second shape are returned; None to return all points of `shape`.

    Returns:
        Positions [m], shape (n, dim), and volumes [m^dim], shape (n,). Both are empty if `shape` and `region` do not
        intersect.
    """
    if any(isinstance(part, Sheet | Truss | Points) for part in map(_unposed, parts_of(shape))):
        position, volume = _divided(shape, count)
        if region is not None:
            edge = _EDGE * float(np.ptp(position, axis=0).max())
            inside = signed_distance(region, position) <= edge
            position, volume = position[inside], volume[inside]
        return position, volume
    return _filled([shape] if region is None else [shape, region], count)


@functools.singledispatch
def _divided(shape: Shape, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and volumes of a shape that may have sheets and bars, in the form of `points_within`."""
    return _filled([shape], count)


@_divided.register
def _(shape: Union, count: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [_divided(part, count) for part in shape.shapes]
    return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])


@_divided.register
def _(shape: Posed, count: int) -> tuple[np.ndarray, np.ndarray]:
    position, volume = _divided(shape.shape, count)
    return position @ np.array(shape.rotation).T + np.array(shape.translation), volume


@_divided.register
def _(shape: Points, count: int) -> tuple[np.ndarray, np.ndarray]:
    return shape.positions, shape.volumes


@_divided.register
def _(shape: Sheet, count: int) -> tuple[np.ndarray, np.ndarray]:
    a, b, c = (shape.vertices[shape.faces[:, k]] for k in range(3))
    share = shape.thickness * np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6.0  # a third of each face
    volume = np.bincount(shape.faces.reshape(-1), np.repeat(share, 3), len(shape.vertices))
    return shape.vertices, volume


@_divided.register
def _(shape: Truss, count: int) -> tuple[np.ndarray, np.ndarray]:
    start, end = np.moveaxis(shape.joints[shape.bars], 1, 0)
    length = np.linalg.norm(end - start, axis=1)
    pieces = np.maximum(1, np.ceil(count * length / length.sum())).astype(int)
    along = np.concatenate([(np.arange(n) + 0.5) / n for n in pieces])[:, None]
    section = 2.0 * shape.radius if dimension(shape) == 2 else np.pi * shape.radius**2
    position = np.repeat(start, pieces, axis=0) + along * np.repeat(end - start, pieces, axis=0)
    return position, np.repeat(section * length / pieces, pieces)


def _unposed(shape: Shape) -> Shape:
    return _unposed(shape.shape) if isinstance(shape, Posed) else shape


def _filled(shapes: list[Shape], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and volumes of the intersection of several solids, in the form of `points_within`."""
    from scipy.stats import qmc

    lower = np.max([shape.bounds[0] for shape in shapes], axis=0)
    upper = np.min([shape.bounds[1] for shape in shapes], axis=0)
    size = upper - lower
    edge = _EDGE * float(size.max())
    if size.min() < -edge:
        return np.zeros((0, len(lower))), np.zeros(0)
    sequence, drawn, found = qmc.Sobol(len(lower), scramble=False), 0, np.zeros((0, len(lower)))
    while len(found) < count and drawn < _MOST:
        more = max(count, drawn)  # the sequence is even after powers of two
        points = lower + size * sequence.random(more)
        drawn += more
        within = np.all([signed_distance(shape, points) <= edge for shape in shapes], axis=0)
        found = np.concatenate([found, points[within]])
    return found, np.full(len(found), np.prod(np.maximum(size, edge)) / drawn)
