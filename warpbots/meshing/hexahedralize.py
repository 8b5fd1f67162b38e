"""Hexahedral meshes of boxes."""

import numpy as np

from warpbots.meshing.boxes import box_hexahedra
from warpbots.scene import Box, Posed, SceneError, Shape
from warpbots.scene.field_types import checked
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["hexahedra"]

_CELL = 2e3
"""Memory per cell [bytes]."""


@checked
def hexahedra(shape: Shape, cell_size: float) -> tuple[np.ndarray, np.ndarray]:
    """Fill a box, which may be rotated, with hexahedra on a regular grid.

    Args:
        shape: A 3D `Box`, or a `Posed` 3D `Box`.
        cell_size: Edge length of the cells [m].

    Returns:
        Vertices [m], shape (n, 3), and indices of the eight vertices of each cell, with the last axis changing fastest,
        shape (n_cells, 8), int.

    Raises:
        SceneError: The shape is not a box.
        ValueError: `cell_size` is not positive.
    """
    if cell_size <= 0.0:
        raise ValueError(f"hexahedra: cell_size must be a positive length [m], got {cell_size:g}")
    if isinstance(shape, Posed):
        vertices, cells = hexahedra(shape.shape, cell_size)
        return vertices @ np.array(shape.rotation).T + np.array(shape.translation), cells
    if not isinstance(shape, Box) or len(shape.lower) != 3:
        raise SceneError(
            f"a {type(shape).__name__} has no grid of hexahedra, only a Box in 3D has one; use "
            f"ProjectiveDynamics(elements='quadratic_tetrahedra')"
        )
    count = float(np.ceil(np.subtract(*shape.bounds[::-1]) / cell_size).prod())
    refuse_excess(count, _CELL, "meshing: cells of a Box", "use larger cells or a smaller body")
    return box_hexahedra(shape, cell_size)
