"""Rigid bodies in pictures: surfaces that are fixed in the frames of the bodies, and poses of the bodies."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from warpbots.scene import RigidBody, Scene, Shape, Sphere
from warpbots.surfaces.ground_height import floor_height
from warpbots.surfaces.plates import plate
from warpbots.surfaces.triangles import shaded, triangles_of, vertex_normals

__all__ = [
    "Facets",
    "BodyPoses",
    "RigidSurface",
    "facets",
    "outline",
    "poses_at_zero",
    "solids_of",
]

_MARK = 0.02  # radius of the mark of a body without a shape, relative to the size of the scene
_ACROSS = 24  # points along the longest edge of a plate
_THICK = 0.02  # half the thickness of a plate, relative to its longest edge
_SINK = 0.03  # depth below a floor up to which a body counts as standing on it, relative to the size of a motion


@dataclasses.dataclass(frozen=True, eq=False)
class RigidSurface:
    """The surface of a rigid body in the frame of the body; the mesh is empty if the body is not visible.

    A body of a 2D scene is a thin plate in the plane z = 0.

    Attributes:
        name: Name of the body.
        color: Red, green and blue in [0, 1].
        shape: The shape that is drawn; None if the body is not visible.
        vertices: Vertices [m], shape (n, 3); a vertex on a sharp edge of the body occurs once for each side of the
            edge.
        normals: Outward unit normals at the vertices, shape (n, 3).
        faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).
        extremes: Points of the body that must be in view [m], at least one point, shape (k, 3).
    """

    name: str
    color: tuple[float, float, float]
    shape: Shape | None
    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray
    extremes: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class BodyPoses:
    """Poses of rigid bodies in the order of `Scene.rigid`, at one moment, or at several moments along a leading axis.

    Attributes:
        position: Origins of the body frames [m], shape (..., n_bodies, 3).
        rotation: Matrices with the axes of the body frames as columns, shape (..., n_bodies, 3, 3).
    """

    position: np.ndarray
    rotation: np.ndarray

    def __getitem__(self, moments: object) -> "BodyPoses":
        return BodyPoses(self.position[moments], self.rotation[moments])


@dataclasses.dataclass(frozen=True, eq=False)
class Facets:
    """Triangles in the world frame, with normals and colours, which are interpolated between the corners.

    Attributes:
        corner: Corners [m], counter-clockwise seen from outside, shape (m, 3, 3).
        normal: Unit normals at the corners, shape (m, 3, 3).
        color: Red, green and blue at the corners in [0, 1], shape (m, 3, 3).
    """

    corner: np.ndarray
    normal: np.ndarray
    color: np.ndarray

    @classmethod
    def none(cls) -> "Facets":
        """No triangles."""
        return cls(*np.zeros((3, 0, 3, 3)))

    @classmethod
    def smooth(cls, vertices: np.ndarray, faces: np.ndarray, color: np.ndarray) -> "Facets":
        """Triangles with the mean normals of the faces around each vertex.

        Args:
            vertices: Vertices [m], shape (n, 3); a vertex on a crease occurs once for each side of the crease.
            faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).
            color: Red, green and blue of the vertices in [0, 1], shape (n, 3).
        """
        return cls(vertices[faces], vertex_normals(vertices, faces)[faces], color[faces])

    @classmethod
    def joined(cls, parts: Sequence["Facets"]) -> "Facets":
        """All triangles of `parts`."""
        parts = [cls.none(), *parts]
        return cls(*(np.concatenate([getattr(part, f) for part in parts]) for f in ("corner", "normal", "color")))

    def at(self, face: np.ndarray, place: np.ndarray, corner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normals and colours at points of triangles, interpolated between the corners.

        Args:
            face: Index of the triangle of each point, shape (n,).
            place: Coordinates of the points in the plane of a picture, shape (n, 2).
            corner: Coordinates of the corners of all triangles in this plane, shape (m, 3, 2).

        Returns:
            Normals of about unit length, and red, green and blue in [0, 1], each of shape (n, 3).
        """
        used = np.zeros(len(corner), dtype=bool)
        used[face] = True
        face = (np.cumsum(used) - 1)[face]
        values = np.concatenate([self.normal[used], self.color[used]], axis=2)
        origin, u, v = corner[used, 0], *np.moveaxis(corner[used, 1:] - corner[used, :1], 1, 0)
        du, dv = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
        area = (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])[:, None]
        right = (v[:, 1:] * du - u[:, 1:] * dv) / area  # changes of the values along the two axes of the plane
        up = (u[:, :1] * dv - v[:, :1] * du) / area
        terms = np.stack([values[:, 0] - right * origin[:, :1] - up * origin[:, 1:], right, up], axis=1)
        weights = np.stack([np.ones(len(face)), *place.T], axis=1)
        columns = 3 * face[:, None] + np.arange(3)
        first = np.arange(0, columns.size + 1, 3)
        mean = csr_matrix((weights.ravel(), columns.ravel(), first), shape=(len(face), 3 * len(terms)))
        found = mean @ terms.reshape(-1, 6)
        return found[:, :3], found[:, 3:]


