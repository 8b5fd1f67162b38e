"""The viscosity that the transfers add to a fluid.

Every step filters the motion of matter through the grid. A fluid retains the fraction exp(-dt / T) of the motion that
the grid does not resolve (`retained_motion`); as with a viscosity, the loss is therefore proportional to time, not to
the number of steps. In measured flows (docs/design/mpm-transfers.md) this viscosity is about

    nu = dx^2 / (8 T),   T = 20 safe steps,

within a factor of two, or of three on the finest grids. The viscosity depends on the flow, but hardly on the time step.
"""

import numpy as np

__all__ = ["RETENTION", "added_viscosity", "retention_time", "viscosity_caution"]

RETENTION = 20.0
"""Time in which motion that the grid does not resolve falls to 1/e [safe steps, `MPMModel.contact_interval`]."""


def retention_time(safe_step: float) -> float:
    """Time T [s] over which unresolved motion is lost, in a scene whose safe step is `safe_step` [s]."""
    return RETENTION * safe_step


def added_viscosity(dx: float, safe_step: float) -> float:
    """Kinematic viscosity that the transfers add to fluids [m^2/s]: nu = dx^2 / (8 T), with T from `retention_time`.

    Args:
        dx: Size of a grid cell [m].
        safe_step: Safe step of the scene [s].
    """
    return dx * dx / (8.0 * retention_time(safe_step))


def viscosity_caution(names: np.ndarray, viscosity: np.ndarray, added: np.ndarray, dx: float) -> str | None:
    """Warning that names the fluid whose viscosity is farthest below the added viscosity; None if there is none.

    A fluid without viscosity is never named, because it is meant to flow as freely as possible.

    Args:
        names: Name of the body of each fluid particle, shape (n,), str.
        viscosity: Viscosity of each fluid particle, including its Maxwell branches [Pa s], shape (n,).
        added: Viscosity that the transfers add to each fluid particle [Pa s], shape (n,).
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
