"""The particles through which cables are drawn."""

import numpy as np

from warpbots.scene import Cable, Scene

__all__ = ["cable_routes"]


def cable_routes(scene: Scene, particles: object) -> dict[int, np.ndarray]:
    """Indices of the particles at the waypoints of each cable, by the channel of the cable.

    Args:
        scene: The scene.
        particles: All soft matter at rest, in the form that is drawn.
    """
    from scipy.spatial import cKDTree

    cables = {c: a for c, a in enumerate(scene.actuators) if isinstance(a, Cable)}
    tree = cKDTree(particles.position) if cables else None
    return {c: tree.query(a.waypoints)[1] for c, a in cables.items()}
