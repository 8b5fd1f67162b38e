"""Tetrahedral meshes of boxes on a regular grid."""

import itertools

import numpy as np

from warpbots.scene import Box, TetMesh

__all__ = ["box_tets"]


def box_tets(shape: Box, cell_size: float) -> TetMesh:
    """A box in cells of about `cell_size` [m], each cut into six tetrahedra about a diagonal (Kuhn 1960).

    Neighbouring cells are mirror images, so that faces match and no direction is preferred: with even numbers of cells
    the halves of the mesh are mirror images, too.
    """
    lower, upper = shape.bounds
    counts = np.maximum(1, np.round((upper - lower) / cell_size)).astype(int)
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, counts, strict=True)]
    vertices = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    stride = np.array([(counts[1] + 1) * (counts[2] + 1), counts[2] + 1, 1])
    walks = np.array([np.cumsum([np.zeros(3, int), *np.eye(3, dtype=int)[list(p)]], axis=0) for p in _orders()])
    corners = walks[None] ^ (cells % 2)[:, None, None]  # (cells, 6, 4, 3), mirrored in every second cell
    tets = ((cells[:, None, None] + corners) @ stride).reshape(-1, 4)
    return TetMesh.oriented(vertices, tets)


def _orders() -> list[tuple[int, ...]]:
    """The six orders of axes in which edges lead from a corner of a cell to the opposite one."""
    return list(itertools.permutations(range(3)))
