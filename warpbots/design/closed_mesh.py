"""Finds open edges of triangle meshes."""

import numpy as np

__all__ = ["open_edge"]


def open_edge(faces: np.ndarray, count: int) -> tuple[int, int] | None:
    """An edge that the faces traverse more often in one direction than in the other; None if the mesh is closed.

    Args:
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
        count: Number of vertices.
    """
    start = np.asarray(faces, dtype=np.int64)
    end = np.roll(start, -1, axis=1)
    ways = np.unique(np.concatenate([start * count + end, end * count + start]), return_inverse=True)
    sense = np.repeat([1, -1], start.size)
    balance = np.bincount(ways[1].ravel(), weights=sense)
    wrong = np.flatnonzero(balance)
    return None if not len(wrong) else divmod(int(ways[0][wrong[0]]), count)
