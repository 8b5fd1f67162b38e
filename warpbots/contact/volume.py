"""Volumes of shapes: in closed form, or from random points if parts of a shape overlap."""

import functools
import math

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
    dimension,
)

__all__ = ["points_in", "volume"]

_DRAWN = 1 << 14
"""Number of points drawn in a union; the error of overlaps is at most 0.4 % of the whole volume."""
_ROUNDS = 64
"""Largest number of rounds of drawing points in the bounding box of a part until enough are within it."""


@functools.singledispatch
def volume(shape: Shape) -> float:
    """Volume of a shape [m^3], in 2D its area [m^2]; infinite for unbounded shapes.

    Volumes are closed forms or sums of closed forms, with two exceptions. The volume of a `DistanceGrid` is the volume
    of its box times the fraction of a dense set of points at which the distance is not positive. Overlaps of parts of a
    `Union` or bars of a `Truss` count once, by the estimate of Karp and Luby: the volume is the sum over all parts i of
    V_i times the mean of 1 / m at points drawn in part i, where m is the number of parts that contain the point. The
    estimate is exact if parts only touch.
    """
    raise TypeError(f"no volume is known for a {type(shape).__name__}")


@volume.register
def _(shape: Box) -> float:
    lower, upper = shape.bounds
    return float(np.prod(upper - lower))


@volume.register
def _(shape: Sphere) -> float:
    return _ball(shape.radius, dimension(shape))


@volume.register
def _(shape: Cylinder) -> float:
    return _section(shape.radius, dimension(shape)) * math.dist(shape.start, shape.end)


@volume.register
def _(shape: Capsule) -> float:
    dim = dimension(shape)
    return _section(shape.radius, dim) * math.dist(shape.start, shape.end) + _ball(shape.radius, dim)


@volume.register(HalfSpace)
@volume.register(Heightfield)
def _(shape: HalfSpace | Heightfield) -> float:
    return math.inf


@volume.register
def _(shape: Silhouette) -> float:
    return float(np.count_nonzero(shape.mask) * shape.pixel**2)


@volume.register(TriangleMesh)
@volume.register(TetMesh)
def _(shape: TriangleMesh | TetMesh) -> float:
    return shape.volume


@volume.register
def _(shape: Points) -> float:
    return float(shape.volumes.sum())


@volume.register
def _(shape: Sheet) -> float:
    a, b, c = (shape.vertices[shape.faces[:, k]] for k in range(3))
    return float(shape.thickness * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2.0)


@volume.register
def _(shape: DistanceGrid) -> float:
    from scipy.stats import qmc

    lower, upper = shape.bounds
    points = lower + (upper - lower) * qmc.Sobol(len(lower), scramble=False).random(16 * _DRAWN)
    return float(np.prod(upper - lower) * np.mean(signed_distance(shape, points) <= 0.0))


@volume.register
def _(shape: Truss) -> float:
    ends = shape.joints[shape.bars]
    return _together([Capsule(*map(tuple, bar), r) for bar, r in zip(ends, shape.radius, strict=True)])


@volume.register
def _(shape: Union) -> float:
    return _together(list(shape.shapes))


@volume.register
def _(shape: Posed) -> float:
    return volume(shape.shape)


def points_in(shape: Shape, count: int) -> np.ndarray:
    """Up to `count` points that are spread evenly over a shape at random, the same in every call [m], shape (n, dim).

    There are fewer points if the shape fills little of its bounding box.
    """
    return _drawn(shape, count, np.random.default_rng(0))


def _ball(radius: float, dim: int) -> float:
    return math.pi * radius**2 if dim == 2 else 4.0 / 3.0 * math.pi * radius**3


def _section(radius: float, dim: int) -> float:
    return 2.0 * radius if dim == 2 else math.pi * radius**2


def _together(parts: list[Shape]) -> float:
    """Volume of the union of several shapes, by the estimate of Karp and Luby (`volume`)."""
    rng, count = np.random.default_rng(0), -(-_DRAWN // len(parts))
    total = 0.0
    for i, part in enumerate(parts):
        near = [other for k, other in enumerate(parts) if k != i and _near(part, other)]
        points = _drawn(part, count, rng) if near else np.zeros((0, dimension(part)))
        shared = sum((signed_distance(other, points) < 0.0 for other in near), np.zeros(len(points)))
        total += volume(part) * float(np.mean(1.0 / (1.0 + shared)) if len(points) else 1.0)
    return total


def _near(a: Shape, b: Shape) -> bool:
    """Whether the bounding boxes of two shapes overlap."""
    (low, high), (lower, upper) = a.bounds, b.bounds
    return bool((np.minimum(high, upper) > np.maximum(low, lower)).all())


def _drawn(shape: Shape, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw up to `count` uniformly distributed points in a shape [m], shape (n, dim).

    There are fewer points if the shape fills little of its bounding box.
    """
    if isinstance(shape, Posed):
        return _drawn(shape.shape, count, rng) @ np.array(shape.rotation).T + np.array(shape.translation)
    lower, upper = shape.bounds
    found = np.zeros((0, len(lower)))
    for _ in range(_ROUNDS):
        points = rng.uniform(lower, upper, (count, len(lower)))
        found = np.concatenate([found, points[signed_distance(shape, points) <= 0.0]])
        if len(found) >= count:
            break
    return found[:count]
