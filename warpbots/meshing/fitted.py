"""Triangle surfaces of rigid solids: all vertices are on the true surface, and flat faces of a solid stay flat.

In contrast, `closed_surface` preserves the volume of round shapes, so that its vertices are not on the true surface.
"""

import functools
import math

import numpy as np

from warpbots.contact import sampled_surface, signed_distance
from warpbots.meshing.boxes import box_tets
from warpbots.meshing.convex_hulls import with_fewer_vertices
from warpbots.meshing.refinement import refined
from warpbots.meshing.surfaces import Surface, closed_surface
from warpbots.scene import Box, Capsule, Cylinder, DistanceGrid, Posed, Shape, Sphere, TriangleMesh, Union

__all__ = ["fitted_surface", "samples", "spokes"]

_FEWEST = 12  # minimum number of edges around a round shape: flat sides are then within 4 % of its radius
_MANY = 200  # vertices of a mesh above which some may be left out
_OFF, _OFF_PART = 0.02, 0.002  # how far its surface may then be off [edge lengths], [diagonals of its bounding box]


@functools.singledispatch
def fitted_surface(shape: Shape, edge: float) -> Surface:
    """The surface of a solid.

    The corners and edges of a box are exact. A shape known only by samples of its distance is as exact as the samples.

    Args:
        shape: A 3D solid.
        edge: Approximate edge length of the triangles [m]; edges are shorter where the shape itself has shorter edges.

    Raises:
        SceneError: The shape has no surface.
    """
    return refined(*closed_surface(shape, edge), 1.5 * edge)


@fitted_surface.register
def _(shape: Box, edge: float) -> Surface:
    mesh = box_tets(shape, edge)
    used, faces = np.unique(mesh.surface, return_inverse=True)
    return mesh.vertices[used], faces.reshape(mesh.surface.shape)


@fitted_surface.register
def _(shape: Sphere, edge: float) -> Surface:
    vertices, faces = closed_surface(shape, edge)
    out = vertices - np.array(shape.center)
    return np.array(shape.center) + shape.radius * out / np.linalg.norm(out, axis=1, keepdims=True), faces


@fitted_surface.register
def _(shape: Cylinder, edge: float) -> Surface:
    r, length = shape.radius, _length(shape)
    spokes, rings = (max(1, round(s / edge)) for s in (r, length))
    cap, side = np.linspace(0.0, r, spokes + 1), np.linspace(0.0, length, rings + 1)
    profile = [*((s, 0.0) for s in cap), *((r, z) for z in side[1:]), *((s, length) for s in cap[-2::-1])]
    return _revolved(shape, np.array(profile), edge)


@fitted_surface.register
def _(shape: Capsule, edge: float) -> Surface:
    r, length = shape.radius, _length(shape)
    turns, rings = max(_FEWEST // 4, round(math.pi / 2.0 * r / edge)), max(1, round(length / edge))
    angle = np.linspace(0.0, math.pi / 2.0, turns + 1)
    low = np.stack([r * np.sin(angle), -r * np.cos(angle)], axis=1)
    low[0, 0] = 0.0
    side = np.stack([np.full(rings - 1, r), np.linspace(0.0, length, rings + 1)[1:-1]], axis=1)
    high = low[::-1] * [1.0, -1.0] + [0.0, length]
    return _revolved(shape, np.concatenate([low, side, high]), edge)


@fitted_surface.register
def _(shape: TriangleMesh, edge: float) -> Surface:
    """The mesh; a convex mesh of many vertices keeps only those without which its surface would be off by an error.

    The error is a fiftieth of `edge` or a five-hundredth of the diagonal of its bounding box, whichever is smaller.
    """
    if len(shape.vertices) > _MANY:
        diagonal = float(np.linalg.norm(np.ptp(shape.vertices, axis=0)))
        shape = with_fewer_vertices(shape, min(_OFF * edge, _OFF_PART * diagonal))
    return refined(shape.vertices, shape.faces, 1.5 * edge)


@fitted_surface.register
def _(shape: Union, edge: float) -> Surface:
    """The surfaces of all parts, without the faces that lie inside another part."""
    vertices, faces, first = [], [], 0
    for k, part in enumerate(shape.shapes):
        x, corners = fitted_surface(part, edge)
        points = samples(x, corners)
        inside = np.zeros(points.shape[:2], dtype=bool)
        for other in shape.shapes[:k] + shape.shapes[k + 1 :]:
            inside |= signed_distance(other, points.reshape(-1, 3)).reshape(inside.shape) < -1e-3 * edge
        vertices.append(x)
        faces.append(corners[~inside.all(axis=1)] + first)
        first += len(x)
    return np.concatenate(vertices), np.concatenate(faces)


@fitted_surface.register
def _(shape: DistanceGrid, edge: float) -> Surface:
    lower, upper = shape.bounds
    return sampled_surface(shape, lower, upper, min(edge, float((upper - lower).min()) / 4.0))


@fitted_surface.register
def _(shape: Posed, edge: float) -> Surface:
    vertices, faces = fitted_surface(shape.shape, edge)
    return vertices @ np.array(shape.rotation).T + np.array(shape.translation), faces


def samples(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Sample points of faces: their corners, the midpoints of their edges, and their centres [m], shape (m, 7, 3)."""
    corner = vertices[faces]
    middle = (corner + np.roll(corner, -1, axis=1)) / 2.0
    return np.concatenate([corner, middle, corner.mean(axis=1, keepdims=True)], axis=1)


def spokes(axis: np.ndarray, count: int) -> np.ndarray:
    """Unit vectors around a unit axis, at equal angles, shape (count, 3)."""
    first = np.cross(axis, np.eye(3)[np.abs(axis).argmin()])
    first = first / np.linalg.norm(first)
    angle = 2.0 * math.pi * np.arange(count) / count
    return np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * np.cross(axis, first)


def _length(shape: Capsule | Cylinder) -> float:
    return float(np.linalg.norm(np.subtract(shape.end, shape.start)))


def _revolved(shape: Capsule | Cylinder, profile: np.ndarray, edge: float) -> Surface:
    """The surface of revolution of `profile` about the axis of a shape.

    Each row of the profile is a radius and a position along the axis [m]; the first and the last row are the poles.
    """
    sections = max(_FEWEST, round(2.0 * math.pi * shape.radius / edge))
    axis = np.subtract(shape.end, shape.start) / _length(shape)
    around = spokes(axis, sections)
    rings = profile[1:-1, 0, None, None] * around + profile[1:-1, 1, None, None] * axis
    poles = profile[[0, -1], 1, None] * axis
    vertices = np.concatenate([rings.reshape(-1, 3), poles]) + np.array(shape.start)
    here = np.arange(sections)
    there = (here + 1) % sections
    south, north, last = len(vertices) - 2, len(vertices) - 1, (len(profile) - 3) * sections
    faces = [np.stack([np.full(sections, south), there, here], axis=1)]
    for first_of_ring in range(0, last, sections):
        a, b, c, d = (first_of_ring + k for k in (here, there, there + sections, here + sections))
        faces += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    faces.append(np.stack([last + here, last + there, np.full(sections, north)], axis=1))
    return vertices, np.concatenate(faces)
