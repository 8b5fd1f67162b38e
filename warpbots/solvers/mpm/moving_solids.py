"""The obstacles of a scene that move, as solids on the device."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import closed_form, linear_samples, solid_arrays
from warpbots.scene import Heightfield, Scene, Shape
from warpbots.scene.motion_checks import moves
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mpm.grid import BackgroundGrid

__all__ = ["MovingObstacles", "moving_solids"]


@dataclasses.dataclass(frozen=True)
class MovingObstacles:
    """Obstacles that move, or whose surface moves.

    Attributes:
        solids: The obstacles at their places in the scene, as a Warp struct (`warpbots.contact.solid`).
        owner: Index of each moving obstacle among all obstacles, shape (n_moving,), int.
    """

    solids: Solids
    owner: wp.array

    def __len__(self) -> int:
        return self.owner.size


def moving_solids(scene: Scene, grid: BackgroundGrid, device: wp.Device) -> MovingObstacles:
    """The obstacles of `scene` that move; shapes without a closed form are sampled at half of the size of a cell.

    Raises:
        SceneError: The samples do not fit into memory.
    """
    own = [k for k, o in enumerate(scene.obstacles) if moves(o, scene.actuators)]
    obstacles = [scene.obstacles[k] for k in own]
    forms = [
        closed_form(o.shape) or linear_samples(o.shape, *_box_around(o.shape, grid), 0.5 * grid.dx, o.name)
        for o in obstacles
    ]
    solids = solid_arrays(forms, [-1] * len(forms), 0.0, device)
    sampled = [np.linalg.norm(np.array(f.samples.shape) * f.size) if f.samples.size else 0.0 for f in forms]
    solids.reach = device_array(np.where(sampled, sampled, solids.reach.numpy()), device, wp.float64)
    return MovingObstacles(solids, device_array(own, device, int))


def _box_around(shape: Shape, grid: BackgroundGrid) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of the box in which a shape is sampled [m], each of shape (dim,).

    It is the bounding box of the shape with two cells around it, because the samples move with the shape. In
    directions in which the shape is unbounded, the box covers the grid and the largest edge of the grid beyond it.
    """
    low, high = shape.bounds
    room = (grid.upper - grid.lower).max()
    if isinstance(shape, Heightfield):  # has no lower end
        low = np.array([*low[:-1], shape.heights.min()])
    low = np.where(np.isfinite(low), low, np.minimum(grid.lower, high) - room)
    high = np.where(np.isfinite(high), high, np.maximum(grid.upper, low) + room)
    return low - 2.0 * grid.dx, high + 2.0 * grid.dx
