"""Solids that consist of tetrahedra."""

import functools

import numpy as np

from warpbots.scene.field_types import checked
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, finite_array, refuse_bad_indices, refuse_unused

__all__ = ["TetMesh"]

_FLAT = 1e-9
"""Volume of a tetrahedron over the cube of its longest edge below which it counts as flat."""

_FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
"""Corners of the faces of a tetrahedron of positive volume, counter-clockwise seen from outside."""


@record
class TetMesh:
    """A solid that consists of tetrahedra (3D); finite-element solvers use the tetrahedra unchanged.

    Attributes:
        vertices: Vertex positions [m], shape (n_vertices, 3).
        tets: Vertex indices of each tetrahedron, shape (n_tets, 4); seen from the first vertex, the other three
            vertices are in clockwise order, so that volumes are positive.

    Raises:
        SceneError: An index or a vertex is invalid, a tetrahedron is inverted or flat, a face belongs to more than two
            tetrahedra, or two tetrahedra lie on the same side of a common face.
    """

    vertices: np.ndarray
    tets: np.ndarray

    def __post_init__(self):
        vertices, tets = _arrays(self.vertices, self.tets)
        volumes = _volumes(vertices, tets)
        flat = _flat(vertices, tets, volumes)
        _refuse_volumes(vertices, tets, volumes, (volumes < 0.0) & ~flat, flat)
        refuse_unused(vertices, tets, "TetMesh", "tetrahedron")
        for array in (tets, volumes):
            array.flags.writeable = False
        assign(self, vertices=vertices, tets=tets, volumes=volumes)
        self.surface  # noqa: B018 (raises if faces are inconsistent)

    @classmethod
    @checked
    def oriented(cls, vertices: np.ndarray, tets: np.ndarray) -> "TetMesh":
        """Make a mesh from tetrahedra whose vertices are in any order, by reorienting inverted tetrahedra.

        Args:
            vertices: Vertex positions [m], shape (n_vertices, 3).
            tets: Vertex indices of each tetrahedron in any order, shape (n_tets, 4).

        Raises:
            SceneError: The mesh is invalid for a reason other than inverted tetrahedra.
        """
        vertices, tets = _arrays(vertices, tets)
        inverted = _volumes(vertices, tets) < 0.0
        tets[inverted] = tets[inverted][:, [1, 0, 2, 3]]
        return cls(vertices, tets)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (3,)."""
        return self.vertices.min(0), self.vertices.max(0)

    @functools.cached_property
    def volumes(self) -> np.ndarray:
        """Volume of each tetrahedron [m^3], shape (n_tets,)."""
        return _volumes(self.vertices, self.tets)

    @property
    def volume(self) -> float:
        """Total volume of all tetrahedra [m^3]."""
        return float(self.volumes.sum())

    @functools.cached_property
    def surface(self) -> np.ndarray:
        """Vertex indices of the faces that belong to only one tetrahedron, shape (n_faces, 3).

        The vertices are in counter-clockwise order seen from outside.
        """
        faces = self.tets[:, _FACES].reshape(-1, 3)
        _, first, inverse, count = np.unique(
            np.sort(faces, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        if count.max() > 2:
            face = faces[first[count.argmax()]]
            raise SceneError(
                f"TetMesh: the face of the vertices {np.sort(face).tolist()} belongs to {count.max()} tetrahedra; a "
                f"face has one on each side, remove the others"
            )
        turn = np.bincount(inverse.reshape(-1), weights=_parity(faces), minlength=len(count))
        if np.any(turn[count == 2]):
            face = int(np.flatnonzero((count == 2) & (turn != 0.0))[0])
            a, b = (np.flatnonzero(inverse.reshape(-1) == face) // 4).tolist()
            raise SceneError(
                f"TetMesh: the tetrahedra {a} and {b} are on the same side of the face that they share, so that they "
                f"overlap; remove one of them"
            )
        surface = faces[(count == 1)[inverse.reshape(-1)]]
        surface.flags.writeable = False
        return surface


def _arrays(vertices: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert vertices and tetrahedra to arrays and check their indices; the array of tetrahedra is writable."""
    vertices = finite_array(vertices, "TetMesh.vertices", 2)
    tets = finite_array(tets, "TetMesh.tets", 2, np.int64).copy()
    if vertices.shape[1] != 3 or tets.shape[1] != 4:
        raise SceneError(f"TetMesh needs (n, 3) vertices and (m, 4) tets, got {vertices.shape} and {tets.shape}")
    refuse_bad_indices(tets, len(vertices), "TetMesh", "tets")
    return vertices, tets


def _volumes(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    a, b, c, d = (vertices[tets[:, k]] for k in range(4))
    return np.einsum("ti,ti->t", np.cross(b - a, c - a), d - a) / 6.0


def _flat(vertices: np.ndarray, tets: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    corners = vertices[tets]
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=-1).max(axis=(1, 2))
    return np.abs(volumes) <= _FLAT * longest**3


def _refuse_volumes(
    vertices: np.ndarray, tets: np.ndarray, volumes: np.ndarray, inverted: np.ndarray, flat: np.ndarray
) -> None:
    """Raise an error if tetrahedra are inverted or flat; the message names the first inverted or flat tetrahedron."""
    if not (inverted.any() or flat.any()):
        return
    first = int(np.flatnonzero(inverted | flat)[0])
    remedies = []
    if inverted.any():
        remedies.append("TetMesh.oriented(vertices, tets) swaps two vertices of inverted ones")
    if flat.any():
        remedies.append("mesh the solid again or remove flat ones")
    raise SceneError(
        f"TetMesh: of {len(tets)} tetrahedra {inverted.sum()} are inverted and {flat.sum()} are flat; the first is "
        f"{first} with the vertices {tets[first].tolist()} at {vertices[tets[first]].round(6).tolist()} m and a volume "
        f"of {volumes[first]:g} m^3; {' and '.join(remedies)}"
    )


def _parity(faces: np.ndarray) -> np.ndarray:
    """For each face, 1 if its indices are an even permutation of the sorted indices, and -1 if odd, shape (n,)."""
    a, b, c = faces.T
    return np.where((a > b) ^ (b > c) ^ (a > c), -1.0, 1.0)
