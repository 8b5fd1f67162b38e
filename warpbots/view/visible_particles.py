"""Finds the surface of bodies made of particles: the particles on the surface, and the surface normals."""

import numpy as np

__all__ = ["outward", "visible"]

_CELLS = 128  # along the longest edge of the grid on which particles are counted


def _occupancy(position: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """A grid that covers the particles.

    Args:
        position: Positions of the particles [m], shape (n, 3).
        radius: Radii of the particles [m], shape (n,).

    Returns:
        Whether each cell contains a particle; the indices of the cell of each particle, shape (n, 3); and the edge of a
        cell [m].
    """
    lower, upper = position.min(axis=0), position.max(axis=0)
    cell = max(2.1 * float(np.median(radius)), float((upper - lower).max()) / _CELLS)
    at = np.floor((position - lower) / cell).astype(int) + 3
    full = np.zeros(at.max(axis=0) + 4, dtype=bool)
    full[tuple(at.T)] = True
    return full, at, cell


def visible(position: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Whether each ball may be visible from outside: at least one of the 26 cells around its cell is empty.

    Args:
        position: Centres [m], shape (n, 3).
        radius: Radii [m], shape (n,).

    Returns:
        An array of shape (n,), bool.
    """
    from scipy.ndimage import binary_erosion

    if not len(position):
        return np.zeros(0, dtype=bool)
    full, at, _ = _occupancy(position, radius)
    return ~binary_erosion(full, np.ones((3, 3, 3)))[tuple(at.T)]


def outward(position: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Surface normals of the body that balls represent: minus the gradient of their blurred density, normalised.

    Args:
        position: Centres [m], shape (n, 3).
        radius: Radii [m], shape (n,).

    Returns:
        Vectors of length 1, or of length 0 for balls at which the gradient vanishes, shape (n, 3).
    """
    from scipy.ndimage import gaussian_filter, map_coordinates

    if not len(position):
        return np.zeros((0, 3))
    full, _, cell = _occupancy(position, radius)
    density = gaussian_filter(full.astype(np.float32), 1.5)
    grid = (position - position.min(axis=0)) / cell + 2.5
    slope = np.stack([map_coordinates(g, grid.T, order=1) for g in np.gradient(density)], axis=1)
    return -slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-6)
