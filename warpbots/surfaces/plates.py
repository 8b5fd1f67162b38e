"""Bodies of 2D scenes as plates: their outline and their inside as triangles in front of and behind the plane."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Shape
from warpbots.surfaces.skin import outline_of

__all__ = ["plate"]

_INSIDE = 0.6
"""Smallest distance of an inner point from the outline [distances between inner points]."""


def plate(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A plate whose outline is that of a 2D shape.

    Args:
        shape: Any bounded 2D shape of `warpbots.scene`.
        spacing: Distance between inner points [m].

    Returns:
        Points of the plane [m], shape (n, 2), which are the vertices of the front; the side of each vertex of the
        plate, shape (2 n,), -1 for the front (towards -y) and 1 for the back, where vertex n + k is behind vertex k;
        and faces, counter-clockwise seen from outside, shape (m, 3). All are empty for a shape without an inside.
    """
    from scipy.spatial import Delaunay

    border, _ = outline_of(shape, spacing)
    lower, upper = shape.bounds
    axes = [np.arange(a + 0.5 * spacing, b, spacing) for a, b in zip(lower, upper, strict=True)]
    inner = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    inner = inner[signed_distance(shape, inner) < -_INSIDE * spacing]
    points = np.concatenate([border, inner])
    if len(points) < 3:
        return np.zeros((0, 2)), np.zeros(0), np.zeros((0, 3), dtype=int)
    faces = Delaunay(points).simplices
    corner = points[faces]
    (ux, uz), (vx, vz) = (corner[:, 1] - corner[:, 0]).T, (corner[:, 2] - corner[:, 0]).T
    area = ux * vz - uz * vx
    faces = np.where(area[:, None] < 0.0, faces[:, ::-1], faces)
    solid = np.abs(area) > 1e-6 * spacing**2
    faces = faces[solid & (signed_distance(shape, corner.mean(axis=1)) < 0.0)]
    used, faces = np.unique(faces, return_inverse=True)
    points, faces = points[used], faces.reshape(-1, 3)
    n, rim = len(points), _rim(faces)
    a, b = rim.T
    sides = np.concatenate([np.stack([a, a + n, b + n], axis=1), np.stack([a, b + n, b], axis=1)])
    return points, np.repeat([-1.0, 1.0], n), np.concatenate([faces, faces[:, ::-1] + n, sides])


def _rim(faces: np.ndarray) -> np.ndarray:
    """Directed edges that belong to one face only, shape (k, 2)."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    _, first, count = np.unique(np.sort(edges, axis=1), axis=0, return_index=True, return_counts=True)
    return edges[first[count == 1]]
