"""The parts of a state that a picture shows: particles and rigid bodies.

For a mass-spring lattice, the cells between the masses are drawn as particles: masses lie on the surface of a body, so
that discs around masses would extend beyond the body, whereas discs around cells fill the body.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.solvers import State
from warpbots.solvers.matter import Matter
from warpbots.trajectory import poses_at
from warpbots.view.rigid_bodies import BodyPoses, poses_at_zero

if TYPE_CHECKING:
    import torch

    from warpbots.simulation import Simulation

__all__ = ["NO_PARTICLES", "particles_of", "placed"]

NO_PARTICLES = Matter(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), {})
"""The matter of a scene without soft bodies."""


def particles_of(simulation: "Simulation[Any]") -> Matter:
    """All soft matter at rest, as the solver represents it; empty for a scene of rigid bodies."""
    return NO_PARTICLES if simulation.model.matter is None else simulation.model.matter


def placed(
    simulation: "Simulation[Any]", state: State, world: int = 0, **parameters: "torch.Tensor"
) -> tuple[np.ndarray, BodyPoses]:
    """Positions of all particles, and poses of all rigid bodies, that pictures of a world show.

    Args:
        simulation: The simulation of the state.
        state: The state to draw.
        world: Index of the world.
        parameters: Tensors that replace parameters of the model, by name.

    Returns:
        Positions of the drawn particles (`Matter.drawn`) [m], shape (n, dim), and poses of the rigid bodies.
    """
    particles, poses = particles_of(simulation), poses_at_zero(simulation.scene)
    if simulation.scene.rigid:
        poses = BodyPoses(*poses_at(simulation, state, world, **parameters))
    if not len(particles):
        return particles.position, poses
    return particles.drawn_at(state.position[world].detach().cpu().numpy()), poses
