"""Shapes: where matter is. Data only; distances to them are in `warpbots.contact.distance`.

All lengths are in metres. In 2D a shape lies in the (x, y) plane with y up; in 3D z is up.
"""

from typing import Any

import numpy as np

from warpbots.scene.record import SceneError, point, record

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "DistanceGrid",
    "HalfSpace",
    "Heightfield",
    "Points",
    "Posed",
    "Shape",
    "Silhouette",
    "Sphere",
    "TriangleMesh",
    "Union",
]


def _set(instance: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _array(value: Any, what: str, ndim: int, dtype: type = np.float64) -> np.ndarray:
    array = np.array(value, dtype=dtype)
    if array.ndim != ndim or array.size == 0:
        raise SceneError(f"{what} must be a non-empty array of {ndim} dimensions, got shape {array.shape}")
    if dtype is np.float64 and not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise SceneError(f"{what} must be finite, got {array[bad]} at index {bad}")
    array.flags.writeable = False
    return array


def _positive(value: float, what: str) -> float:
    value = float(value)
    if not (np.isfinite(value) and value > 0.0):
        raise SceneError(f"{what} must be a positive number, got {value:g}")
    return value


@record
class Box:
    """Axis-aligned box (a rectangle in 2D).

    Attributes:
        lower: Corner with the smallest coordinates [m], shape (dim,).
        upper: Corner with the largest coordinates [m], shape (dim,).
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self):
        _set(self, lower=point(self.lower, "Box.lower"), upper=point(self.upper, "Box.upper"))
        if len(self.lower) != len(self.upper):
            raise SceneError(f"Box: lower {self.lower} and upper {self.upper} must have the same number of coordinates")
        if not all(a < b for a, b in zip(self.lower, self.upper, strict=True)):
            raise SceneError(f"Box: every coordinate of lower {self.lower} must be below upper {self.upper}")

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return np.array(self.lower), np.array(self.upper)


@record
class Sphere:
    """Ball (a disc in 2D).

    Attributes:
        center: Centre [m], shape (dim,).
        radius: Radius [m].
    """

    center: tuple[float, ...]
    radius: float

    def __post_init__(self):
        _set(self, center=point(self.center, "Sphere.center"), radius=_positive(self.radius, "Sphere.radius"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return np.array(self.center) - self.radius, np.array(self.center) + self.radius


@record
class Capsule:
    """All points within `radius` of the segment from `start` to `end`.

    Attributes:
        start: One end of the axis [m], shape (dim,).
        end: Other end of the axis [m], shape (dim,).
        radius: Radius [m].
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    radius: float

    def __post_init__(self):
        _set(self, **_axis(self, "Capsule"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        ends = np.array([self.start, self.end])
        return ends.min(0) - self.radius, ends.max(0) + self.radius


@record
class Cylinder:
    """Solid cylinder with flat ends about the segment from `start` to `end` (an oriented rectangle in 2D).

    Attributes:
        start: Centre of one end [m], shape (dim,).
        end: Centre of the other end [m], shape (dim,).
        radius: Radius [m].
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    radius: float

    def __post_init__(self):
        _set(self, **_axis(self, "Cylinder"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        ends = np.array([self.start, self.end])
        axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        reach = self.radius * np.sqrt(np.maximum(0.0, 1.0 - axis**2))
        return ends.min(0) - reach, ends.max(0) + reach


def _axis(shape: "Capsule | Cylinder", name: str) -> dict:
    start, end = point(shape.start, f"{name}.start"), point(shape.end, f"{name}.end")
    if len(start) != len(end) or start == end:
        raise SceneError(f"{name}: start {start} and end {end} must be two different points of one space")
    return {"start": start, "end": end, "radius": _positive(shape.radius, f"{name}.radius")}


@record
class HalfSpace:
    """Everything behind a plane: the points x with normal . (x - point) <= 0. For floors, walls and regions.

    Attributes:
        point: A point of the plane [m], shape (dim,).
        normal: Direction out of the solid, shape (dim,); normalised on construction.
    """

    point: tuple[float, ...]
    normal: tuple[float, ...]

    def __post_init__(self):
        origin, normal = point(self.point, "HalfSpace.point"), point(self.normal, "HalfSpace.normal")
        length = float(np.linalg.norm(normal))
        if len(origin) != len(normal) or length == 0.0:
            raise SceneError(f"HalfSpace: normal {normal} must be a non-zero vector of the space of point {origin}")
        _set(self, point=origin, normal=normal if abs(length - 1.0) < 1e-12 else tuple(n / length for n in normal))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """A half-space has no bounds: -inf and +inf, each of shape (dim,)."""
        return np.full(len(self.point), -np.inf), np.full(len(self.point), np.inf)


@record
class Heightfield:
    """Terrain: everything below a height that is sampled on a regular grid and interpolated linearly.

    Attributes:
        origin: Horizontal position of the first sample [m], shape (dim - 1,).
        spacing: Distance between samples [m].
        heights: Heights along the up axis [m], shape (n,) in 2D and (n_x, n_y) in 3D.
    """

    origin: tuple[float, ...]
    spacing: float
    heights: np.ndarray

    def __post_init__(self):
        ndim = np.ndim(self.heights)
        if ndim not in (1, 2):
            raise SceneError(f"Heightfield.heights must have 1 (2D) or 2 (3D) dimensions, got {ndim}")
        origin = tuple(float(v) for v in np.atleast_1d(self.origin))
        heights = _array(self.heights, "Heightfield.heights", ndim)
        if len(origin) != ndim or min(heights.shape) < 2:
            raise SceneError(
                f"Heightfield: origin {origin} must have {ndim} coordinates and heights of shape {heights.shape} at "
                f"least two samples per axis"
            )
        _set(self, origin=origin, heights=heights, spacing=_positive(self.spacing, "Heightfield.spacing"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,); the terrain goes on downwards without end."""
        reach = self.spacing * (np.array(self.heights.shape) - 1)
        return np.array([*self.origin, -np.inf]), np.array([*(self.origin + reach), self.heights.max()])


@record
class Silhouette:
    """A 2D shape cut out of an image: the pixels where `mask` is true.

    Attributes:
        mask: Which pixels are inside, shape (rows, columns), first row on top as in an image.
        lower: Position of the lower left corner of the image [m], shape (2,).
        pixel: Edge of a pixel [m].
    """

    mask: np.ndarray
    lower: tuple[float, ...]
    pixel: float

    def __post_init__(self):
        mask = _array(self.mask, "Silhouette.mask", 2, bool)
        if not mask.any():
            raise SceneError(
                f"Silhouette: the image of {mask.shape[1]} x {mask.shape[0]} pixels has no silhouette (no pixel is "
                f"inside); it needs opaque or dark pixels on a transparent or light ground"
            )
        lower = point(self.lower, "Silhouette.lower")
        if len(lower) != 2:
            raise SceneError(f"Silhouette.lower must have two coordinates, got {lower}")
        _set(self, mask=mask, lower=lower, pixel=_positive(self.pixel, "Silhouette.pixel"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the inside pixels [m], each of shape (2,)."""
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
        faces: Vertex indices, counter-clockwise seen from outside, shape (n_faces, 3).

    Raises:
        SceneError: The mesh is empty, indexes vertices it does not have, or is not watertight.
    """

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self):
        vertices = _array(self.vertices, "TriangleMesh.vertices", 2)
        faces = _array(self.faces, "TriangleMesh.faces", 2, np.int64)
        if vertices.shape[1] != 3 or faces.shape[1] != 3:
            raise SceneError(f"TriangleMesh needs (n, 3) vertices and faces, got {vertices.shape} and {faces.shape}")
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise SceneError(
                f"TriangleMesh.faces must index vertices 0 to {len(vertices) - 1}, got {faces.min()} to {faces.max()}"
            )
        faces = _weld(vertices, faces)
        open_edges = _open_edges(faces)
        if len(open_edges):
            raise SceneError(
                f"TriangleMesh is not watertight: {len(open_edges)} open edges (first {open_edges[0][0]}-"
                f"{open_edges[0][1]}); filling it with matter needs a closed surface"
            )
        corners = vertices[faces]
        volume = np.einsum("fi,fi->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        if volume < 0.0:
            faces = faces[:, ::-1].copy()
        faces.flags.writeable = False
        _set(self, vertices=vertices, faces=faces)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (3,)."""
        used = self.vertices[np.unique(self.faces)]
        return used.min(0), used.max(0)

    @property
    def volume(self) -> float:
        """Enclosed volume [m^3] by the divergence theorem."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0)


def _weld(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Faces that index one vertex for all vertices at one position (files often repeat them along seams)."""
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)][faces]


def _open_edges(faces: np.ndarray) -> np.ndarray:
    """Edges that are not shared by exactly as many faces in one direction as in the other, shape (n, 2)."""
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
        positions = _array(self.positions, "Points.positions", 2)
        volumes = _array(self.volumes, "Points.volumes", 1)
        if positions.shape[1] not in (2, 3) or len(volumes) != len(positions):
            raise SceneError(
                f"Points needs positions of shape (n, 2) or (n, 3) and n volumes, got {positions.shape} and "
                f"{volumes.shape}"
            )
        if volumes.min() <= 0.0:
            i = int(volumes.argmin())
            raise SceneError(f"Points.volumes must be positive, got {volumes[i]:g} at index {i}")
        _set(self, positions=positions, volumes=volumes)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        return self.positions.min(0), self.positions.max(0)


@record
class DistanceGrid:
    """A solid given by samples of its signed distance on a regular grid (negative inside).

    Attributes:
        values: Signed distances [m], shape (n_x, n_y) or (n_x, n_y, n_z).
        lower: Position of the first sample [m], shape (dim,).
        spacing: Distance between samples [m].
    """

    values: np.ndarray
    lower: tuple[float, ...]
    spacing: float

    def __post_init__(self):
        ndim = np.ndim(self.values)
        lower = point(self.lower, "DistanceGrid.lower")
        values = _array(self.values, "DistanceGrid.values", ndim)
        if ndim != len(lower) or min(values.shape) < 2:
            raise SceneError(
                f"DistanceGrid: values of shape {values.shape} need one axis of at least two samples for each "
                f"coordinate of lower {lower}"
            )
        _set(self, values=values, lower=lower, spacing=_positive(self.spacing, "DistanceGrid.spacing"))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the sampled box [m], each of shape (dim,)."""
        return np.array(self.lower), np.array(self.lower) + self.spacing * (np.array(self.values.shape) - 1)


@record
class Union:
    """All points of any of `shapes`.

    Attributes:
        shapes: At least one shape, all of one dimension.
    """

    shapes: tuple["Shape", ...]

    def __post_init__(self):
        _set(self, shapes=tuple(self.shapes))
        if not self.shapes:
            raise SceneError("Union needs at least one shape")
        dims = {dimension(s) for s in self.shapes}
        if len(dims) > 1:
            raise SceneError("Union: all shapes must have the same dimension, got both 2D and 3D shapes")

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        lower, upper = zip(*(s.bounds for s in self.shapes), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


@record
class Posed:
    """A shape, rotated and then moved: points x = rotation . x_shape + translation.

    Attributes:
        shape: The shape in its own frame.
        translation: Position of the shape's origin [m], shape (dim,).
        rotation: Rows of the rotation matrix, shape (dim, dim).
    """

    shape: "Shape"
    translation: tuple[float, ...]
    rotation: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        dim = dimension(self.shape)
        translation = point(self.translation, "Posed.translation")
        R = np.asarray(self.rotation, dtype=np.float64)
        if len(translation) != dim or R.shape != (dim, dim):
            raise SceneError(f"Posed: a {dim}D shape needs {dim} translations and a ({dim}, {dim}) rotation")
        if not np.allclose(R @ R.T, np.eye(dim), atol=1e-6) or np.linalg.det(R) < 0.0:
            raise SceneError(f"Posed.rotation must be a rotation matrix (orthogonal, determinant 1), got {R.tolist()}")
        _set(self, translation=translation, rotation=tuple(tuple(float(v) for v in row) for row in R))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m] of the turned bounding box, infinite if the shape has no end; shape (dim,)."""
        lower, upper = self.shape.bounds
        if not np.isfinite(upper - lower).all():
            return np.full(len(lower), -np.inf), np.full(len(lower), np.inf)
        corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), -1).reshape(-1, len(lower))
        moved = corners @ np.array(self.rotation).T + np.array(self.translation)
        return moved.min(0), moved.max(0)


Shape = (
    Box | Sphere | Capsule | Cylinder | HalfSpace | Heightfield | Silhouette | TriangleMesh | Points | DistanceGrid
    | Union | Posed
)  # fmt: skip
"""Any of the shapes of this module."""


def dimension(shape: Shape) -> int:
    """2 or 3: the space that `shape` lives in."""
    return len(shape.bounds[0])
