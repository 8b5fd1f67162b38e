"""Meshes of boxes on a regular grid: tetrahedra and hexahedra."""

import itertools

import numpy as np

from warpbots.scene import Box, TetMesh

__all__ = ["box_hexahedra", "box_tets"]


def box_tets(shape: Box, cell_size: float) -> TetMesh:
    """A box divided into cells of about `cell_size` [m].

    Each cell is cut into six tetrahedra around a diagonal (Kuhn 1960).

    Neighbouring cells are mirror images, so that the faces of the tetrahedra match and no direction is preferred. If
    the numbers of cells are even, the two halves of the mesh are also mirror images.
    """
    vertices, cells, stride = _grid(shape, cell_size)
    walks = np.array([np.cumsum([np.zeros(3, int), *np.eye(3, dtype=int)[list(p)]], axis=0) for p in _orders()])
    corners = walks[None] ^ (cells % 2)[:, None, None]  # (cells, 6, 4, 3), mirrored in every second cell
    tets = ((cells[:, None, None] + corners) @ stride).reshape(-1, 4)
    return TetMesh.oriented(vertices, tets)


def box_hexahedra(shape: Box, cell_size: float) -> tuple[np.ndarray, np.ndarray]:
    """A box divided into hexahedral cells of about `cell_size` [m].

    Returns:
        Vertices [m], shape (n, 3), and indices of the eight vertices of each cell, with z changing fastest and x
        slowest, shape (n_cells, 8), int.
    """
    vertices, cells, stride = _grid(shape, cell_size)
    corners = np.array(list(itertools.product((0, 1), repeat=3)))
    return vertices, (cells[:, None] + corners) @ stride


def _grid(shape: Box, cell_size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices of a grid [m], shape (n, 3), indices of cells, shape (n_cells, 3), and vertex strides, shape (3,)."""
    lower, upper = shape.bounds
    counts = np.maximum(1, np.round((upper - lower) / cell_size)).astype(int)
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, counts, strict=True)]
    vertices = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    return vertices, cells, np.array([(counts[1] + 1) * (counts[2] + 1), counts[2] + 1, 1])


def _orders() -> list[tuple[int, ...]]:
    """The six orders of the three axes; each is a path along edges of a cell from one corner to the opposite corner."""
    return list(itertools.permutations(range(3)))
