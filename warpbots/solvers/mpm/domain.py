"""Domain of matter: the box that the grid covers."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Obstacle, Scene, SceneError
from warpbots.solvers.mpm.particles import Particles

__all__ = ["domain_of"]

_DEEPEST = 10.0
"""Largest depth of an obstacle below matter to which the domain extends [largest edge of the bodies' box]."""

_STRIKES = 1e-3
"""Distance at which a ray counts as having reached an obstacle [largest edge of the bodies' box]."""


def domain_of(scene: Scene, particles: Particles) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of the domain of matter [m].

    If the scene does not give a domain, the domain is the bounding box of all bodies, extended on every side by the
    largest edge of this box, and extended in the direction of gravity to the obstacles onto which matter falls.

    Raises:
        SceneError: A particle is outside of the scene's domain.
    """
    if scene.domain is None:
        return _roomy(scene, particles.position.min(0), particles.position.max(0))
    inside = np.all((particles.position >= scene.domain[0]) & (particles.position <= scene.domain[1]), axis=1)
    if not inside.all():
        p = int(np.argmin(inside))
        raise SceneError(
            f"SoftBody {scene.bodies[particles.body[p]].name!r}: particle {p} at {particles.position[p].tolist()} is "
            f"outside of the domain {scene.domain}; enlarge Scene.domain or move the body"
        )
    return np.array(scene.domain[0]), np.array(scene.domain[1])


def _roomy(scene: Scene, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    room, g = (upper - lower).max(), np.array(scene.gravity)
    low, high = lower - room, upper + room
    if not g.any():
        return low, high
    corners = np.stack(np.meshgrid(*np.stack([lower, upper], axis=1), indexing="ij"), axis=-1).reshape(-1, scene.dim)
    starts = np.vstack([corners, (lower + upper)[None] / 2.0])
    for obstacle in scene.obstacles:
        landing = _landing(obstacle, starts, g / np.linalg.norm(g), room)
        if len(landing):
            low, high = np.minimum(low, landing.min(0)), np.maximum(high, landing.max(0))
    return low, high


def _landing(obstacle: Obstacle, start: np.ndarray, down: np.ndarray, room: float) -> np.ndarray:
    """Points at which rays from `start` in direction `down` reach an obstacle [m], shape (n, dim), by sphere tracing.

    A ray that does not reach the obstacle gives no point. `room` is the largest edge of the bounding box of the bodies
    [m].
    """
    x, fallen = start.copy(), np.zeros(len(start))
    while True:
        distance = signed_distance(obstacle.shape, x)
        near, deep = distance <= _STRIKES * room, fallen > _DEEPEST * room
        falling = ~near & ~deep
        if not falling.any():
            return x[near & ~deep]
        fallen[falling] += distance[falling]
        x = start + fallen[:, None] * down
