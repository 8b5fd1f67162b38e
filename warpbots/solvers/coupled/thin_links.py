"""A warning about rigid bodies that are thinner than a cell of the matter."""

import numpy as np

from warpbots.contact.thickness import thickness
from warpbots.scene import RigidBody
from warpbots.solvers.coupled.model import MatterPoints
from warpbots.user_warning import warn_user

__all__ = ["warn_of_thin_links"]


def warn_of_thin_links(bodies: tuple[RigidBody, ...], points: MatterPoints) -> None:
    """Warn about the thinnest rigid body if it is thinner than a cell (docs/design/coupling.md).

    Args:
        bodies: The bodies.
        points: The points of the matter.
    """
    dx = points.size
    found = [(thickness(body.shape, dx), body) for body in bodies if body.shape is not None]
    thin = [each for each in found if each[0] < (1.0 - 1e-6) * dx]
    if not thin:
        return
    t, body = min(thin, key=lambda each: each[0])
    lower, upper = body.shape.bounds
    rod = np.sort(upper - lower)[1] < dx
    others = f" ({len(thin) - 1} more bodies likewise)" if len(thin) > 1 else ""
    what = points.rod if rod else points.plate
    warn_user(
        f"RigidBody {body.name!r} is {t:.2g} m thick, less than a {points.cell} of {dx:.2g} m: {what}{others}; use "
        f"{points.option} of at most {t:.2g} m, or a thicker RigidBody.shape"
    )