def solids_of(scene: Scene) -> tuple[RigidSurface, ...]:
    """The surfaces of all rigid bodies of `scene`; bodies without a shape are small balls at their centres of mass."""
    bodies = scene.rigid
    colors = [color for b, color in zip(scene.bodies, scene.colors, strict=True) if isinstance(b, RigidBody)]
    places = [np.array(b.position) for b in bodies] + [
        np.array(j.position) for j in scene.joints if j.position is not None
    ]
    boxes = [x for b in bodies for x in b.bounds if np.isfinite(x).all()]
    size = float(np.ptp([*places, *boxes], axis=0).max()) if bodies else 0.0
    mark = _MARK * size or _MARK
    return tuple(_solid(b, color, mark, scene.dim) for b, color in zip(bodies, colors, strict=True))


def poses_at_zero(scene: Scene) -> BodyPoses:
    """Poses of the rigid bodies of `scene` with all joints at zero."""
    position = np.array([b.position for b in scene.rigid]).reshape(-1, 3)
    return BodyPoses(position, np.array([b.rotation for b in scene.rigid]).reshape(-1, 3, 3))


def facets(solids: Sequence[RigidSurface], poses: BodyPoses) -> Facets:
    """All faces of `solids` at one moment."""
    parts = []
    for solid, x, R in zip(solids, poses.position, poses.rotation, strict=True):
        color = np.broadcast_to(np.array(solid.color), (len(solid.faces), 3, 3))
        parts.append(Facets((solid.vertices @ R.T + x)[solid.faces], (solid.normals @ R.T)[solid.faces], color))
    return Facets.joined(parts)


def outline(scene: Scene, solids: Sequence[RigidSurface], poses: BodyPoses) -> np.ndarray:
    """Points of rigid bodies that the view must contain [m], shape (n, dim).

    `poses` holds the poses at one moment or at several moments. Bodies in contact sink into a floor a little. Points
    slightly below the floor are moved onto the floor, so that the view ends there.
    """
    points = [np.zeros((0, scene.dim))]
    for k, solid in enumerate(solids):
        R, x = poses.rotation[..., k, :, :], poses.position[..., k, None, :]
        points.append((solid.extremes @ np.swapaxes(R, -1, -2) + x).reshape(-1, 3)[:, : scene.dim])
    found, floor = np.concatenate(points), floor_height(scene)
    if floor is not None and len(found):
        z = found[:, -1]
        sunk = (z < floor) & (z > floor - _SINK * np.ptp(found, axis=0).max())
        z[sunk] = floor
    return found


def _solid(body: RigidBody, color: tuple[float, float, float], mark: float, dim: int) -> RigidSurface:
    import trimesh

    shape = body.shape
    if shape is None and body.inertia is not None:
        shape = Sphere(body.inertia.center[:dim], mark)
    if shape is None or not np.isfinite(shape.bounds).all():
        none = np.zeros((0, 3))
        return RigidSurface(body.name, color, None, none, none, none.astype(np.int64), np.zeros((1, 3)))
    mesh = shaded(*(_plate(shape) if dim == 2 else triangles_of(shape)))
    vertices, toward = np.array(mesh.vertices), trimesh.creation.icosphere(subdivisions=1).vertices
    extremes = vertices[np.unique((vertices @ toward.T).argmax(axis=0))]
    normals, faces = np.array(mesh.vertex_normals), np.array(mesh.faces)
    return RigidSurface(body.name, color, shape, vertices, normals, faces, extremes)


def _plate(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m], shape (n, 3), and faces, shape (m, 3), of a 2D shape as a plate, whose front faces +z."""
    size = float(np.subtract(*shape.bounds[::-1]).max())
    points, side, faces = plate(shape, size / _ACROSS)
    return np.column_stack([np.tile(points, (2, 1)), -_THICK * size * side]), faces
