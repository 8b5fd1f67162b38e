"""Sharp edges and corners of obstacles, on the host: they can pierce a face whose corners are outside of the obstacle.

If all nodes are outside of a solid, only a protruding edge or corner of the solid can enter a face. Contacts treat
these edges and corners like edges and points of bodies, except that their motion is prescribed. They lie below the
faces of the solid by the clearance of contacts, so that a body may rest on the faces; edges thus count as rounded. The
clearance depends on the elements of a body, so that there is a set of edges for each size of elements.
"""

import dataclasses
import functools
import itertools

import numpy as np

from warpbots.meshing.fitted import spokes
from warpbots.scene import Box, Cylinder, Posed, Scene, Shape, TriangleMesh, parts_of
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE
from warpbots.solvers.projective.elements.hinges import hinges_of

__all__ = ["ObstacleEdges", "is_angular", "obstacle_edges_of", "sharp_edges"]

_SHARP = np.cos(np.radians(25.0))
"""Cosine of the angle between two faces from which their edge is sharp; round surfaces have none."""
_PLANE = np.cos(np.radians(1.0))
"""The same, above which two faces count as one."""
_FLAT = 1e-3
"""Relative eigenvalue of the sum of n n^T below which the faces at a vertex have a common direction."""
_PIECE = 2.0
"""Length of the pieces into which edges are cut [mean edges of the bodies]."""
_AROUND, _MOST = 12, 64
"""Smallest number of parts of a rim, and largest number of any edge."""


@dataclasses.dataclass(frozen=True)
class ObstacleEdges:
    """Sharp convex edges and corners of all obstacles of a scene.

    Attributes:
        position: Ends of the edges [m], shape (n, 3).
        obstacle: Index of the obstacle of each end, shape (n,).
        edge: Mean edge length of the bodies for which each end is made [m], shape (n,).
        edges: Indices in `position` of both ends of each edge, shape (m, 2).
    """

    position: np.ndarray
    obstacle: np.ndarray
    edge: np.ndarray
    edges: np.ndarray

    @classmethod
    def none(cls) -> "ObstacleEdges":
        """Edges of a scene in which no obstacle has a sharp edge."""
        return cls(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0), np.zeros((0, 2), dtype=int))

    def __len__(self) -> int:
        return len(self.position)


def obstacle_edges_of(scene: Scene, lengths: np.ndarray) -> ObstacleEdges:
    """Sharp edges of the boxes, cylinders and meshes among the obstacles, once for each size of elements.

    Edges are cut into pieces, and lie below the adjacent faces by the clearance of bodies, so that they count as
    rounded.

    Args:
        scene: The scene with the obstacles.
        lengths: Distinct mean edge lengths of bodies [m], shape (n,).
    """
    parts, first = [ObstacleEdges.none()], 0
    for edge in lengths:
        piece, radius = _PIECE * edge, CLEARANCE * edge
        for k, obstacle in enumerate(scene.obstacles):
            for shape in parts_of(obstacle.shape):
                x, inward, edges = sharp_edges(shape, piece)
                x, edges = _cut(x + radius * inward, edges, piece)
                parts.append(ObstacleEdges(x, np.full(len(x), k), np.full(len(x), edge), edges + first))
                first += len(x)
    fields = [f.name for f in dataclasses.fields(ObstacleEdges)]
    return ObstacleEdges(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))


@functools.singledispatch
def sharp_edges(shape: Shape, piece: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sharp convex edges of a solid; solids of other kinds have none.

    Args:
        shape: The solid.
        piece: Length of the parts of a curved edge [m].

    Returns:
        Ends of the edges [m], shape (n, 3); for each end the vector to the point 1 m below all adjacent faces [1],
        shape (n, 3); and the edges as pairs of ends, shape (m, 2).
    """
    return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 2), dtype=int)


@sharp_edges.register
def _(shape: Posed, piece: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, inward, edges = sharp_edges(shape.shape, piece)
    R = np.array(shape.rotation)
    return x @ R.T + np.array(shape.translation), inward @ R.T, edges


@sharp_edges.register
def _(shape: Box, piece: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    at = np.array(list(itertools.product((0, 1), repeat=3)))
    x = np.where(at, shape.upper, shape.lower)
    edges = np.argwhere(np.triu(np.abs(at[:, None] - at).sum(axis=2) == 1))
    return x, 1.0 - 2.0 * at, edges


@sharp_edges.register
def _(shape: Cylinder, piece: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The circular rims of both ends of a cylinder, as polygons with corners on the circles."""
    start, end = np.array(shape.start, float), np.array(shape.end, float)
    axis = (end - start) / np.linalg.norm(end - start)
    count = int(np.clip(np.ceil(2.0 * np.pi * shape.radius / piece), _AROUND, _MOST))
    out = spokes(axis, count)
    here = np.arange(count)
    rim = np.stack([here, np.roll(here, -1)], axis=1)
    x = np.concatenate([start + shape.radius * out, end + shape.radius * out])
    return x, np.concatenate([axis - out, -axis - out]), np.concatenate([rim, rim + count])


@functools.singledispatch
def is_angular(shape: Shape) -> bool:
    """Whether a solid protrudes only at sharp edges, so that no other part of the solid can enter a face."""
    return isinstance(shape, Box)


@is_angular.register
def _(shape: Posed) -> bool:
    return is_angular(shape.shape)


@is_angular.register
def _(shape: TriangleMesh) -> bool:
    _, _, rise, cosine = _folds(shape)
    return not ((rise < 0.0) & (cosine >= _SHARP) & (cosine < _PLANE)).any()


def _folds(shape: TriangleMesh) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Face normals, edges, and for each edge the rise of one face above the other and the cosine of the fold."""
    vertices, faces = shape.vertices, shape.faces
    corner = vertices[faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    hinges, sides = hinges_of(faces)
    one, other = normal[sides].swapaxes(0, 1)
    rise = (one * (vertices[hinges[:, 3]] - vertices[hinges[:, 0]])).sum(axis=1)
    return normal, hinges[:, :2], rise, (one * other).sum(axis=1)


@sharp_edges.register
def _(shape: TriangleMesh, piece: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    vertices, faces = shape.vertices, shape.faces
    normal, edges, rise, cosine = _folds(shape)
    edges = edges[(rise < 0.0) & (cosine < _SHARP)]
    used, ends = np.unique(edges, return_inverse=True)
    sums, planes = np.zeros_like(vertices), np.zeros((len(vertices), 3, 3))
    np.add.at(sums, faces, -normal[:, None])
    np.add.at(planes, faces, (normal[:, :, None] * normal[:, None])[:, None])
    inward = np.linalg.pinv(planes[used], _FLAT, hermitian=True) @ sums[used][..., None]  # least squares of n . d = -1
    return vertices[used], inward[..., 0], ends.reshape(-1, 2)


def _cut(x: np.ndarray, edges: np.ndarray, piece: float) -> tuple[np.ndarray, np.ndarray]:
    """`edges` cut into pieces that are not much longer than `piece` [m]; new ends come after the old ends."""
    length = np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1)
    parts = np.clip(np.round(length / piece), 1, _MOST).astype(int)
    ends, pieces, first = [x], [edges[parts == 1]], len(x)
    for (a, b), n in zip(edges[parts > 1], parts[parts > 1], strict=True):
        ends.append(x[a] + (x[b] - x[a]) * np.arange(1, n)[:, None] / n)
        chain = np.concatenate([[a], np.arange(first, first + n - 1), [b]])
        pieces.append(np.stack([chain[:-1], chain[1:]], axis=1))
        first += n - 1
    return np.concatenate(ends), np.concatenate(pieces)
