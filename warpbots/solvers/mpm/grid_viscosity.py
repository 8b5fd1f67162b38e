"""The viscosity that the transfers add to a fluid.

Every step filters the motion of matter through the grid. Of what the grid does not resolve a fluid retains the share
exp(-dt / T) (`retained_motion`), so that the loss belongs to a time, not to a step, as that of a viscosity does. In
measured flows (docs/design/mpm-transfers.md) it is about

    nu = dx^2 / (8 T),   T = 20 safe steps,

within a factor of two, and of three on the finest grids; it depends on the flow, and next to nothing on the steps.
"""

import numpy as np

__all__ = ["RETENTION", "added_viscosity", "retention_time", "viscosity_caution"]

RETENTION = 20.0
"""Time in which what the grid does not resolve falls to 1/e [safe steps, `MPMModel.contact_interval`]."""


def retention_time(safe_step: float) -> float:
    """T [s] in a scene whose safe step is `safe_step` [s]."""
    return RETENTION * safe_step


def added_viscosity(dx: float, safe_step: float) -> float:
    """Kinematic viscosity that the transfers add to fluids [m^2/s]: nu = dx^2 / (8 T).

    Args:
        dx: Size of a grid cell [m].
        safe_step: Safe step of the scene [s].
    """
    return dx * dx / (8.0 * retention_time(safe_step))


def viscosity_caution(names: np.ndarray, viscosity: np.ndarray, added: np.ndarray, dx: float) -> str | None:
    """One sentence on the fluid whose viscosity is farthest below what the transfers add; None if there is none.

    A fluid without any viscosity is meant to flow as freely as it can, and is not named.

    Args:
        names: Body of each particle of a fluid, shape (n,), str.
        viscosity: Its viscosity, that of its branches included [Pa s], shape (n,).
        added: What the transfers add [Pa s], shape (n,).
        dx: Size of a grid cell [m].
    """
    share = np.where(viscosity > 0.0, viscosity / added, np.inf)
    if not share.size or share.min() >= 1.0:
        return None
    i = int(share.argmin())
    return (
        f"SoftBody {str(names[i])!r}: its viscosity of {viscosity[i]:.3g} Pa s is below the {added[i]:.2g} Pa s that "
        f"the grid of MPM(dx={dx:g}) adds to it (within a factor of two, whatever the substeps): it flows as if it had "
        f"both. Use a smaller dx or a lower youngs_modulus, with the root of which it grows, or damping=0 where "
        f"viscosity does not matter"
    )
