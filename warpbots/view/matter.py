"""What stands for matter in a picture: particles as they are, and the cells of a lattice in the place of its masses.

A lattice has masses on its surface, where discs would reach out of the body; its cells fill it as particles do.
"""

import numpy as np

__all__ = ["shown", "shown_at"]


def shown(particles: object) -> object:
    """The matter at rest that is drawn for `particles`, which are a solver's."""
    return getattr(particles, "cells", particles)


def shown_at(particles: object, values: np.ndarray) -> np.ndarray:
    """Values of all particles, shape (..., n_particles, dim), for what is drawn: a cell has the mean of its corners."""
    return values[..., particles.corner, :].mean(axis=-2) if hasattr(particles, "cells") else values
