"""What stands for matter in a picture: particles as they are, and the cells of a lattice in the place of its masses.

A lattice has masses on its surface, where discs would reach out of the body; its cells fill it as particles do.
"""

import numpy as np

__all__ = ["shown", "shown_at"]


def shown(particles: object) -> object:
    """The matter at rest that is drawn for `particles`, which are a solver's."""
    return getattr(particles, "cells", particles)


def shown_at(particles: object, values: np.ndarray) -> np.ndarray:
    """Values of all particles, shape (..., n_particles, dim), for what is drawn: between the masses about it."""
    if not hasattr(particles, "cells"):
        return values
    moved = particles.carry @ np.moveaxis(values, -2, 0).reshape(values.shape[-2], -1)
    return np.moveaxis(moved.reshape(-1, *values.shape[:-2], values.shape[-1]), 0, -2)
