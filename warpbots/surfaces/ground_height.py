"""Height of unbounded ground (floors, inclines and terrain) as a function of the horizontal position."""

import numpy as np

from warpbots.scene import HalfSpace, Heightfield, Scene, Shape
from warpbots.scene.motion_checks import changes_place

__all__ = ["floor_height", "ground_height", "is_floor"]

_STEEPEST = 0.3  # smallest vertical component of the normal of a plane that counts as ground


def ground_height(shape: Shape, base: np.ndarray) -> np.ndarray | None:
    """Height of the upper side of unbounded ground.

    Args:
        shape: Any shape of `warpbots.scene`.
        base: Horizontal positions [m], shape (n, dim - 1).

    Returns:
        Heights [m], shape (n,); None if `shape` is not unbounded ground.
    """
    if isinstance(shape, HalfSpace) and shape.normal[-1] > _STEEPEST:
        p, n = np.array(shape.point), np.array(shape.normal)
        return p[-1] - (base - p[:-1]) @ n[:-1] / n[-1]
    if isinstance(shape, Heightfield):
        from scipy.ndimage import map_coordinates

        return map_coordinates(shape.heights, ((base - shape.origin) / shape.spacing).T, order=1, mode="nearest")
    return None


def is_floor(shape: Shape) -> bool:
    """Whether `shape` is the half-space below a horizontal plane."""
    return isinstance(shape, HalfSpace) and shape.normal[-1] > 1.0 - 1e-9


def floor_height(scene: Scene) -> float | None:
    """Height of the highest horizontal floor of `scene` that stays in its place [m]; None if there is no such floor."""
    still = (o.shape for o in scene.obstacles if not changes_place(o, scene.actuators))
    return max((shape.point[-1] for shape in still if is_floor(shape)), default=None)
