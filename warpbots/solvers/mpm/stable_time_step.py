"""The largest stable step of matter at rest."""

import math

import numpy as np

from warpbots.materials import p_wave_modulus
from warpbots.solvers.mpm.model import MPMModel

__all__ = ["largest_step"]


def largest_step(model: MPMModel) -> float:
    """Stability bound [s] of `MPM.max_time_step`."""
    E, nu, rho, beta = (
        a.numpy().astype(np.float64) for a in (model.youngs_modulus, model.poissons_ratio, model.density, model.damping)
    )
    C = np.where(model.matter.spacing <= 0.75 * model.grid.dx, 1.2747, 1.0)
    bound = math.inf
    for group in model.groups:
        rows = slice(group.first, group.first + group.count)
        modulus = p_wave_modulus(E[:, rows], nu[:, rows], group.incompressibility)
        step = C[rows] * model.grid.dx / np.sqrt(modulus / rho[:, rows])
        if model.damped:
            step = step**2 / (beta[:, rows] + np.hypot(beta[:, rows], step))
        bound = min(bound, float(step.min()))
    return bound
