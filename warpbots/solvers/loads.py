"""Steady forces on parts of bodies, for every solver that has loads."""

import numpy as np

from warpbots.scene import Scene
from warpbots.solvers.matter import Matter

__all__ = ["load_forces"]


def load_forces(scene: Scene, matter: Matter) -> np.ndarray:
    """Force of the loads of `scene` on every point [N], shape (n, dim): each is spread over its region by volume."""
    force = np.zeros_like(matter.position)
    for load in scene.loads:
        share = np.where(matter.regions[load.region], matter.volume, 0.0)
        force += share[:, None] / share.sum() * np.array(load.force)
    return force
