"""Closed triangle surfaces of shapes, with the edge length of the tetrahedra that will fill the surfaces.

Round shapes become polyhedra of the same volume, whose faces cross the true surface.
"""

import functools
import math

import numpy as np

from warpbots.contact import sampled_surface
from warpbots.meshing.self_intersection import refuse_crossings
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    Posed,
    SceneError,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)

__all__ = ["closed_surface"]

Surface = tuple[np.ndarray, np.ndarray]
"""Vertices [m], shape (n, 3), and faces, counter-clockwise seen from outside, shape (m, 3)."""

_FEWEST = 8  # minimum number of edges around a round shape


@functools.singledispatch
def closed_surface(shape: Shape, edge: float) -> Surface:
    """The closed triangle surface of a solid.

    Args:
        shape: A 3D solid.
        edge: Approximate edge length of round surfaces [m].

    Raises:
        SceneError: The shape has no surface, or its surface intersects itself.
    """
    raise SceneError(
        f"a {type(shape).__name__} has no surface to fill with tetrahedra; use a closed TriangleMesh around it"
    )


@closed_surface.register
def _(shape: Box, edge: float) -> Surface:
    import trimesh

    return _arrays(trimesh.creation.box(bounds=np.array(shape.bounds)))


@closed_surface.register
def _(shape: Sphere, edge: float) -> Surface:
    corners, faces = _arrays(_icosahedron())
    parts = max(2, round(0.9 * shape.radius / edge))
    vertices, faces = _divided(corners, faces, parts)
    vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    grown = np.cbrt(4.0 / 3.0 * math.pi / _volume(vertices, faces))
    return shape.radius * grown * vertices + np.array(shape.center), faces


@closed_surface.register
def _(shape: Cylinder, edge: float) -> Surface:
    import trimesh

    tube = trimesh.creation.cylinder(shape.radius, height=_length(shape), sections=_around(shape.radius, edge))
    return _along(shape, *_arrays(tube), math.pi * shape.radius**2 * _length(shape))


@closed_surface.register
def _(shape: Capsule, edge: float) -> Surface:
    import trimesh

    r, sections = shape.radius, _around(shape.radius, edge)
    vertices, faces = _arrays(trimesh.creation.capsule(_length(shape), r, count=(sections, sections)))
    vertices = vertices - [0.0, 0.0, (vertices[:, 2].min() + vertices[:, 2].max()) / 2.0]
    return _along(shape, vertices, faces, math.pi * r**2 * (_length(shape) + 4.0 / 3.0 * r))


@closed_surface.register
def _(shape: TriangleMesh, edge: float) -> Surface:
    refuse_crossings(shape)
    return shape.vertices, shape.faces


@closed_surface.register
def _(shape: TetMesh, edge: float) -> Surface:
    return shape.vertices, shape.surface


@closed_surface.register
def _(shape: DistanceGrid, edge: float) -> Surface:
    vertices, faces = sampled_surface(shape, *shape.bounds, edge / 3.0)  # with the edge of a cell it would shrink
    if not len(faces):
        raise SceneError(
            f"DistanceGrid: no cell of {edge:g} m lies inside its surface; use a smaller cell_size, and check that its "
            f"values are negative inside"
        )
    return vertices, faces


@closed_surface.register
def _(shape: Truss, edge: float) -> Surface:
    ends = zip(shape.joints[shape.bars], shape.radius, strict=True)
    return closed_surface(Union(tuple(Capsule(tuple(a), tuple(b), float(r)) for (a, b), r in ends)), edge)


@closed_surface.register
def _(shape: Union, edge: float) -> Surface:
    """The surfaces of all parts of the union; the surfaces may intersect."""
    parts = [closed_surface(s, edge) for s in shape.shapes]
    first = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    faces = [faces + start for (_, faces), start in zip(parts, first, strict=False)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)


@closed_surface.register
def _(shape: Posed, edge: float) -> Surface:
    vertices, faces = closed_surface(shape.shape, edge)
    return vertices @ np.array(shape.rotation).T + np.array(shape.translation), faces


def _arrays(mesh: object) -> Surface:
    return np.array(mesh.vertices, dtype=np.float64), np.array(mesh.faces, dtype=np.int64)


def _icosahedron() -> object:
    import trimesh

    return trimesh.creation.icosahedron()


def _around(radius: float, edge: float) -> int:
    return max(_FEWEST, round(2.0 * math.pi * radius / edge))


def _length(shape: Capsule | Cylinder) -> float:
    return float(np.linalg.norm(np.subtract(shape.end, shape.start)))


def _along(shape: Capsule | Cylinder, vertices: np.ndarray, faces: np.ndarray, volume: float) -> Surface:
    """A surface around the z axis, scaled radially to the given volume [m^3], then moved to the axis of `shape`."""
    import trimesh

    wide = vertices * [*2 * [math.sqrt(volume / _volume(vertices, faces))], 1.0]
    axis = np.subtract(shape.end, shape.start) / _length(shape)
    turn = trimesh.geometry.align_vectors((0.0, 0.0, 1.0), axis)[:3, :3]
    return wide @ turn.T + np.add(shape.start, shape.end) / 2.0, faces


def _volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0)


def _divided(vertices: np.ndarray, faces: np.ndarray, parts: int) -> Surface:
    """A surface with each face divided into `parts`^2 similar faces."""
    i, j = np.array([(i, j) for i in range(parts + 1) for j in range(parts + 1 - i)]).T
    number = np.full((parts + 1, parts + 1), -1)
    number[i, j] = np.arange(len(i))
    weights = np.stack([parts - i - j, i, j], axis=1)
    points = np.einsum("pk,fki->fpi", weights / parts, vertices[faces]).reshape(-1, 3)
    up = [(number[a, b], number[a + 1, b], number[a, b + 1]) for a, b in zip(i, j, strict=True) if a + b < parts]
    down = [
        (number[a + 1, b], number[a + 1, b + 1], number[a, b + 1])
        for a, b in zip(i, j, strict=True)
        if a + b < parts - 1
    ]
    cut = (np.array(up + down)[None] + len(i) * np.arange(len(faces))[:, None, None]).reshape(-1, 3)
    _, first, inverse = np.unique(points.round(9), axis=0, return_index=True, return_inverse=True)
    return points[first], inverse.reshape(-1)[cut]
