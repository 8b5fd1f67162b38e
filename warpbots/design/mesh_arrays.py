"""Checks of vertices and faces of meshes, given as arrays or tensors."""

from typing import Any

import numpy as np

__all__ = ["check_mesh"]


def check_mesh(vertices: Any, faces: Any, who: str) -> None:
    """Raise unless `vertices` are 3D points, and `faces` are triangles between these points.

    Args:
        vertices: Vertices [m], shape (n, 3).
        faces: Indices of the three vertices of each face, shape (m, 3), int.
        who: Name of the caller in messages.

    Raises:
        ValueError: An array has the wrong type or shape, or a face has the index of a vertex that does not exist.
    """
    if len(vertices.shape) != 2 or vertices.shape[1] != 3 or not len(vertices):
        raise ValueError(f"{who}: vertices must have shape (n, 3), got {tuple(vertices.shape)}")
    if len(faces.shape) != 2 or faces.shape[1] != 3 or not len(faces):
        raise ValueError(f"{who}: faces must name three vertices each, shape (m, 3), got {tuple(faces.shape)}")
    lowest, highest = faces.min().item(), faces.max().item()
    if lowest < 0 or highest >= len(vertices) or (isinstance(faces, np.ndarray) and (faces % 1).any()):
        raise ValueError(
            f"{who}: faces must be whole numbers from 0 to {len(vertices) - 1}, the vertices, got {lowest:g} to "
            f"{highest:g}"
        )
