"""Checks of vertices and faces of meshes, given as arrays or tensors."""

from typing import Any

import numpy as np

from warpbots.design.closed_mesh import open_edge

__all__ = ["check_mesh", "refuse_fractions", "refuse_open"]


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


def refuse_fractions(faces: np.ndarray, who: str) -> None:
    """Raise if an index of a vertex is a fraction, which would be cut off.

    Args:
        faces: Indices of the three vertices of each face, shape (m, 3).
        who: Name of the caller in messages.

    Raises:
        ValueError: An index is a fraction.
    """
    broken = np.argwhere(np.asarray(faces) % 1 != 0)
    if len(broken):
        at = tuple(broken[0].tolist())
        raise ValueError(f"{who}: faces must be whole numbers, the indices of vertices, got {faces[at]:g} at {at}")


def refuse_open(vertices: np.ndarray, faces: np.ndarray, who: str) -> None:
    """Raise unless a mesh is closed; vertices at the same place count as one.

    Args:
        vertices: Vertices [m], shape (n, 3).
        faces: Indices of the three vertices of each face, shape (m, 3), int.
        who: Name of the caller in messages.

    Raises:
        ValueError: The mesh is open.
    """
    if open_edge(faces, len(vertices)) is None:
        return
    _, first, same = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    edge = open_edge(first[same.reshape(-1)][np.asarray(faces, dtype=np.int64)], len(vertices))
    if edge is not None:
        raise ValueError(
            f"{who}: the mesh is open at the edge of vertices {edge[0]} and {edge[1]}, which has not one face on each "
            f"side, so that it encloses nothing: close it, and turn all faces outwards"
        )
