"""Shadows of bodies under vertical light."""

import numpy as np

from warpbots.view.camera import Camera
from warpbots.view.covered_pixels import covered

__all__ = ["DARKNESS", "Shadow"]

DARKNESS = 0.26
"""Darkness of the shadow under a body."""


class Shadow:
    """The blurred shadow of balls and triangles under vertical light."""

    def __init__(self, camera: Camera, position: np.ndarray, radius: np.ndarray, corner: np.ndarray):
        """Compute the shadow on a grid of cells seen from above.

        Args:
            camera: A 3D view; shadows are computed in the box of this view.
            position: Centres of the balls [m], shape (n, 3).
            radius: Radii of the balls [m], shape (n,).
            corner: Corners of the triangles [m], shape (m, 3, 3).
        """
        from scipy.ndimage import gaussian_filter, maximum_filter

        lower, upper = camera.box[0][:2], camera.box[1][:2]
        self.cell = max(2.0 * float(radius.max(initial=0.0)), float((upper - lower).max()) / 160.0)
        self.lower = lower - 4.0 * self.cell
        counts = np.ceil((upper - lower) / self.cell).astype(int) + 8
        cover, top = np.zeros(counts), np.full(counts, -np.inf)
        points = np.concatenate(
            [position, corner.reshape(-1, 3)]
        )  # corners too, as a thin rod may cover no cell centre
        for cell, height in (self._cells(points, counts), self._under(corner, counts)):
            cover[cell] = DARKNESS
            np.maximum.at(top, cell, height)
        self.cover, self.top = gaussian_filter(cover, 1.6), maximum_filter(top, 13)

    def at(self, x: np.ndarray) -> np.ndarray:
        """Darkness in [0, 1], shape (n,), at the points `x` [m], shape (n, 3); 0 for points above the bodies."""
        from scipy.ndimage import map_coordinates

        grid = ((x[:, :2] - self.lower) / self.cell - 0.5).T
        dark = map_coordinates(self.cover, grid, order=1, mode="constant")
        nearest = np.clip(np.round(grid).astype(int), 0, np.array(self.top.shape)[:, None] - 1)
        return dark * (x[:, 2] < self.top[tuple(nearest)])

    def _cells(self, x: np.ndarray, counts: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Indices of the cells of a grid that contain points, and the heights of these points [m].

        Args:
            x: The points [m], shape (n, 3).
            counts: Number of cells of the grid along each horizontal axis.
        """
        at = np.floor((x[:, :2] - self.lower) / self.cell).astype(int)
        inside = ((at >= 0) & (at < counts)).all(axis=1)
        return tuple(at[inside].T), x[inside, 2]

    def _under(self, corner: np.ndarray, counts: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Indices of the cells of a grid that are below triangles, and the heights of the triangles above them [m].

        Args:
            corner: Corners of the triangles [m], shape (m, 3, 3).
            counts: Number of cells of the grid along each horizontal axis.
        """
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        corner = corner[normal[:, 2] > 1e-6 * np.linalg.norm(normal, axis=1)]
        columns, rows = (int(n) for n in counts)
        pixel, height, _ = covered((corner[..., :2] - self.lower) / self.cell, corner[..., 2], columns, rows)
        return (pixel % columns, pixel // columns), height
