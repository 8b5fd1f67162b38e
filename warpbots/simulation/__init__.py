"""The handle on a simulation: a scene, a solver, a time step; torch tensors in and out."""

from warpbots.gradients import LostWorldWarning, Place
from warpbots.simulation.diagnosis import SimulationError
from warpbots.simulation.input_validation import Controller
from warpbots.simulation.simulation import Simulation

__all__ = ["Controller", "LostWorldWarning", "Place", "Simulation", "SimulationError"]
