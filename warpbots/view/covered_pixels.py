"""Rasterisation: the pixels that triangles cover."""

import numpy as np

__all__ = ["covered"]


def covered(
    corner: np.ndarray, depth: np.ndarray, columns: int, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pixels whose centres lie in triangles, for each of several triangles.

    Args:
        corner: Column and row of each corner, as fractional numbers, shape (m, 3, 2); no triangle may be degenerate.
        depth: Depth of the corners, shape (m, 3).
        columns: Number of columns of the picture.
        rows: Number of rows of the picture.

    Returns:
        For each pair of a triangle and a pixel in it: the pixel as row * columns + column, the depth of the triangle at
        the pixel, and the index of the triangle; each of shape (n,).
    """
    size = [columns, rows]
    low = np.clip(np.floor(corner.min(axis=1) - 0.5).astype(np.int64), 0, size)
    high = np.clip(np.ceil(corner.max(axis=1) + 0.5).astype(np.int64), 0, size)
    face, k = _spread(high[:, 1] - low[:, 1])
    row = low[face, 1] + k
    # A slender triangle covers few pixels of its bounding box: only those between its edges are tested in each row.
    left, right = _between(corner[face], row + 0.5)
    first = np.clip(np.floor(left - 1.0), low[face, 0], high[face, 0]).astype(np.int64)
    last = np.clip(np.ceil(right + 1.0), first, high[face, 0]).astype(np.int64)
    line, k = _spread(last - first)
    face, row, column = face[line], row[line], first[line] + k
    edge1, edge2 = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    area = edge1[:, 0] * edge2[:, 1] - edge1[:, 1] * edge2[:, 0]
    q = np.stack([column + 0.5, row + 0.5], axis=1) - corner[face, 0]
    s = (q[:, 0] * edge2[face, 1] - q[:, 1] * edge2[face, 0]) / area[face]
    t = (q[:, 1] * edge1[face, 0] - q[:, 0] * edge1[face, 1]) / area[face]
    inside = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0)
    s, t, face = s[inside], t[inside], face[inside]
    at = depth[face, 0] + s * (depth[face, 1] - depth[face, 0]) + t * (depth[face, 2] - depth[face, 0])
    return (row * columns + column)[inside], at, face


def _spread(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every index i repeated `count[i]` times, and the index of each repetition, both of shape (sum of count,)."""
    index = np.repeat(np.arange(len(count)), count)
    return index, np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)


def _between(corner: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Horizontal coordinates at which a horizontal line enters and leaves each triangle.

    Both coordinates are 0 if the line misses the triangle.

    Args:
        corner: Corners of the triangles, shape (n, 3, 2).
        y: Vertical coordinate of the line through each triangle, shape (n,).
    """
    start, rise = corner, np.roll(corner, -1, axis=1) - corner
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (y[:, None] - start[..., 1]) / rise[..., 1]
        x = start[..., 0] + t * rise[..., 0]
    cut = (t >= 0.0) & (t <= 1.0)
    left, right = np.where(cut, x, np.inf).min(axis=1), np.where(cut, x, -np.inf).max(axis=1)
    missed = ~cut.any(axis=1)
    return np.where(missed, 0.0, left), np.where(missed, 0.0, right)
