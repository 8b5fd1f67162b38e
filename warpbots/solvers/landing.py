"""What is below a point of a scene, or in front of it."""

from collections.abc import Sequence

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Obstacle, RigidBody, Scene, SoftBody

__all__ = ["Solid", "landing"]

Solid = Obstacle | SoftBody | RigidBody
"""What a body can land on."""

_STRIKES = 1e-4
"""Distance at which a falling point counts as having reached a solid [m]."""

_STEPS = 200
"""Largest number of steps of a ray."""

_FAR = 100.0
"""Length of a ray [m]."""


def landing(
    scene: Scene, x: np.ndarray, solids: Sequence[Solid], along: np.ndarray | None = None
) -> tuple[float, Solid | None]:
    """Length of the fall of a point [m], and the solid on which it lands; infinity and None without one.

    A point that starts in a solid does not land.

    Args:
        scene: The scene.
        x: The point [m], shape (dim,).
        solids: The solids.
        along: Unit vector along which the point moves, shape (dim,); None for the direction of gravity.
    """
    down, way = np.array(scene.gravity) / np.linalg.norm(scene.gravity) if along is None else along, 0.0
    for _ in range(_STEPS):
        distances = [_distance(solid, x + way * down) for solid in solids]
        least = min(distances, default=np.inf)
        if least < _STRIKES:
            return (way, solids[int(np.argmin(distances))]) if way > 0.0 else (np.inf, None)
        way += least
        if way > _FAR:
            break
    return np.inf, None


def _distance(solid: Solid, x: np.ndarray) -> float:
    """Distance of a point from the surface of a solid [m]."""
    if isinstance(solid, RigidBody):
        dim = len(x)
        x = (x - np.array(solid.position)[:dim]) @ np.array(solid.rotation)[:dim, :dim]
    return float(signed_distance(solid.shape, x[None])[0])
