"""Counts the tetrahedra across the thin parts of a mesh, including walls of cavities.

From every face of the surface a ray runs inwards, along the normal of the face, to the point where the ray leaves the
mesh; the length of the ray is the thickness of the mesh at the face. A tetrahedron has a size h along the ray and a
size l across the ray; both follow from the tensor

    G = 2/6 sum e e^T

summed over the six edges e of the tetrahedron. For a tetrahedron at the corner of a cube, the diagonal of G contains
the squares of the cube's edges. With the unit vector d along the ray, h^2 = d . G d, and l^2 is the largest eigenvalue
of G restricted to the plane perpendicular to d. h^2 and l^2 are averaged along the ray.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Across", "elements_across"]

_EDGES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
_OPPOSITE = np.array([(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)])
"""For each corner of a tetrahedron, the corners of the opposite face."""


class Across(NamedTuple):
    """Thickness of a mesh, and sizes of its tetrahedra, along the ray that starts at each face of the surface.

    Attributes:
        faces: Vertices of each face of the surface, shape (n, 3).
        thickness: Distance from each face to the opposite surface [m], shape (n,); infinite if the ray was abandoned.
        along: Mean of h^2, the squared size along the ray, over all tetrahedra on the ray of each face [m^2], shape
            (n,).
        aside: Mean of l^2, the squared size across the ray, over all tetrahedra on the ray of each face [m^2], shape
            (n,).
        end: Vertices of the face at which the ray of each face ends, shape (n, 3); -1 if the ray was abandoned.
    """

    faces: np.ndarray
    thickness: np.ndarray
    along: np.ndarray
    aside: np.ndarray
    end: np.ndarray


def elements_across(position: np.ndarray, tets: np.ndarray, most: int = 24) -> Across:
    """Thickness and sizes of tetrahedra behind each face of the surface of a mesh.

    Args:
        position: Vertices [m], shape (n_vertices, 3).
        tets: Corners of the tetrahedra, shape (n_tets, 4).
        most: Largest number of tetrahedra on a ray; longer rays are abandoned.
    """
    neighbor = _neighbors(tets, len(position))
    tet, corner = np.nonzero(neighbor < 0)  # the faces of the surface, opposite to a corner
    faces = tets[tet[:, None], _OPPOSITE[corner]]
    x = position[faces].mean(axis=1)
    normal = np.cross(position[faces[:, 1]] - position[faces[:, 0]], position[faces[:, 2]] - position[faces[:, 0]])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    inward = np.einsum("nd,nd->n", position[tets[tet, corner]] - x, normal)
    d = np.sign(inward)[:, None] * normal
    count = len(faces)
    thickness, along, aside = np.full(count, np.inf), np.zeros(count), np.zeros(count)
    end = np.full((count, 3), -1)
    way = np.zeros(count)
    ray, inside, entered = np.arange(count), tet, corner
    for _ in range(most):
        if not len(ray):
            break
        step, leave = _crossing(position[tets[inside]], x[ray] + way[ray, None] * d[ray], d[ray], entered)
        h, l = _sizes(position[tets[inside]], d[ray])
        way[ray] += step
        along[ray] += step * h
        aside[ray] += step * l
        beyond = neighbor[inside, leave]
        out = beyond < 0
        thickness[ray[out]] = way[ray[out]]
        end[ray[out]] = tets[inside[out][:, None], _OPPOSITE[leave[out]]]
        ray, inside, left = ray[~out], beyond[~out], inside[~out]
        entered = (neighbor[inside] == left[:, None]).argmax(axis=1)
    total = np.maximum(way, np.finfo(float).tiny)
    return Across(faces, thickness, along / total, aside / total, end)


def _neighbors(tets: np.ndarray, vertices: int) -> np.ndarray:
    """Neighbour of each tetrahedron across the face opposite to each corner, -1 for none, shape (n_tets, 4)."""
    corners = np.sort(tets[:, _OPPOSITE].reshape(-1, 3), axis=1).astype(np.int64)
    key = (corners[:, 0] * vertices + corners[:, 1]) * vertices + corners[:, 2]
    order = np.argsort(key, kind="stable")
    twin = np.flatnonzero(key[order][1:] == key[order][:-1])
    beyond = np.full(len(key), -1)
    beyond[order[twin]], beyond[order[twin + 1]] = order[twin + 1] // 4, order[twin] // 4
    return beyond.reshape(-1, 4)


def _crossing(corners: np.ndarray, x: np.ndarray, d: np.ndarray, entered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance from `x` along `d` to the face by which each ray leaves its tetrahedron, and the opposite corner."""
    slopes = np.linalg.inv((corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1))  # of the last three coordinates
    last = np.einsum("nij,nj->ni", slopes, x - corners[:, 0])
    change = np.einsum("nij,nj->ni", slopes, d)
    share = np.concatenate([1.0 - last.sum(axis=1, keepdims=True), last], axis=1)
    change = np.concatenate([-change.sum(axis=1, keepdims=True), change], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(change < 0.0, np.maximum(-share / change, 0.0), np.inf)
    step[np.arange(len(step)), entered] = np.inf
    leave = step.argmin(axis=1)
    return step[np.arange(len(step)), leave], leave


def _sizes(corners: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared sizes h^2 along d and l^2 across d of tetrahedra [m^2]."""
    edges = corners[:, _EDGES[:, 1]] - corners[:, _EDGES[:, 0]]
    normal = np.einsum("nki,ni->nk", edges, d)
    flat = edges - normal[:, :, None] * d[:, None]
    across = np.linalg.eigvalsh(np.einsum("nki,nkj->nij", flat, flat) / 3.0)[:, -1]
    return (normal**2).sum(axis=1) / 3.0, across
