"""Obstacles in pictures: their shapes in the poses at a given time."""

from collections.abc import Sequence

import numpy as np

from warpbots.gradients import turn
from warpbots.scene import HalfSpace, Obstacle, Posed, Scene, Shape
from warpbots.solvers.obstacle_poses import obstacle_poses

__all__ = ["at_start", "displaced", "room_of", "swept"]

_MOMENTS = 24
"""Largest number of moments at which the view of a camera includes moving obstacles."""


def at_start(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Displacements of the obstacles from their places in the scene at the time 0.

    Returns:
        Positions p [m], shape (n_obstacles, 3), and rotations R, shape (n_obstacles, 3, 3), as in
        `Trajectory.obstacle_poses`.
    """
    with turn:
        rotation, position = obstacle_poses(scene, np.zeros(1))
    return position[0], rotation[0]


def displaced(shape: Shape, position: np.ndarray, rotation: np.ndarray) -> Shape:
    """A shape after the displacement x = R X + p.

    Args:
        shape: The shape, 2D or 3D.
        position: Position p [m], shape (3,).
        rotation: Rotation R, shape (3, 3).
    """
    dim = len(shape.bounds[0])
    R, p = rotation[:dim, :dim], position[:dim]
    if np.array_equal(R, np.eye(dim)) and not p.any():
        return shape
    if isinstance(shape, HalfSpace):  # so that a floor remains a floor
        return HalfSpace(tuple((R @ shape.point + p).tolist()), tuple((R @ shape.normal).tolist()))
    return Posed(shape, tuple(p.tolist()), tuple(map(tuple, R.tolist())))


def room_of(shape: Shape, box: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A box around a shape [m]; `box` if the shape is unbounded."""
    lower, upper = shape.bounds
    room = 0.05 * float(np.max(upper - lower))
    return (lower - room, upper + room) if np.isfinite(room) else box


def swept(obstacles: Sequence[Obstacle], position: np.ndarray, rotation: np.ndarray) -> list[Shape]:
    """Shapes of all obstacles at some moments of a motion; an obstacle at rest occurs once.

    Args:
        obstacles: The obstacles.
        position: Their positions at all moments [m], shape (n_moments, n_obstacles, 3).
        rotation: Their rotations at all moments, shape (n_moments, n_obstacles, 3, 3).
    """
    moments = np.unique(np.linspace(0, len(position) - 1, _MOMENTS).round().astype(int))
    shapes = []
    for k, obstacle in enumerate(obstacles):
        poses = np.concatenate([position[moments, k], rotation[moments, k].reshape(-1, 9)], axis=1)
        shapes += [displaced(obstacle.shape, row[:3], row[3:].reshape(3, 3)) for row in np.unique(poses, axis=0)]
    return shapes
