"""Computes the largest stable time step of matter at rest."""

import math
from collections.abc import Iterable

import numpy as np

from warpbots.materials import p_wave_modulus
from warpbots.solvers.law_groups import LawGroup

__all__ = ["largest_step"]


def largest_step(
    dx: float,
    groups: Iterable[LawGroup],
    spacing: np.ndarray,
    E: np.ndarray,
    nu: np.ndarray,
    rho: np.ndarray,
    beta: np.ndarray,
    fibre: np.ndarray,
    branch: np.ndarray,
) -> float:
    """The stability bound of the time step that `MPM.max_time_step` returns [s].

    Args:
        dx: Size of a grid cell [m].
        groups: Groups of particles with the same material law.
        spacing: Distance from each particle to the next particle [m], shape (n,).
        E: Young's modulus [Pa], shape (..., n).
        nu: Poisson's ratio [1], shape (..., n).
        rho: Density [kg/m^dim], shape (..., n).
        beta: Time of Kelvin-Voigt damping [s], shape (..., n).
        fibre: Stiffness of each family of fibres [Pa], shape (..., n, n_families); fibres raise the speed of waves
            along them.
        branch: Shear modulus of each Maxwell branch [Pa], shape (..., n, n_branches).
    """
    added = fibre.sum(axis=-1) + 4.0 / 3.0 * branch.sum(axis=-1)
    C = np.where(spacing <= 0.75 * dx, 1.2747, 1.0)
    bound = math.inf
    for group in groups:
        rows = slice(group.first, group.first + group.count)
        modulus = p_wave_modulus(E[..., rows], nu[..., rows], group.incompressibility) + added[..., rows]
        step = C[rows] * dx / np.sqrt(modulus / rho[..., rows])
        if beta.any():
            step = step**2 / (beta[..., rows] + np.hypot(beta[..., rows], step))
        bound = min(bound, float(step.min()))
    return bound
