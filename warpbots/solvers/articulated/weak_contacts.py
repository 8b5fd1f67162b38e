"""A warning about contact laws that are too weak to bear the weight of a body."""

import numpy as np

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
    obstacles = {o.name for o in scene.obstacles}
    loose = {body.name for tree in floating(scene) for body in tree if body.shape is not None}
    mass, area, stiffness = (a.numpy()[0] for a in (model.mass, model.contact_area, model.contact_stiffness))
    for k, body in enumerate(scene.rigid):
        own = area[model.robot.contact_points[k]].sum()
        for c, law in enumerate(scene.laws):
            if body.name in loose and law.points in (body.name, body.surface) and law.solid in obstacles and own > 0.0:
                depth, size = mass[k] * gravity / (stiffness[c] * own), np.ptp(body.bounds, axis=0).max()
                if depth > size:
                    return (
                        f"Contact {law.name!r}: {body.name!r} sinks {depth:.2g} m into {law.solid!r} by its weight, "
                        f"more than its size of {size:.2g} m, because the stiffness is {stiffness[c]:.3g} Pa/m; give "
                        f"at least {stiffness[c] * depth / (_USUAL * size):.1g} Pa/m"
                    )
    return None
