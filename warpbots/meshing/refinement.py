"""Refinement of triangle meshes by bisection of their longest edges."""

import numpy as np

__all__ = ["refined"]


def refined(vertices: np.ndarray, faces: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """The same surface, with edges bisected until no edge is much longer than `longest`.

    An edge is bisected, together with the two triangles that share it, if it is the longest edge of both triangles
    (Rivara 1984). The smallest angle of a triangle becomes at worst half as large. New vertices are appended to the
    given vertices.

    Args:
        vertices: Vertex positions [m], shape (n, 3).
        faces: Vertex indices, shape (m, 3).
        longest: Length above which edges are bisected [m].

    Returns:
        Vertices [m], shape (n', 3), and faces with their original orientation, shape (m', 3).
    """
    while True:
        sides = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2)  # side k goes from corner k to the next one
        edges, number = np.unique(np.sort(sides.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
        number = number.reshape(faces.shape)
        length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
        rank = np.empty(len(edges), dtype=int)  # ties go to the later edge
        rank[np.lexsort((np.arange(len(edges)), length.round(12)))] = np.arange(len(edges))
        side = rank[number].argmax(axis=1)
        chosen = number[np.arange(len(faces)), side]
        cut = (np.bincount(chosen, minlength=len(edges)) == np.bincount(number.reshape(-1))) & (length > longest)
        if not cut.any():
            return vertices, faces
        middle = np.full(len(edges), -1)
        middle[cut] = len(vertices) + np.arange(cut.sum())
        vertices = np.concatenate([vertices, vertices[edges[cut]].mean(axis=1)])
        halved = cut[chosen]
        a, b, c = (faces[halved, (side[halved] + k) % 3] for k in range(3))
        m = middle[chosen[halved]]
        faces = np.concatenate([faces[~halved], np.stack([a, m, c], axis=1), np.stack([m, b, c], axis=1)])
