"""Meshes of cones, and of other primitives whose transform shears them or scales them unevenly."""

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.scene import SceneError
from warpbots.usd.stage.attributes import at_rest, axis_number
from warpbots.usd.stage.units import START

__all__ = ["SIDES", "cone", "cube", "rod", "sphere"]

SIDES = 48
"""Sides of the polygon that approximates a circle."""

Mesh = tuple[np.ndarray, np.ndarray]
"""Vertices, shape (n, 3), and faces, counter-clockwise seen from outside, shape (m, 3)."""

_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def cube() -> Mesh:
    """Mesh of the cube from -1 to 1."""
    return _CORNERS, _QUADS[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)


def sphere(radius: float) -> Mesh:
    """Mesh of a sphere about the origin."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, SIDES // 2 + 1)
    return _turned(radius * np.sin(angle), radius * np.cos(angle), 2)


def cone(prim: Usd.Prim) -> Mesh:
    """Mesh of the cone at `prim`."""
    shape = UsdGeom.Cone(prim)
    radius, height = float(shape.GetRadiusAttr().Get(START)), float(shape.GetHeightAttr().Get(START))
    return _turned(np.array([-0.5, -0.5, 0.5]) * height, np.array([0.0, radius, 0.0]), _axis(prim))


def rod(prim: Usd.Prim, bottom: float, top: float) -> Mesh:
    """Mesh of the capsule or cylinder at `prim`, whose ends have the radii `bottom` and `top`.

    Raises:
        SceneError: The prim is a capsule whose ends have different radii.
    """
    height = at_rest(prim, "height")
    half = 0.5 * float(1.0 if height is None else height)
    if not prim.GetTypeName().startswith("Capsule"):
        return _turned(half * np.array([-1.0, -1.0, 1.0, 1.0]), np.array([0.0, bottom, top, 0.0]), _axis(prim))
    if bottom != top:
        raise SceneError(f"its ends have different radii {bottom:g} and {top:g}; turn it into a Mesh")
    angle = np.linspace(0.0, 0.5 * np.pi, SIDES // 4 + 1)
    along, across = half + bottom * np.sin(angle), bottom * np.cos(angle)
    return _turned(np.concatenate([-along[::-1], along]), np.concatenate([across[::-1], across]), _axis(prim))


def _axis(prim: Usd.Prim) -> int:
    word = at_rest(prim, "axis")
    return axis_number("Z" if word is None else word)


def _turned(along: np.ndarray, across: np.ndarray, axis: int) -> Mesh:
    """Mesh of the solid of revolution of a polyline about an axis.

    Args:
        along: Coordinates of the points of the polyline along the axis, in ascending order, shape (n,).
        across: Distances of these points from the axis, 0 at both ends, shape (n,).
        axis: Index of the axis: 0, 1 or 2.
    """
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    polygon = np.sqrt(2.0 * np.pi / SIDES / np.sin(2.0 * np.pi / SIDES)) * across[1:-1, None]  # of the circle's area
    rings = np.zeros((len(across) - 2, SIDES, 3))
    rings[..., axis] = along[1:-1, None]
    rings[..., (axis + 1) % 3], rings[..., (axis + 2) % 3] = polygon * np.cos(angle), polygon * np.sin(angle)
    ends = np.zeros((2, 3))
    ends[:, axis] = along[[0, -1]]
    points = np.concatenate([rings.reshape(-1, 3), ends])
    now = np.arange(SIDES)
    after, low, high = (now + 1) % SIDES, np.full(SIDES, len(points) - 2), np.full(SIDES, len(points) - 1)
    last = (len(rings) - 1) * SIDES
    faces = [np.stack([after, now, low], axis=1), np.stack([now + last, after + last, high], axis=1)]
    for first in range(0, last, SIDES):
        a, b, c, d = now + first, after + first, after + first + SIDES, now + first + SIDES
        faces += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    return points, np.concatenate(faces)
