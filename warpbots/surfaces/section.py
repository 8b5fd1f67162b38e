"""Bodies cut open: the part of a surface outside of a shape, and the section through the matter that closes it.

All new points are weighted means of given points, so that they move with these.
"""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix, identity, vstack

__all__ = ["MovingTriangles", "clipped_triangles", "section_of_tetrahedra"]

_LEVELS = 4
"""How often the edges of a triangle or tetrahedron are halved where the distance is not linear along them."""

_LINEAR = 0.01
"""Deviation of the distance at the middle of an edge from the mean of both ends, relative to the length of the edge, up
to which the distance counts as linear."""

_Distance = Callable[[np.ndarray], np.ndarray]
"""Distance at points [m], shape (n, 3): positive where matter is shown, shape (n,)."""


@dataclasses.dataclass(frozen=True, eq=False)
class MovingTriangles:
    """Triangles whose vertices are weighted means of points.

    Attributes:
        weights: Weights of the points in each vertex, shape (n_vertices, n_points).
        faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).
    """

    weights: csr_matrix
    faces: np.ndarray

    def at(self, values: np.ndarray) -> np.ndarray:
        """Values at the vertices, shape (n_vertices, k), from values at the points, shape (n_points, k)."""
        return self.weights @ np.asarray(values, dtype=np.float64)


def clipped_triangles(rest: np.ndarray, faces: np.ndarray, distance: _Distance) -> MovingTriangles:
    """The part of triangles in which the distance is positive.

    Args:
        rest: Rest positions of the points [m], shape (n, 3).
        faces: Indices of the points of each triangle, shape (m, 3).
        distance: The distance, by position at rest.
    """
    weights, faces, d = _refined(rest, faces, distance)
    shown = d[faces] > 0.0
    count = shown.sum(axis=1)
    one, two = (_turned(faces[count == k], shown[count == k] == (k == 1)) for k in (1, 2))
    # one corner is shown: the triangle at this corner; two are shown: what is left without the third
    edges = np.concatenate([one[:, [0, 1]], one[:, [0, 2]], two[:, [0, 1]], two[:, [0, 2]]])
    weights, new = _with_crossings(weights, edges, d)
    n, m = len(one), len(two)
    ab, ac, ij, ik = np.split(new, np.cumsum([n, n, m]))
    parts = [
        faces[count == 3],
        np.stack([one[:, 0], ab, ac], axis=1),
        np.stack([ij, two[:, 1], two[:, 2]], axis=1),
        np.stack([ij, two[:, 2], ik], axis=1),
    ]
    return _without_unused(weights, np.concatenate(parts))


def section_of_tetrahedra(rest: np.ndarray, tets: np.ndarray, distance: _Distance) -> MovingTriangles:
    """The surface in tetrahedra on which the distance is zero, as triangles that face negative distances.

    Args:
        rest: Rest positions of the points [m], shape (n, 3).
        tets: Indices of the points of each tetrahedron, shape (m, 4).
        distance: The distance, by position at rest.
    """
    weights, tets, d = _refined(rest, tets, distance)
    shown = d[tets] > 0.0
    count = shown.sum(axis=1)
    order = np.argsort(~shown, axis=1, kind="stable")
    sorted_tets = np.take_along_axis(tets, order, axis=1)  # corners that are shown come first
    one, two, three = (sorted_tets[count == k] for k in (1, 2, 3))
    loops = [one[:, [[0, 1], [0, 2], [0, 3]]], three[:, [[3, 0], [3, 1], [3, 2]]]]
    a = two[:, [[0, 2], [0, 3], [1, 3], [1, 2]]]  # around the quadrilateral
    loops += [a[:, [0, 1, 2]], a[:, [0, 2, 3]]]
    edges = np.concatenate(loops)
    away = np.concatenate([_away(rest, weights, part, k) for part, k in ((one, 1), (three, 3), (two, 2), (two, 2))])
    weights, new = _with_crossings(weights, edges.reshape(-1, 2), d)
    faces = new.reshape(-1, 3)
    x = (weights @ rest)[faces]
    normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    inverted = np.einsum("ni,ni->n", normal, away) < 0.0
    faces[inverted] = faces[inverted][:, ::-1]
    return _without_unused(weights, faces)


