"""A warning about soft bodies that fall through one another, for want of contact between masses."""

import numpy as np

from warpbots.scene import Cable, Scene, SoftBody, bars_of
from warpbots.solvers.articulated.missing_laws import landing
from warpbots.user_warning import warn_user

__all__ = ["warn_of_falls"]


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
