"""Cameras: orthographic views of a box, with picture coordinates in metres."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from warpbots.scene import Scene, Shape
from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.ground_height import ground_height
from warpbots.view.moving_obstacles import at_start, swept

__all__ = ["Camera"]

_ROOM = 0.10  # free space around a motion, relative to its longest edge
_UNDER = 0.6  # distance up to which ground below the motion is shown, relative to its longest edge
_NEAR = 0.2  # distance up to which an obstacle is shown completely, relative to the longest edge
_FLATTEST = 0.22  # smallest height of a window relative to its width
_TALLEST = 0.6  # smallest width of a window relative to its height


@dataclasses.dataclass(frozen=True)
class Camera:
    """An orthographic view of a box.

    Picture coordinates are in metres; the first one points to the right, the second one upwards.

    Attributes:
        axes: Unit vectors to the right, upwards and (in 3D) towards the viewer, shape (dim, dim).
        box: Lower and upper corner of the box in view [m], each of shape (dim,).
        window: Lower left and upper right corner of the picture [m], each of shape (2,).
    """

    axes: np.ndarray
    box: tuple[np.ndarray, np.ndarray]
    window: tuple[np.ndarray, np.ndarray]

    @classmethod
    def around(
        cls,
        scene: Scene,
        position: np.ndarray,
        azimuth: float = -62.0,
        elevation: float = 20.0,
        obstacles: Sequence[Shape] | None = None,
    ) -> "Camera":
        """A view that contains all points of `position`, and a floor if it is close below these points.

        Args:
            scene: The scene, with its obstacles.
            position: Points [m], shape (..., dim): a state, or all frames of a motion.
            azimuth: Angle from the x axis to the direction of the viewer, about the z axis [degrees]; only in 3D.
            elevation: Angle of the viewer above the horizon, in (0, 90] [degrees]; only in 3D.
            obstacles: Shapes of the obstacles, at several moments if they move; None for the obstacles at the start.

        Raises:
            ValueError: The elevation is out of its range, or the points are not finite, have the wrong shape, or are
                none.
        """
        if not 0.0 < elevation <= 90.0:
            raise ValueError(
                f"Camera.around: elevation must be in (0, 90] degrees, got {elevation:g}; pictures look from above"
            )
        if obstacles is None:
            obstacles = swept(scene.obstacles, *(a[None] for a in at_start(scene)))
        x = _points(position, scene.dim)
        corners = [x.min(axis=0)[None], x.max(axis=0)[None], *_neighbors(obstacles, x.min(axis=0), x.max(axis=0))]
        lower, upper = np.concatenate(corners).min(axis=0), np.concatenate(corners).max(axis=0)
        room = max(_ROOM * float((upper - lower).max()), 1e-6)
        ground = _ground(obstacles, lower, upper, room)
        low = min(lower[-1], ground[:, -1].min(initial=np.inf))
        if scene.dim == 2:
            box = lower - room, upper + room
            box[0][1] = low - (0.6 if len(ground) else 1.0) * room
            return cls(np.eye(2), box, _at_least(*box))
        axes = _axes(math.radians(azimuth), math.radians(elevation))
        box = np.array([*(lower[:2] - 1.5 * room), low]), upper + np.array([1.5, 1.5, 0.5]) * room
        base = np.array([[a, b, low] for a in (box[0][0], box[1][0]) for b in (box[0][1], box[1][1])])
        seen = np.concatenate([x, base, ground, *corners]) @ axes[:2].T
        rim = np.full(2, 0.3 * room)
        return cls(axes, box, _at_least(seen.min(axis=0) - rim, seen.max(axis=0) + rim))

    def containing(self, points: np.ndarray) -> "Camera":
        """The same view, with a window that also contains `points` [m], shape (n, dim)."""
        seen = np.concatenate([self.window, self.project(points)])
        return dataclasses.replace(self, window=_at_least(seen.min(axis=0), seen.max(axis=0)))

    @property
    def aspect(self) -> float:
        """Width of the window divided by its height."""
        width, height = self.window[1] - self.window[0]
        return float(width / height)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Picture coordinates [m], shape (n, 2), of the points `x` [m], shape (n, dim)."""
        return x @ self.axes[:2].T

    def depth(self, x: np.ndarray) -> np.ndarray:
        """Depth [m], shape (n,), of the points `x` [m], shape (n, 3); it is larger for points closer to the viewer."""
        return x @ self.axes[2]


def _points(position: np.ndarray, dim: int) -> np.ndarray:
    """The points in view [m], shape (n, dim).

    Raises:
        ValueError: There is none, they have the wrong shape, or a number is not finite.
    """
    x = np.asarray(position, dtype=np.float64)
    if not x.size or x.shape[-1] != dim or not np.isfinite(x).all():
        what = "an array with a number that is not finite" if x.size and x.shape[-1] == dim else f"shape {x.shape}"
        raise ValueError(f"Camera.around: position must be finite points of shape (..., {dim}), got {what}")
    return x.reshape(-1, dim)


def _neighbors(obstacles: Sequence[Shape], lower: np.ndarray, upper: np.ndarray) -> list[np.ndarray]:
    """Corners of the bounded obstacles close to a motion, clipped to the surroundings of the motion.

    Args:
        obstacles: Shapes of the obstacles.
        lower: Lower corner of the bounding box of the motion [m], shape (dim,).
        upper: Upper corner of this box [m], shape (dim,).

    Returns:
        For each of these obstacles, the corners of its clipped bounding box [m], shape (2^dim, dim).
    """
    size = float((upper - lower).max())
    found = []
    for shape in obstacles:
        low, high = shape.bounds
        if np.isfinite(high - low).all() and (low < upper + _NEAR * size).all() and (high > lower - _NEAR * size).all():
            ends = np.maximum(low, lower - 2.0 * _NEAR * size), np.minimum(high, upper + 2.0 * _NEAR * size)
            found.append(box_corners(*ends))
    return found


def _ground(obstacles: Sequence[Shape], lower: np.ndarray, upper: np.ndarray, room: float) -> np.ndarray:
    """Points on floors, inclines and terrains close below a motion, shape (n, dim).

    Args:
        obstacles: Shapes of the obstacles.
        lower: Lower corner of the bounding box of the motion [m], shape (dim,).
        upper: Upper corner of this box [m], shape (dim,).
        room: Horizontal distance [m]; ground is in view up to 1.5 times this distance from the box.
    """
    lowest = lower[-1] - _UNDER * float((upper - lower).max())
    axes = np.linspace(lower[:-1] - 1.5 * room, upper[:-1] + 1.5 * room, 17).T
    base = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(lower) - 1)
    found = [np.zeros((0, len(lower)))]
    for shape in obstacles:
        height = ground_height(shape, base)
        if height is not None and height.max() > lowest:
            found.append(np.column_stack([base, np.maximum(height, lowest)]))
    return np.concatenate(found)


def _axes(azimuth: float, elevation: float) -> np.ndarray:
    c, s = math.cos(azimuth), math.sin(azimuth)
    ce, se = math.cos(elevation), math.sin(elevation)
    return np.array([[-s, c, 0.0], [-c * se, -s * se, ce], [c * ce, s * ce, se]])


def _at_least(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of a window, enlarged so that the picture is neither too wide nor too tall."""
    width, height = upper - lower
    lower, upper = lower.copy(), upper.copy()
    upper[1] += max(0.0, _FLATTEST * width - height)
    missing = np.array([max(0.0, _TALLEST * height - width), 0.0])
    return lower - missing / 2.0, upper + missing / 2.0
