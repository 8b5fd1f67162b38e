"""What stands for a state in a picture: particles, or cells instead of the masses of a lattice, and rigid bodies.

A lattice has masses on its surface, where discs would reach out of the body; its cells fill it as particles do.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.solvers import State
from warpbots.solvers.matter import Matter
from warpbots.view.rigid_bodies import BodyPoses, poses_at_zero

if TYPE_CHECKING:
    import torch

    from warpbots.simulation import Simulation

__all__ = ["NO_PARTICLES", "particles_of", "placed"]

NO_PARTICLES = Matter(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), {})
"""What there is instead of soft matter where there is none."""


def particles_of(simulation: "Simulation[Any]") -> Matter:
    """All soft matter at rest, as its solver has it; none in a scene of rigid bodies."""
    return NO_PARTICLES if simulation.model.matter is None else simulation.model.matter


def placed(
    simulation: "Simulation[Any]", state: State, world: int = 0, **parameters: "torch.Tensor"
) -> tuple[np.ndarray, BodyPoses]:
    """Where everything that is drawn of a world is: the only thing that pictures ask a simulation for.

    Args:
        simulation: Whose state it is.
        state: What to draw.
        world: Which of the independent copies.
        parameters: Tensors instead of the model's parameters, by name.

    Returns:
        Positions of what is drawn of the matter (`Matter.drawn`) [m], shape (n, dim), and poses of the rigid bodies.
    """
    particles, poses = particles_of(simulation), poses_at_zero(simulation.scene)
    if simulation.scene.rigid:
        r = simulation.sense(state, **parameters)
        poses = BodyPoses(*(a[world].detach().cpu().numpy() for a in (r.position, r.rotation)))
    if not len(particles):
        return particles.position, poses
    return particles.drawn_at(state.position[world].detach().cpu().numpy()), poses
