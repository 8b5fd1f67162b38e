"""What stands for a state in a picture: particles, or cells in the place of the masses of a lattice, and rigid bodies.

A lattice has masses on its surface, where discs would reach out of the body; its cells fill it as particles do.
"""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.solvers import State
from warpbots.solvers.matter import Matter
from warpbots.view.rigid_bodies import Poses, poses_at_zero

if TYPE_CHECKING:
    import torch

    from warpbots.simulation import Simulation

__all__ = ["NO_PARTICLES", "particles_of", "placed", "shown", "shown_at"]

NO_PARTICLES = Matter(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), {})
"""What there is in the place of soft matter where there is none."""


def particles_of(simulation: "Simulation") -> object:
    """All soft matter at rest, as its solver has it; none in a scene of rigid bodies."""
    return getattr(simulation.model, "particles", NO_PARTICLES)


def placed(
    simulation: "Simulation", state: State, world: int = 0, **parameters: "torch.Tensor"
) -> tuple[np.ndarray, Poses]:
    """Where everything that is drawn of a world is: the only thing that pictures ask a simulation for.

    Args:
        simulation: Whose state it is.
        state: What to draw.
        world: Which of the independent copies.
        parameters: Tensors in the place of the model's parameters, by name.

    Returns:
        Positions of what `shown` returns for `particles_of` [m], shape (n, dim), and poses of the rigid bodies.
    """
    particles, poses = particles_of(simulation), poses_at_zero(simulation.scene)
    if simulation.scene.rigid:
        r = simulation.sense(state, **parameters)
        poses = Poses(*(a[world].detach().cpu().numpy() for a in (r.position, r.rotation)))
    if not len(particles):
        return particles.position, poses
    return shown_at(particles, state.position[world].detach().cpu().numpy()), poses


def shown(particles: object) -> object:
    """The matter at rest that is drawn for `particles`, which are a solver's."""
    return getattr(particles, "cells", particles)


def shown_at(particles: object, values: np.ndarray) -> np.ndarray:
    """Values of all particles, shape (..., n_particles, dim), for what is drawn: between the masses about it."""
    if not hasattr(particles, "cells"):
        return values
    moved = particles.carry @ np.moveaxis(values, -2, 0).reshape(values.shape[-2], -1)
    return np.moveaxis(moved.reshape(-1, *values.shape[:-2], values.shape[-1]), 0, -2)
