"""Solids for static open surfaces, such as a quad for the ground, a terrain or a tray without walls.

If all of a surface is visible from one side, the space behind it is solid down to a plane. If a surface bounds a solid
except for small holes, the holes are closed. Every other surface gets a thickness.
"""

from collections.abc import Iterator

import numpy as np

from warpbots.scene import SceneError, Shape, Sheet, TriangleMesh
from warpbots.usd.geometry.gprim_reader import box

__all__ = ["solid_behind"]

_DEPTH = 0.1
"""Depth of the solid behind a surface divided by the shorter edge of the surface."""

_THICK = 1.0 / 24.0
"""Thickness given to a surface that is visible from all sides, divided by its size: two sample spacings of a solver."""

_HOLES = 0.1
"""Largest area of the holes of a solid divided by the area of its surface."""

_STEEP = 0.05
"""A face is steep if its projected area is below this fraction of its area.

Steep faces may make up the same fraction of the area of a surface that counts as visible from one side.
"""

_FLAT = 1e-6
"""Largest height of a flat surface divided by its size."""


def solid_behind(vertices: np.ndarray, faces: np.ndarray) -> tuple[Shape, str]:
    """A solid for an open surface, and a text for the user that says how the solid was made.

    A surface that faces downwards is taken as facing upwards: it is a floor that was drawn from below.

    Args:
        vertices: Points of the surface [m], shape (n, 3).
        faces: Indices of points, counter-clockwise seen from the front, shape (m, 3).

    Raises:
        SceneError: The surface has no area.
    """
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    faces = first[inverse.reshape(-1)][faces]
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2.0
    area, size = np.linalg.norm(normals, axis=1), float(np.ptp(corners.reshape(-1, 3), axis=0).max())
    solid = area > 1e-9 * size**2 / len(faces)
    if not solid.any():
        raise SceneError("its triangles have no area")
    faces, normals, area = _alike(faces[solid], normals[solid], area[solid])
    for out in _fronts(normals):
        facing = normals @ out
        if facing.min() >= -_FLAT * area.max() and area[facing < _STEEP * area].sum() <= _STEEP * area.sum():
            shape, depth = _swept(vertices, faces[:, ::-1] if _down(out) else faces, -out if _down(out) else out)
            side = ", which faces downwards and is taken as facing upwards" if _down(out) else ""
            return shape, f"an open surface{side}; the space up to {depth:.3g} m behind it is solid"
    closed, caps = _closed(vertices, faces)
    if closed is not None and caps <= _HOLES * area.sum():
        return closed, "an open surface, whose holes are closed"
    thickness = _THICK * size
    loose = np.arange(3 * len(faces)).reshape(-1, 3)  # without shared edges, any number of faces may meet
    sheet = Sheet(vertices[faces].reshape(-1, 3), loose, thickness)
    return sheet, f"an open surface that is visible from all sides; it gets a thickness of {thickness:.3g} m"


