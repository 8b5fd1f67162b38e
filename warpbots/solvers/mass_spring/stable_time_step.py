"""The largest stable step of a lattice at rest."""

import math

from warpbots.solvers.mass_spring.explicit_integrators import Scheme
from warpbots.solvers.mass_spring.modal_analysis import frequency_limit, highest_frequency
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mass_spring.motors import fastest_decay

__all__ = ["largest_step"]


def largest_step(model: MassSpringModel, scheme: Scheme, enough: float = math.inf) -> float:
    """Stability bound [s] of `MassSpring.max_time_step`.

    Args:
        model: The model.
        scheme: The integrator.
        enough: Time step that the caller needs [s]; if a cheap lower bound of the result exceeds `enough`, the function
            returns the cheap bound.
    """
    bound = _bound(model, scheme, *frequency_limit(model))
    return bound if bound > enough else _bound(model, scheme, *highest_frequency(model))


def _bound(model: MassSpringModel, scheme: Scheme, omega: float, ratio: float) -> float:
    """Stability bound [s] for springs with the highest angular frequency `omega` [rad/s] and damping `ratio` [1]."""
    mass = model.mass.numpy()
    stiffest = float((model.contact.numpy() / mass).max(initial=0.0)) if model.scene.obstacles else 0.0
    if model.cables.stiffness.size:  # both parts of a cable pull a mass between them, and both neighbours move
        stiffest += 4.0 * float(model.cables.stiffness.numpy().max() / mass.min())
    if model.self_contact:  # from two sides at once
        stiffest += 4.0 * float((model.collision.numpy() / mass).max())
    fastest = math.sqrt(omega**2 + stiffest)
    bound = scheme.stable_step(ratio) / fastest if fastest else math.inf
    if model.torque.size:
        torque, speed = model.torque.numpy(), model.speed.numpy()
        bound = min(bound, 2.0 / fastest_decay(model.lattice, model.motors, torque, speed))
    return bound
