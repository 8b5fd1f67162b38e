"""Triangles of the polygons of a mesh, which need not be convex."""

import numpy as np

__all__ = ["triangulated"]

_ROUNDING = 1e-7
"""Area of a triangle that counts as rounding, relative to the area of its polygon: points are in single precision."""


def triangulated(points: np.ndarray, counts: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Splits each polygon into triangles that cover it without overlap.

    A polygon that its first corner sees as a whole, such as a convex one, is split from there. From other polygons ears
    are cut (Meisters 1975). A polygon that crosses itself is split from its first corner, too.

    Args:
        points: Points of the mesh, shape (n, 3).
        counts: Number of corners of each polygon, at least 3, shape (m,).
        corners: Points of the corners of all polygons, one polygon after the other, shape (counts.sum(),).

    Returns:
        Points of the corners of each triangle, in the orientation of its polygon, shape (k, 3).
    """
    start = np.cumsum(counts) - counts
    polygon = np.repeat(np.arange(len(counts)), counts - 2)
    step = np.arange(len(polygon)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), counts - 2)
    first = start[polygon]
    faces = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
    refused = corners.min() < 0 or corners.max() >= len(points) or not np.isfinite(points).all()  # by the mesh, later
    if (counts <= 3).all() or refused:
        return faces
    corner = points[faces]
    areas = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normals = np.stack([np.bincount(polygon, a, len(counts)) for a in areas.T], axis=1)
    turned = np.einsum("ni,ni->n", areas, normals[polygon]) < -_ROUNDING * (normals**2).sum(axis=1)[polygon]
    for k in np.unique(polygon[turned]):
        own = corners[start[k] : start[k] + counts[k]]
        ears = _ears(_flat(points[own], normals[k]))
        if ears is not None:
            faces[polygon == k] = own[ears]
    return faces


def _flat(points: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Coordinates of points in the plane of their polygon, counter-clockwise seen against the normal, shape (n, 2)."""
    z = normal / np.linalg.norm(normal)
    x = np.cross(np.eye(3)[np.abs(z).argmin()], z)
    x /= np.linalg.norm(x)
    return (points - points.mean(axis=0)) @ np.stack([x, np.cross(z, x)], axis=1)


def _ears(x: np.ndarray) -> np.ndarray | None:
    """Corners of the triangles of a counter-clockwise polygon, shape (n - 2, 3); None if it crosses itself.

    Args:
        x: Corners of the polygon, shape (n, 2).
    """
    left, found = list(range(len(x))), []
    while len(left) > 3:
        ring = np.array(left)
        triples = np.stack([np.roll(ring, 1), ring, np.roll(ring, -1)], axis=1)
        area = _cross(x[triples[:, 0]], x[triples[:, 1]], x[triples[:, 2]])
        dented = ring[area <= 0.0]
        ears = (k for k in range(len(left)) if area[k] > 0.0 and _is_empty(x, triples[k], dented))
        k = next(ears, None)
        if k is None:
            return None
        found.append(triples[k])
        del left[k]
    return np.array([*found, left])


def _is_empty(x: np.ndarray, triple: np.ndarray, others: np.ndarray) -> bool:
    """Whether a counter-clockwise triangle contains none of the points `others` but its own corners."""
    a, b, c = x[triple]
    p = x[others]
    inside = (_cross(a, b, p) >= 0.0) & (_cross(b, c, p) >= 0.0) & (_cross(c, a, p) >= 0.0)
    own = (p[:, None] == x[triple]).all(axis=2).any(axis=1)
    return not (inside & ~own).any()


def _cross(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Twice the signed areas of triangles in the plane."""
    return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