def _away(rest: np.ndarray, weights: csr_matrix, tets: np.ndarray, shown: int) -> np.ndarray:
    """Directions from the mean of the first `shown` corners to the mean of the others, shape (m, 3)."""
    x = (weights @ rest)[tets]
    return x[:, shown:].mean(axis=1) - x[:, :shown].mean(axis=1)


def _refined(rest: np.ndarray, simplices: np.ndarray, distance: _Distance) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    """Halve the edges of simplices near the zero of a distance until the distance is linear in each.

    Returns:
        The weights of the points in each vertex, the vertices of each simplex, and the distance at each vertex.
    """
    weights, d = identity(len(rest), format="csr"), distance(rest)
    pairs = list(itertools.combinations(range(simplices.shape[1]), 2))
    done = []
    for _ in range(_LEVELS):
        x = weights @ rest
        ends = simplices[:, pairs]
        length = np.linalg.norm(x[ends[..., 0]] - x[ends[..., 1]], axis=-1).max(axis=1, initial=0.0)
        near = np.abs(d[simplices]).min(axis=1, initial=np.inf) <= length
        done.append(simplices[~near])
        simplices, ends, length = simplices[near], ends[near], length[near]
        if not len(simplices):
            break
        middle = distance(x[ends].mean(axis=2).reshape(-1, 3)).reshape(len(simplices), len(pairs))
        bent = (np.abs(middle - d[ends].mean(axis=2)) > _LINEAR * length[:, None]).any(axis=1)
        done.append(simplices[~bent])
        edges, number = np.unique(np.sort(ends[bent].reshape(-1, 2), axis=1), axis=0, return_inverse=True)
        halves = 0.5 * (weights[edges[:, 0]] + weights[edges[:, 1]])
        number = number.reshape(-1, len(pairs)) + weights.shape[0]
        weights, d = vstack([weights, halves], format="csr"), np.concatenate([d, distance(halves @ rest)])
        simplices = _halved(simplices[bent], number)
    return weights, np.concatenate([*done, simplices]), d


_PARTS = {
    # corners are 0, 1, ..., then come the middles of the edges 01, 02, (03,) 12, (13, 23)
    3: [[0, 3, 4], [3, 1, 5], [4, 5, 2], [3, 5, 4]],
    4: [
        [0, 4, 5, 6], [4, 1, 7, 8], [5, 7, 2, 9], [6, 8, 9, 3],
        [4, 9, 5, 6], [4, 9, 6, 8], [4, 9, 8, 7], [4, 9, 7, 5],
    ],
}  # fmt: skip
"""Parts into which a triangle or tetrahedron is divided at the middles of its edges, by its number of corners."""


def _halved(simplices: np.ndarray, middles: np.ndarray) -> np.ndarray:
    return np.concatenate([simplices, middles], axis=1)[:, _PARTS[simplices.shape[1]]].reshape(-1, simplices.shape[1])


def _turned(faces: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The triangles `faces`, each starting with its only corner that `first` marks."""
    start = first.argmax(axis=1)[:, None]
    return np.take_along_axis(faces, (start + np.arange(3)) % 3, axis=1)


def _with_crossings(weights: csr_matrix, edges: np.ndarray, d: np.ndarray) -> tuple[csr_matrix, np.ndarray]:
    """Weights with new vertices where the distance is zero on `edges`, and the new vertex of each edge."""
    edges, number = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    a, b = edges.T
    t = d[a] / np.where(d[a] == d[b], 1.0, d[a] - d[b])
    new = weights[a].multiply((1.0 - t)[:, None]) + weights[b].multiply(t[:, None])
    return vstack([weights, new], format="csr"), number.ravel() + weights.shape[0]


def _without_unused(weights: csr_matrix, faces: np.ndarray) -> MovingTriangles:
    used, number = np.unique(faces, return_inverse=True)
    return MovingTriangles(weights[used], number.reshape(-1, 3))
