"""The part of the surface of a shape that is inside a box, as triangles."""

import functools

import numpy as np

from warpbots.contact import sampled_surface, signed_distance, surface_nets
from warpbots.scene import Box, HalfSpace, Heightfield, Posed, Shape, Sheet, TetMesh, TriangleMesh, Union
from warpbots.surfaces.ground_height import ground_height

__all__ = ["both_sides", "box_corners", "slab", "surface"]

_CELLS = 48  # cells along the longest edge of a sampled surface
_SLAB_CELLS = 200  # cells along the longest edge of a slab
_NOTHING = np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)


def box_corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Corners of a box, shape (2^dim, dim)."""
    ends = np.stack([lower, upper])
    return np.array([[ends[k, a] for a, k in enumerate(corner)] for corner in np.ndindex(*(2,) * len(lower))])


@functools.singledispatch
def surface(shape: Shape, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of the surface of a solid that is inside a box; faces are counter-clockwise seen from outside.

    The surface of a shape without a mesh is computed from samples of the signed distance, which rounds small features.

    Args:
        shape: Any 3D shape of `warpbots.scene`.
        lower: Lower corner of the box [m], shape (3,).
        upper: Upper corner of the box [m], shape (3,).

    Returns:
        Vertices [m], shape (n, 3), and faces, shape (m, 3); both empty if the surface does not reach into the box.
    """
    low, high = shape.bounds
    low, high = np.maximum(low, lower), np.minimum(high, upper)
    if (low >= high).any():
        return _NOTHING
    return sampled_surface(shape, lower, upper, float((high - low).max()) / _CELLS)


def both_sides(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A surface that is visible from both sides: all vertices and faces once for each side.

    Args:
        vertices: Vertices, or a value for each of them, shape (n, ...).
        faces: Vertex indices, shape (m, 3).
    """
    return np.concatenate([vertices, vertices]), np.concatenate([faces, len(vertices) + faces[:, ::-1]])


def slab(shape: Shape, lower: np.ndarray, upper: np.ndarray, depth: float) -> tuple[np.ndarray, np.ndarray]:
    """A 2D solid as a slab in a 3D view; the x-z plane is in the middle of the slab.

    Args:
        shape: Any 2D shape of `warpbots.scene`.
        lower: Lower corner of the box [m], shape (2,).
        upper: Upper corner of the box [m], shape (2,).
        depth: Half the thickness of the slab [m].

    Returns:
        Vertices [m], shape (n, 3), and faces, shape (m, 3); both empty if the solid does not reach into the box.
    """
    cell = float((upper - lower).max()) / _SLAB_CELLS
    x, z = (np.arange(a - cell, b + 2.0 * cell, cell) for a, b in zip(lower, upper, strict=True))
    y = np.linspace(-1.5, 1.5, 5) * depth
    flat = np.stack(np.meshgrid(x, z, indexing="ij"), axis=-1)
    distance = signed_distance(shape, flat.reshape(-1, 2)).reshape(flat.shape[:2])
    inside = np.pad(np.ones(np.array(distance.shape) - 2, dtype=bool), 1)
    distance = np.where(inside, distance, np.maximum(distance, 0.5 * cell))[:, None, :]
    side = (np.abs(y) - depth)[None, :, None] * cell / depth
    vertices, faces = surface_nets(np.maximum(distance, side), np.zeros(3), 1.0)
    return np.array([x[0], y[0], z[0]]) + vertices * np.array([cell, y[1] - y[0], cell]), faces


@surface.register
def _(shape: Box, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.maximum(shape.lower, lower), np.minimum(shape.upper, upper)
    if (low >= high).any():
        return _NOTHING
    vertices = box_corners(low, high)
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


@surface.register
def _(shape: HalfSpace, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = np.array(shape.normal)
    center = (lower + upper) / 2.0
    center = center - n * (n @ (center - np.array(shape.point)))
    side = np.cross(n, np.eye(3)[np.abs(n).argmin()])
    side = side / np.linalg.norm(side)
    reach = 2.0 * np.linalg.norm(upper - lower)
    polygon = center + reach * np.array([side, np.cross(n, side), -side, -np.cross(n, side)])
    for a in range(3):
        slack = 1e-9 * reach  # a plane in a face of the box counts as inside
        polygon = _clip(polygon, polygon[:, a] - lower[a] + slack)
        polygon = _clip(polygon, upper[a] - polygon[:, a] + slack)
    if len(polygon) < 3:
        return _NOTHING
    fan = np.arange(1, len(polygon) - 1)
    return polygon, np.stack([np.zeros_like(fan), fan, fan + 1], axis=1)


def _clip(polygon: np.ndarray, height: np.ndarray) -> np.ndarray:
    """The part of a polygon in which a linear function is positive; `height` holds the values at the corners."""
    kept = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if height[i] >= 0.0:
            kept.append(polygon[i])
        if (height[i] >= 0.0) != (height[j] >= 0.0):
            t = height[i] / (height[i] - height[j])
            kept.append(polygon[i] + t * (polygon[j] - polygon[i]))
    return np.array(kept).reshape(-1, 3)


@surface.register
def _(shape: Heightfield, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    step = max(shape.spacing, float((upper - lower)[:2].max()) / 160.0)
    axes = [np.linspace(lower[a], upper[a], int(np.ceil((upper[a] - lower[a]) / step)) + 1) for a in range(2)]
    xy = np.stack(np.meshgrid(*axes, indexing="ij"))
    heights = ground_height(shape, xy.reshape(2, -1).T).reshape(xy.shape[1:])
    vertices = np.concatenate([xy, heights[None]]).reshape(3, -1).T
    index = np.arange(heights.size).reshape(heights.shape)
    a, b, c, d = (q.reshape(-1) for q in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]))
    return vertices, np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


@surface.register
def _(shape: TriangleMesh, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return shape.vertices, shape.faces


@surface.register
def _(shape: TetMesh, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return shape.vertices, shape.surface


@surface.register
def _(shape: Sheet, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return both_sides(shape.vertices, shape.faces)


@surface.register
def _(shape: Union, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [surface(s, lower, upper) for s in shape.shapes]
    first = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    faces = [faces + start for (_, faces), start in zip(parts, first, strict=False)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)


@surface.register
def _(shape: Posed, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rotation, translation = np.array(shape.rotation), np.array(shape.translation)
    local = (box_corners(lower, upper) - translation) @ rotation
    vertices, faces = surface(shape.shape, local.min(axis=0), local.max(axis=0))
    return vertices @ rotation.T + translation, faces
