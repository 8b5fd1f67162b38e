"""Shapes given by samples: terrain heights, images, triangles, points and signed distances."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.record import SceneError, point, record
from warpbots.scene.shapes.field_checks import assign, finite_array, positive

__all__ = ["DistanceGrid", "Heightfield", "OpenMesh", "Points", "Silhouette", "TriangleMesh"]


class OpenMesh(SceneError):
    """Raised for a triangle mesh that is not watertight and therefore has no inside."""


@record
class Heightfield:
    """Terrain: the space below heights that are sampled on a regular grid and interpolated linearly.

    Attributes:
        origin: Horizontal position of the first sample [m], shape (dim - 1,).
        spacing: Distance between neighbouring samples [m].
        heights: Height of each sample along the vertical axis [m], shape (n,) in 2D and (n_x, n_y) in 3D.
    """

    origin: Sequence[float] | float
    spacing: float
    heights: np.ndarray

    def __post_init__(self):
        ndim = np.ndim(self.heights)
        if ndim not in (1, 2):
            raise SceneError(f"Heightfield.heights must have 1 (2D) or 2 (3D) dimensions, got {ndim}")
        origin = tuple(float(v) for v in np.atleast_1d(self.origin))
        heights = finite_array(self.heights, "Heightfield.heights", ndim)
        if len(origin) != ndim or min(heights.shape) < 2:
            raise SceneError(
                f"Heightfield: origin {origin} must have {ndim} coordinates and heights of shape {heights.shape} at "
                f"least two samples per axis"
            )
        assign(self, origin=origin, heights=heights, spacing=positive(self.spacing, "Heightfield.spacing"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,); the terrain is unbounded downwards."""
        reach = self.spacing * (np.array(self.heights.shape) - 1)
        return np.array([*self.origin, -np.inf]), np.array([*(self.origin + reach), self.heights.max()])


@record
class Silhouette:
    """A 2D shape from an image: the pixels for which `mask` is true.

    Attributes:
        mask: Whether each pixel is inside, shape (rows, columns), bool, with the top row first.
        lower: Position of the lower left corner of the image [m], shape (2,).
        pixel: Edge of a pixel [m].
    """

    mask: np.ndarray
    lower: Sequence[float]
    pixel: float

    def __post_init__(self):
        mask = finite_array(self.mask, "Silhouette.mask", 2, bool)
        if not mask.any():
            raise SceneError(
                f"Silhouette: the image of {mask.shape[1]} x {mask.shape[0]} pixels has no silhouette (no pixel is "
                f"inside); it needs opaque or dark pixels on a transparent or light background"
            )
        lower = point(self.lower, "Silhouette.lower", 2)
        assign(self, mask=mask, lower=lower, pixel=positive(self.pixel, "Silhouette.pixel"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box of all pixels inside [m], each of shape (2,)."""
        rows, columns = np.nonzero(self.mask)
        height = self.mask.shape[0]
        lower = np.array([columns.min(), height - 1 - rows.max()])
        upper = np.array([columns.max() + 1, height - rows.min()])
        return np.array(self.lower) + self.pixel * lower, np.array(self.lower) + self.pixel * upper


@record
class TriangleMesh:
    """A solid bounded by a closed triangle mesh (3D).

    Attributes:
        vertices: Vertex positions [m], shape (n_vertices, 3).
        faces: Vertex indices of each face, counter-clockwise seen from outside, shape (n_faces, 3).

    Raises:
        OpenMesh: The mesh is not watertight.
        SceneError: The mesh is empty, or a face has an index of a vertex that does not exist.
    """

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self):
        vertices = finite_array(self.vertices, "TriangleMesh.vertices", 2)
        faces = finite_array(self.faces, "TriangleMesh.faces", 2, np.int64)
        if vertices.shape[1] != 3 or faces.shape[1] != 3:
            raise SceneError(f"TriangleMesh needs (n, 3) vertices and faces, got {vertices.shape} and {faces.shape}")
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise SceneError(
                f"TriangleMesh.faces must index vertices 0 to {len(vertices) - 1}, got {faces.min()} to {faces.max()}"
            )
        faces = _weld(vertices, faces)
        open_edges = _open_edges(faces)
        if len(open_edges):
            raise OpenMesh(
                f"TriangleMesh is not watertight: {len(open_edges)} open edges (first {open_edges[0][0]}-"
                f"{open_edges[0][1]}); only a closed surface can be filled with matter"
            )
        corners = vertices[faces]
        volume = np.einsum("fi,fi->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        if volume < 0.0:
            faces = faces[:, ::-1].copy()
        faces.flags.writeable = False
        assign(self, vertices=vertices, faces=faces)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (3,)."""
        used = self.vertices[np.unique(self.faces)]
        return used.min(0), used.max(0)

    @property
    def volume(self) -> float:
        """Volume enclosed by the mesh [m^3], computed by the divergence theorem."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0)


def _weld(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Vertex indices of the faces after vertices at the same position are merged, shape (n_faces, 3).

    Files often repeat vertices along seams.
    """
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)][faces]


def _open_edges(faces: np.ndarray) -> np.ndarray:
    """Edges that the faces do not traverse equally often in both directions, shape (n, 2)."""
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    directed = directed[directed[:, 0] != directed[:, 1]]
    edges, inverse = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True)
    balance = np.bincount(inverse.reshape(-1), weights=np.where(directed[:, 0] < directed[:, 1], 1.0, -1.0))
    return edges[balance != 0.0]


@record
class Points:
    """Matter given as particles.

    Attributes:
        positions: Particle positions [m], shape (n, dim).
        volumes: Volume of each particle [m^dim], shape (n,).
    """

    positions: np.ndarray
    volumes: np.ndarray

    def __post_init__(self):
        positions = finite_array(self.positions, "Points.positions", 2)
        volumes = finite_array(self.volumes, "Points.volumes", 1)
        if positions.shape[1] not in (2, 3) or len(volumes) != len(positions):
            raise SceneError(
                f"Points needs positions of shape (n, 2) or (n, 3) and n volumes, got {positions.shape} and "
                f"{volumes.shape}"
            )
        if volumes.min() <= 0.0:
            i = int(volumes.argmin())
            raise SceneError(f"Points.volumes must be positive, got {volumes[i]:g} at index {i}")
        assign(self, positions=positions, volumes=volumes)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return self.positions.min(0), self.positions.max(0)


@record
class DistanceGrid:
    """A solid given by samples of its signed distance on a regular grid.

    Attributes:
        values: Signed distance at each sample, negative inside [m], shape (n_x, n_y) or (n_x, n_y, n_z).
        lower: Position of the first sample [m], shape (dim,).
        spacing: Distance between neighbouring samples [m].
    """

    values: np.ndarray
    lower: Sequence[float]
    spacing: float

    def __post_init__(self):
        ndim = np.ndim(self.values)
        lower = point(self.lower, "DistanceGrid.lower")
        values = finite_array(self.values, "DistanceGrid.values", ndim)
        if ndim != len(lower) or min(values.shape) < 2:
            raise SceneError(
                f"DistanceGrid: values of shape {values.shape} need one axis of at least two samples for each "
                f"coordinate of lower {lower}"
            )
        assign(self, values=values, lower=lower, spacing=positive(self.spacing, "DistanceGrid.spacing"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the sampled box [m], each of shape (dim,)."""
        return np.array(self.lower), np.array(self.lower) + self.spacing * (np.array(self.values.shape) - 1)
