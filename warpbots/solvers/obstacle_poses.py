"""Poses of obstacles at given times, on the host, for files and pictures."""

from collections.abc import Mapping

import numpy as np
import warp as wp

from warpbots.numerics import warp_device
from warpbots.scene import Scene
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.motion_parameters import MotionParameters, motion_parameters
from warpbots.solvers.moving_frames import MovingFrames

__all__ = ["obstacle_poses"]


def obstacle_poses(
    scene: Scene,
    time: np.ndarray,
    travel: np.ndarray | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Displacements of all obstacles from their places in the scene, in several worlds or at several times.

    The caller must hold the lock of kernel launches (`warpbots.gradients.turn`).

    A point X of obstacle k is at R X + p, with the rotation R and the position p of row k; the plane of a 2D scene is z
    = 0. Obstacles that do not move have R = 1 and p = 0.

    Args:
        scene: The scene with the obstacles.
        time: Time of each world [s], shape (worlds,).
        travel: Coordinates of all drives [m or rad], shape (worlds, n_drives), as in a state; None for zero.
        values: Parameters of motion that differ from those of the scene, by name, each of shape (worlds, ...).

    Returns:
        Rotations R, shape (worlds, n_obstacles, 3, 3), and positions p [m], shape (worlds, n_obstacles, 3).
    """
    worlds, device = len(time), warp_device("cpu")
    frames = MovingFrames(scene, worlds, device)
    parameters = motion_parameters(scene, worlds, device)
    parameters |= {name: device_array(value, device, wp.float64) for name, value in (values or {}).items()}
    travel = np.zeros((worlds, frames.drives)) if travel is None else travel
    return frames.obstacle_poses(MotionParameters(worlds, **parameters), time, travel)
