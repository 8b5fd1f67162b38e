"""Warnings about soft bodies that fall through what is below them: contact of their masses is absent or weak."""

import numpy as np

from warpbots.scene import Cable, Scene, SoftBody, bars_of
from warpbots.solvers.landing import landing
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.user_warning import warn_user

__all__ = ["warn_of_falls", "warn_of_weak_surfaces"]

_USUAL = 0.01
"""Depth of a body at rest with the advised stiffness, if all its masses share its weight [largest extent]."""


def warn_of_falls(scene: Scene) -> None:
    """Warn of a soft body that nothing holds above another one, for a solver without contact between masses.

    Only a body that falls for certain is named: it starts at rest, no constraint, attachment or cable holds it, and the
    first solid below its middle is another body. Bodies beside rigid ones, which may keep them apart, are not examined;
    `Coupled` gives their scene a list of contacts.

    Args:
        scene: Scene of soft bodies.
    """
    if scene.contacts is not None or not np.any(scene.gravity) or any(isinstance(a, Cable) for a in scene.actuators):
        return
    held = {c.region for c in scene.constraints}
    joined = {name for a in scene.attachments for name in (a.first, a.second)}
    for body in scene.soft:
        if (
            body.name in joined
            or held & body.regions.keys()
            or body.velocity is not None
            or bars_of(body.shape) is not None
        ):
            continue
        others = [b for b in scene.soft if b is not body and bars_of(b.shape) is None]
        _, solid = landing(scene, np.mean(body.shape.bounds, axis=0), [*others, *scene.obstacles])
        if isinstance(solid, SoftBody):
            warn_user(
                f"SoftBody {body.name!r} falls through SoftBody {solid.name!r}, because there is no contact between "
                "masses: use MassSpring(collision=1.0), or 4.0 for fast impacts"
            )
            return


def warn_of_weak_surfaces(scene: Scene, lattice: Lattice, area: np.ndarray, contact_stiffness: float) -> None:
    """Warn of a soft body that sinks into the obstacle below it by more than its own size.

    The depth is that at rest if all masses share the weight, so that the true depth is larger. Only bodies are examined
    that no constraint holds.

    Args:
        scene: Scene of soft bodies.
        lattice: Lattice of the scene.
        area: Area on which the pressure of an obstacle acts at each mass [m^2; m in 2D], shape (n,).
        contact_stiffness: Pressure of obstacles per depth [Pa/m].
    """
    gravity, held = np.linalg.norm(scene.gravity), {c.region for c in scene.constraints}
    for k, body in enumerate(scene.soft):
        own = lattice.body == k
        depth = lattice.mass[own].sum() * gravity / (contact_stiffness * area[own].sum())
        size = np.ptp(lattice.position[own], axis=0).max()
        if depth > size and not held & body.regions.keys():
            _, solid = landing(scene, np.mean(body.shape.bounds, axis=0), scene.obstacles)
            if solid is not None:
                warn_user(
                    f"SoftBody {body.name!r} sinks {depth:.2g} m into Obstacle {solid.name!r} by its weight, more than "
                    f"its size of {size:.2g} m: use MassSpring(contact_stiffness=...) of at least "
                    f"{contact_stiffness * depth / (_USUAL * size):.1g} Pa/m, or 0 for a rigid surface"
                )
                return
