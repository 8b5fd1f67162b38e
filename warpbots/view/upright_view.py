"""Geometry for views in a browser, in which the third axis points upwards: 2D scenes stand upright in the x-z plane."""

import math

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Shape
from warpbots.surfaces.clipped import box_corners, slab, surface
from warpbots.surfaces.skin import Skin
from warpbots.view.camera import Camera
from warpbots.view.moving_obstacles import room_of

__all__ = ["FIELD", "UPRIGHT", "filling", "in_view", "perspective", "smallest_aspect", "upright"]

FIELD = 24.0
"""Vertical field of view [degrees]."""
UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Rotation from (x, y, 0) to (x, 0, y)."""

_WIDE = 1.9  # smallest width of a view on a screen relative to its height, below which the view moves away
_ROOM = 0.62  # half height of a view relative to the height of its window


def upright(x: np.ndarray) -> np.ndarray:
    """Points for a browser, shape (n, 3), float32; points of a 2D scene are placed in the x-z plane."""
    if x.shape[-1] == 2:
        x = np.stack([x[..., 0], np.zeros_like(x[..., 0]), x[..., 1]], axis=-1)
    return np.ascontiguousarray(x, dtype=np.float32)


def filling(skin: Skin, shape: object) -> np.ndarray:
    """Triangles that fill an outline, between its vertices and the particles inside, shape (m, 3)."""
    from scipy.spatial import Delaunay

    x = np.concatenate([skin.border, skin.rest])
    faces = Delaunay(x).simplices
    return faces[signed_distance(shape, x[faces].mean(axis=1)) < 0.0]


def in_view(
    shape: Shape, camera: Camera, position: np.ndarray, rotation: np.ndarray, moves: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, shape (n, 3), and faces, shape (m, 3), of the part of an obstacle that is in view at any moment.

    Args:
        shape: Shape of the obstacle.
        camera: The view.
        position: Positions of the obstacle at all moments [m], shape (n_frames, 3).
        rotation: Rotations of the obstacle at all moments, shape (n_frames, 3, 3).
        moves: Whether the obstacle may come into view from outside.
    """
    dim = len(camera.axes)
    corners = box_corners(*camera.box) - position[:, None, :dim]
    local = (corners @ rotation[:, :dim, :dim]).reshape(-1, dim)
    box = local.min(axis=0), local.max(axis=0)
    if moves:
        box = room_of(shape, box)
    if dim == 3:
        return surface(shape, *box)
    return slab(shape, *box, depth=0.06 * float((camera.box[1] - camera.box[0]).max()))


def perspective(camera: Camera) -> list[float]:
    """A perspective view similar to `camera`, with the field of view `FIELD`.

    Returns:
        9 numbers: the eye, the point in the centre, and the upward direction.
    """
    if len(camera.axes) == 3:
        right, up, toward = camera.axes
    else:
        right, up, toward = np.eye(3)[0], np.eye(3)[2], np.array([0.0, -0.99, 0.14])
    lower, upper = camera.window
    middle = (lower + upper) / 2.0
    center = middle[0] * right + middle[1] * up
    if len(camera.axes) == 3:
        center = center + toward * camera.depth((camera.box[0] + camera.box[1])[None] / 2.0)
    width, height = upper - lower
    distance = _ROOM * max(height, width / _WIDE) / math.tan(math.radians(FIELD / 2.0))
    return [*(center + distance * toward).tolist(), *center.tolist(), 0.0, 0.0, 1.0]


def smallest_aspect(camera: Camera) -> float:
    """Smallest width relative to height of a screen on which the view of `perspective` shows the whole window."""
    width, height = camera.window[1] - camera.window[0]
    return float(0.55 * width / (_ROOM * max(height, width / _WIDE)))
