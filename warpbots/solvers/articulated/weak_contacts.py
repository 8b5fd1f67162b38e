"""A warning about contact laws that are too weak to bear the weight of a body."""

import numpy as np

from warpbots.scene import Obstacle
from warpbots.solvers.articulated.missing_laws import floating
from warpbots.solvers.articulated.model import ArticulatedModel

__all__ = ["too_weak"]

_USUAL = 0.01
"""Depth of a body at rest with the advised stiffness [largest extent of the body]."""


def too_weak(model: ArticulatedModel) -> str | None:
    """Warning that names a body that sinks into an obstacle by more than its own size; None without one.

    The depth is that of a body at rest if all its contact points share its weight, so that the true depth is larger.
    Bodies that a joint connects to the world are not examined, because they need not bear their weight.

    Args:
        model: The model.
    """
    scene, gravity = model.scene, np.linalg.norm(model.gravity.numpy()[0])
    obstacles = {o.name: o for o in scene.obstacles}
    loose = {body.name for tree in floating(scene) for body in tree if body.shape is not None}
    mass, area, stiffness = (a.numpy()[0] for a in (model.mass, model.contact_area, model.contact_stiffness))
    for k, body in enumerate(scene.rigid):
        own = area[model.robot.contact_points[k]].sum()
        for c, law in enumerate(scene.laws):
            if body.name in loose and law.points in (body.name, body.surface) and law.solid in obstacles and own > 0.0:
                depth, size = mass[k] * gravity / (stiffness[c] * own), np.ptp(body.bounds, axis=0).max()
                if depth > size:
                    return _sentence(law.name, body.name, obstacles[law.solid], depth, size, stiffness[c])
    return None


def _sentence(law: str, body: str, solid: Obstacle, depth: float, size: float, stiffness: float) -> str:
    return (
        f"Contact {law!r}: {body!r} sinks {depth:.2g} m into {solid.name!r} by its weight, more "
        f"than its size of {size:.2g} m, because the stiffness is {stiffness:.3g} Pa/m; give at least "
        f"{stiffness * depth / (_USUAL * size):.1g} Pa/m"
    )
