"""Warnings about rigid bodies that are thinner than a cell of the matter, or narrower than the gaps of a truss."""

import functools
from collections.abc import Sequence

import numpy as np

from warpbots.contact.thickness import thickness
from warpbots.contact.width import width, width_within
from warpbots.scene import (
    Capsule,
    Cylinder,
    Posed,
    RigidBody,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    Union,
    parts_of,
)
from warpbots.solvers.coupled.model import MatterPoints
from warpbots.user_warning import warn_user

__all__ = ["warn_of_gaps", "warn_of_thin_links"]


def warn_of_thin_links(bodies: tuple[RigidBody, ...], points: MatterPoints) -> None:
    """Warn about the thinnest rigid body if it is thinner than a cell (docs/design/coupling.md).

    A rod along an axis of a square lattice passes between its masses up to a thickness of the diagonal of a cell.

    Args:
        bodies: The bodies.
        points: The points of the matter.
    """
    dx, rod = points.size, points.narrowest * points.size
    found = [(*_thinnest(body.shape, rod), body) for body in bodies if body.shape is not None]
    thin = [each for each in found if each[0] < (1.0 - 1e-6) * (rod if _across(each[1]) < rod else dx)]
    if not thin:
        return
    t, part, body = min(thin, key=lambda each: each[0])
    is_rod = _across(part) < rod
    others = f" ({len(thin) - 1} more bodies likewise)" if len(thin) > 1 else ""
    least = f"{points.narrowest:.2g} times the" if is_rod and points.narrowest > 1.0 else "a"
    warn_user(
        f"RigidBody {body.name!r} is {t:.2g} m thick, less than {least} {points.cell} of {dx:.2g} m: "
        f"{points.rod if is_rod else points.plate}{others}; use {points.option} of at most "
        f"{t / points.narrowest if is_rod else t:.2g} m, or a thicker RigidBody.shape"
    )


def warn_of_gaps(bodies: Sequence[RigidBody], points: MatterPoints) -> None:
    """Warn about the narrowest rigid body if it fits between the ends of the longest bar of a truss.

    Args:
        bodies: The bodies to which no points are bound.
        points: The points of the matter.
    """
    shapes = [(_across(body.shape), body) for body in bodies if body.shape is not None]
    across, body = min(shapes, key=lambda each: each[0], default=(np.inf, None))
    if body is not None and points.size <= across < (1.0 - 1e-6) * points.longest_bar:
        warn_user(
            f"RigidBody {body.name!r} is {across:.2g} m across, less than the longest bar of a Truss, "
            f"{points.longest_bar:.2g} m: only the ends of bars touch bodies, and it passes between them; divide bars "
            f"into pieces of at most {across:.2g} m"
        )


def _thinnest(shape: Shape, least: float) -> tuple[float, Shape]:
    """Thickness of the thinnest part of a shape, where other parts do not thicken it [m], and this part."""
    parts = parts_of(shape)
    found = [(thickness(part, least), part) for part in parts]
    if len(parts) > 1:
        found = [(t * width_within(p, shape) / width(p) if t < least else t, p) for t, p in found]
    return min(found, key=lambda each: each[0])


@functools.singledispatch
def _across(shape: Shape) -> float:
    """The second smallest of the extents of a shape along axes of its own [m]: a rod is as wide as it is thick.

    A 2D shape is a rod across the plane, or a plate if it is long.
    """
    lower, upper = shape.bounds
    return float(np.sort(upper - lower)[1])


@_across.register
def _(shape: Sphere) -> float:
    return 2.0 * shape.radius


@_across.register
def _(shape: Capsule | Cylinder) -> float:
    length, width = float(np.linalg.norm(np.subtract(shape.end, shape.start))), 2.0 * shape.radius
    if isinstance(shape, Capsule):
        length += width
    return sorted((width, length) if len(shape.start) == 2 else (width, width, length))[1]


@_across.register
def _(shape: Posed) -> float:
    return _across(shape.shape)


@_across.register
def _(shape: Union) -> float:
    return max(map(_across, shape.shapes))


@_across.register
def _(shape: TriangleMesh | TetMesh) -> float:
    x = shape.vertices - shape.vertices.mean(axis=0)
    return float(np.sort(np.ptp(x @ np.linalg.svd(x, full_matrices=False)[2].T, axis=0))[1])
