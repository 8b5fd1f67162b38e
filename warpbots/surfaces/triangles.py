"""Triangles of the whole surface of a shape, and the division of their vertices along creases."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.scene import Shape, Union
from warpbots.solvers.articulated.point_cloud import surface_mesh
from warpbots.surfaces.clipped import surface

if TYPE_CHECKING:
    import trimesh

__all__ = ["creased", "shaded", "triangles_of", "vertex_normals"]

_CREASE = 0.6  # angle between faces from which an edge is visible [rad]


def shaded(vertices: np.ndarray, faces: np.ndarray) -> "trimesh.Trimesh":
    """A mesh in which each vertex on a crease is duplicated.

    It has one copy for each side of the crease, so that normals are smooth up to the crease.

    Args:
        vertices: Vertices [m], shape (n, 3).
        faces: Vertex indices, shape (m, 3).
    """
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.merge_vertices()
    return trimesh.graph.smooth_shade(mesh, angle=_CREASE, facet_minarea=None)


def triangles_of(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, shape (n, 3), and faces, shape (m, 3), of all parts of a shape.

    The surface of a part without a mesh is computed from samples of its signed distance.
    """
    if isinstance(shape, Union):
        parts = [triangles_of(s) for s in shape.shapes]
        first = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
        faces = [faces + start for (_, faces), start in zip(parts, first, strict=False)]
        return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)
    try:
        mesh = surface_mesh(shape)
    except TypeError:  # the shape has no mesh
        return surface(shape, *shape.bounds)
    return np.array(mesh.vertices), np.array(mesh.faces)


def creased(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same division of vertices as in `shaded`, for points that may lie at the same place and later move apart.

    Args:
        vertices: Vertices [m], shape (n, 3).
        faces: Vertex indices, shape (m, 3).

    Returns:
        The vertex that each new vertex is a copy of, shape (k,), and the indices of new vertices of each face, shape
        (m, 3).
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    corner = vertices[faces]
    across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    face = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort(edges.T)
    edges, face = edges[order], face[order]
    shared = (edges[1:] == edges[:-1]).all(axis=1)
    a, b = face[:-1][shared], face[1:][shared]
    flat = np.einsum("ni,ni->n", normal[a], normal[b]) > np.cos(_CREASE)
    graph = coo_matrix((np.ones(flat.sum()), (a[flat], b[flat])), shape=(len(faces), len(faces)))
    side = connected_components(graph, directed=False)[1]
    pairs, number = np.unique(faces.ravel() * len(faces) + np.repeat(side, 3), return_inverse=True)
    return pairs // len(faces), number.reshape(-1, 3)


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Mean normals of the faces around each vertex, weighted by area.

    Args:
        vertices: Vertices [m], shape (n, 3).
        faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).

    Returns:
        Unit vectors, or vectors of length 0 where the faces have no area, shape (n, 3).
    """
    corner = vertices[faces]
    across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])  # by area
    normal = np.stack([np.bincount(faces.ravel(), np.repeat(a, 3), len(vertices)) for a in across.T], axis=1)
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
