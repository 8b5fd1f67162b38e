"""Articulated rigid bodies with contact."""

from warpbots.solvers.articulated.dynamics import Dynamics
from warpbots.solvers.articulated.measurements import Readings
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.solver import Articulated

__all__ = ["Articulated", "ArticulatedModel", "ArticulatedState", "Dynamics", "Readings"]
