"""Simulations: a scene, a solver and a time step, with torch tensors as inputs and outputs."""

from typing import TYPE_CHECKING

from warpbots.gradients import FailurePoint, LostWorldWarning
from warpbots.renamed import refuse_former
from warpbots.simulation.diagnosis import SimulationError
from warpbots.simulation.input_validation import Controller
from warpbots.simulation.simulation import Simulation

__all__ = ["Controller", "LostWorldWarning", "FailurePoint", "Simulation", "SimulationError"]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
