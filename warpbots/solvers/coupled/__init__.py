"""Solvers of matter and of rigid bodies in one scene, which exchange impulses in every step."""

from warpbots.solvers.coupled.model import CoupledModel
from warpbots.solvers.coupled.readings import CoupledReadings, MassSpringBodiesReadings, MPMBodiesReadings
from warpbots.solvers.coupled.solver import Coupled
from warpbots.solvers.coupled.states import CoupledState, MassSpringBodiesState, MPMBodiesState

__all__ = [
    "Coupled",
    "CoupledModel",
    "CoupledReadings",
    "CoupledState",
    "MPMBodiesReadings",
    "MPMBodiesState",
    "MassSpringBodiesReadings",
    "MassSpringBodiesState",
]
