"""Surfaces of solids made of hexahedral cells of a structured grid."""

import numpy as np

__all__ = ["check_grid", "surface_of_cells"]

_SIDES = (
    ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0)),
    ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)),
    ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)),
    ((0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0)),
    ((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0)),
    ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)),
)
"""Corners of the sides of a cell, low and high side of each axis, counter-clockwise seen from outside."""


def surface_of_cells(nodes: np.ndarray, filled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The closed triangle mesh around the filled cells of a structured grid.

    Args:
        nodes: Positions of the nodes [m], shape (i + 1, j + 1, k + 1, 3), right-handed along the axes of the grid.
        filled: Whether each cell belongs to the solid, shape (i, j, k), bool.

    Returns:
        Vertices [m], shape (n, 3), and indices of the vertices of each face, counter-clockwise seen from outside, shape
        (m, 3), int.
    """
    number = np.arange(nodes[..., 0].size).reshape(nodes.shape[:3])
    around = np.pad(filled, 1)
    cells = np.argwhere(filled)
    quads = []
    for side, corners in enumerate(_SIDES):
        step = np.zeros(3, dtype=int)
        step[side // 2] = 2 * (side % 2) - 1
        bare = cells[~around[tuple((cells + 1 + step).T)]]
        quads.append(np.stack([number[tuple((bare + np.array(corner)).T)] for corner in corners], axis=1))
    quad = np.concatenate(quads)
    used, faces = np.unique(np.concatenate([quad[:, [0, 1, 2]], quad[:, [0, 2, 3]]]), return_inverse=True)
    return nodes.reshape(-1, 3)[used], faces.reshape(-1, 3)


def check_grid(what: str, length: float, detail: int) -> None:
    """Raise if `length` or `detail` of a grid is out of range.

    Args:
        what: Name of the part in messages.
        length: Length of the part [m].
        detail: Factor by which the grid is refined.

    Raises:
        ValueError: The length is not positive, or `detail` is not a positive integer.
    """
    if not 0.0 < length < np.inf:
        raise ValueError(f"{what}: length must be positive [m], got {length:g}")
    if detail != int(detail) or detail < 1:
        raise ValueError(f"{what}: detail must be an integer of at least 1, got {detail!r}")
