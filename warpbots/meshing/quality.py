"""Quality of tetrahedral meshes."""

import dataclasses
import itertools

import numpy as np

from warpbots.scene import TetMesh

__all__ = ["Quality", "edges", "quality"]

_PAIRS = np.array(list(itertools.combinations(range(4), 2)))


@dataclasses.dataclass(frozen=True)
class Quality:
    """Measures of mesh quality: slender tetrahedra make a solver inaccurate, small tetrahedra make it slow.

    Attributes:
        tets: Number of tetrahedra.
        min_volume: Volume of the smallest tetrahedron [m^3].
        mean_volume: Mean volume of the tetrahedra [m^3].
        min_angle: Smallest angle between two faces of a tetrahedron [degrees]; 70.5 for a regular tetrahedron.
        max_angle: Largest angle between two faces of a tetrahedron [degrees].
        min_edge: Length of the shortest edge [m].
        mean_edge: Mean length of all edges [m].
        max_edge: Length of the longest edge [m].
    """

    tets: int
    min_volume: float
    mean_volume: float
    min_angle: float
    max_angle: float
    min_edge: float
    mean_edge: float
    max_edge: float


def quality(mesh: TetMesh) -> Quality:
    """Measure the quality of `mesh`."""
    angles, lengths = _angles(mesh), edges(mesh.vertices, mesh.tets)
    volumes = mesh.volumes
    numbers = (volumes.min(), volumes.mean(), angles.min(), angles.max(), lengths.min(), lengths.mean(), lengths.max())
    return Quality(len(mesh.tets), *map(float, numbers))


def edges(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Lengths of all edges of tetrahedra [m], shape (n_edges,); shared edges are counted once."""
    pairs = np.unique(np.sort(tets[:, _PAIRS].reshape(-1, 2), axis=1), axis=0)
    return np.linalg.norm(vertices[pairs[:, 1]] - vertices[pairs[:, 0]], axis=1)


def _angles(mesh: TetMesh) -> np.ndarray:
    """Angles between the faces of each tetrahedron [degrees], shape (n_tets, 6)."""
    corners = mesh.vertices[mesh.tets]
    normals = np.empty_like(corners)
    for k in range(4):  # the face across from corner k
        a, b, c = (corners[:, i] for i in range(4) if i != k)
        n = np.cross(b - a, c - a)
        n *= np.sign(np.einsum("ti,ti->t", n, a - corners[:, k]))[:, None]
        normals[:, k] = n / np.linalg.norm(n, axis=1, keepdims=True)
    cosine = np.einsum("tki,tki->tk", normals[:, _PAIRS[:, 0]], normals[:, _PAIRS[:, 1]])
    return np.degrees(np.pi - np.arccos(np.clip(cosine, -1.0, 1.0)))