def _alike(faces: np.ndarray, normals: np.ndarray, area: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arguments, with all faces of a flat surface turned to the orientation that most of the area has."""
    along = normals @ (normals[np.argmax(area)] / area.max())
    if (np.abs(along) < (1.0 - _FLAT) * area).any():
        return faces, normals, area
    back = along * along.sum() < 0.0
    return np.where(back[:, None], faces[:, ::-1], faces), np.where(back[:, None], -normals, normals), area


def _fronts(normals: np.ndarray) -> Iterator[np.ndarray]:
    """Candidate viewing directions: the normal of a flat surface, else the vertical, the mean normal and the axes."""
    mean = normals.sum(axis=0)
    length = float(np.linalg.norm(mean))
    if length >= (1.0 - _FLAT) * np.linalg.norm(normals, axis=1).sum():
        yield mean / length
        return
    yield np.array([0.0, 0.0, 1.0])
    if length > 0.0:
        yield mean / length
    yield from (sign * axis for sign in (1.0, -1.0) for axis in np.eye(3))


def _down(out: np.ndarray) -> bool:
    """Whether a direction is within 60 degrees of straight down."""
    return bool(out[2] < -0.5)


def _swept(vertices: np.ndarray, faces: np.ndarray, out: np.ndarray) -> tuple[Shape, float]:
    """The solid between a surface that faces the direction `out` and a plane behind it, and its least depth [m]."""
    used = np.unique(faces)
    across = _across(out)
    flat, height = vertices[used] @ across.T, vertices[used] @ out
    middle, turn, half = _rectangle(flat)
    depth = 2.0 * _DEPTH * float(half.min())
    size = 2.0 * float(half.max())
    if np.ptp(height) <= _FLAT * size and _area(vertices[faces]) >= (1.0 - 1e-5) * 4.0 * half.prod():
        matrix = np.eye(4)
        matrix[:3, :2] = across.T @ turn * half
        matrix[:3, 2] = 0.5 * depth * out
        matrix[:3, 3] = across.T @ middle + (height.mean() - 0.5 * depth) * out
        return box(matrix, 3), depth
    low = vertices + np.outer(float(height.min()) - depth - vertices @ out, out)
    n = len(vertices)
    rim = _rim(faces)
    a, b = rim[:, 0], rim[:, 1]
    sides = np.concatenate([np.stack([b, a, a + n], axis=1), np.stack([b, a + n, b + n], axis=1)])
    return TriangleMesh(np.concatenate([vertices, low]), np.concatenate([faces, faces[:, ::-1] + n, sides])), depth


def _across(out: np.ndarray) -> np.ndarray:
    """Two unit vectors that form a right-handed frame with `out`, along coordinate axes if possible, shape (2, 3)."""
    x = np.eye(3)[np.argmin(np.abs(out))]
    x = x - np.dot(x, out) * out
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(out, x)])


def _rectangle(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre, axes (as columns) and half edges of the smallest rectangle that contains points of the plane.

    Raises:
        SceneError: The points lie on a line.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = points[ConvexHull(points).vertices]
    except QhullError:
        raise SceneError("its points lie on a line") from None
    edges = np.roll(hull, -1, axis=0) - hull
    angles = np.concatenate([[0.0], np.arctan2(edges[:, 1], edges[:, 0])])
    turns = np.stack([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    turned = np.einsum("ni,ijk->knj", hull, turns)
    half = np.ptp(turned, axis=1) / 2.0
    best = int(np.argmin(half.prod(axis=1) * (1.0 + 1e-9 * (np.arange(len(half)) > 0))))
    turn = turns[..., best]
    return turn @ (turned[best].min(axis=0) + half[best]), turn, half[best]


def _area(corners: np.ndarray) -> float:
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float(np.linalg.norm(normals, axis=1).sum()) / 2.0


def _rim(faces: np.ndarray) -> np.ndarray:
    """Directed boundary edges of a surface, shape (n, 2).

    An edge is on the boundary if the faces traverse it more often in one direction than in the other. It is repeated as
    often as the two numbers of traversals differ.
    """
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges, inverse = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True)
    balance = np.bincount(inverse.reshape(-1), weights=np.where(directed[:, 0] < directed[:, 1], 1, -1)).astype(int)
    return np.concatenate([
        np.repeat(edges, np.maximum(balance, 0), axis=0), np.repeat(edges[:, ::-1], np.maximum(-balance, 0), axis=0)
    ])  # fmt: skip


def _closed(vertices: np.ndarray, faces: np.ndarray) -> tuple[TriangleMesh | None, float]:
    """The surface, with each hole closed by a fan of triangles about the centre of the hole.

    Returns:
        The solid, or None if it encloses no volume, and the area of the fans [m^2].
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rim = _rim(faces)
    n = len(vertices)
    count, label = connected_components(coo_matrix((np.ones(len(rim)), rim.T), shape=(n, n)), directed=False)
    hole = label[rim[:, 0]]
    middles = np.zeros((count, 3))
    np.add.at(middles, hole, vertices[rim[:, 0]])
    middles[np.unique(hole)] /= np.bincount(hole, minlength=count)[np.unique(hole), None]
    caps = np.stack([rim[:, 1], rim[:, 0], n + hole], axis=1)
    points = np.concatenate([vertices, middles])
    mesh = TriangleMesh(points, np.concatenate([faces, caps]))
    return (mesh if mesh.volume > 0.0 else None), _area(points[caps])
