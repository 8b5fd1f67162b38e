"""Checks whether obstacles are slow enough for the steps; a faster obstacle could pass through a body in a step."""

import math

import numpy as np

from warpbots.contact.thickness import thickness
from warpbots.scene import HalfSpace, Obstacle, Scene
from warpbots.scene.motion_checks import drives_of
from warpbots.solvers.articulated.model import ArticulatedModel

__all__ = ["too_fast"]


def _reach(obstacle: Obstacle, pivot: object) -> float:
    """Largest distance from `pivot` to a corner of the bounds of an obstacle [m]."""
    lower, upper = (np.abs(np.asarray(bound) - np.asarray(pivot)) for bound in obstacle.shape.bounds)
    return float(np.linalg.norm(np.maximum(lower, upper)))


def _speed(obstacle: Obstacle, scene: Scene) -> float:
    """Estimated largest speed of an obstacle [m/s], from mean velocities between poses and from drives at u = 1."""
    speed, motion = 0.0, obstacle.motion
    if motion is not None:
        h = np.diff(motion.times)
        if motion.positions is not None:
            speed += float((np.linalg.norm(np.diff(motion.positions, axis=0), axis=1) / h).max())
        if motion.rotations is not None:
            rate = np.linalg.norm(np.diff(motion.rotations, axis=0), axis=1) / h
            speed += float(rate.max()) * _reach(obstacle, motion.pivot)
    for _, drive in drives_of(obstacle.name, scene.actuators):
        if drive.kind == "translation":
            speed += drive.max_speed
        elif drive.kind == "rotation":
            speed += drive.max_speed * _reach(obstacle, drive.pivot)
    return speed


def too_fast(model: ArticulatedModel, h: float) -> str | None:
    """Warning that names an obstacle that moves by more than half its thickness in a step; None without one.

    Args:
        model: The model.
        h: Length of a step [s].
    """
    for obstacle, frame in zip(model.scene.obstacles, model.frames.of_obstacle, strict=True):
        if frame < 0 or isinstance(obstacle.shape, HalfSpace):
            continue
        speed = _speed(obstacle, model.scene)
        thick = thickness(obstacle.shape, 2.0 * speed * h) if speed > 0.0 else math.inf
        if 0.5 * thick < speed * h:
            return (
                f"Obstacle {obstacle.name!r} moves by up to {speed * h:.2g} m in a step of {h:.3g} s, more than half "
                f"its thickness of {thick:.2g} m, so bodies may pass through it: use steps of at most "
                f"{0.5 * thick / speed:.2g} s, or a thicker obstacle"
            )
    return None
