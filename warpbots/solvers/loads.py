"""Constant forces on regions of bodies, for all solvers that support loads."""

import numpy as np

from warpbots.scene import Scene
from warpbots.solvers.matter import Matter

__all__ = ["load_forces"]


def load_forces(scene: Scene, matter: Matter) -> np.ndarray:
    """Force of all loads of `scene` on every point of matter [N], shape (n, dim).

    The force of a load is distributed over the points of its region in proportion to their volumes.
    """
    force = np.zeros_like(matter.position)
    for load in scene.loads:
        share = np.where(matter.regions[load.region], matter.volume, 0.0)
        force += share[:, None] / share.sum() * np.array(load.force)
    return force
