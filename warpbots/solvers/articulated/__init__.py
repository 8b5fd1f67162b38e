"""The articulated solver: trees of rigid bodies with contact."""

from typing import TYPE_CHECKING

from warpbots.renamed import refuse_former
from warpbots.solvers.articulated.dynamics import Dynamics
from warpbots.solvers.articulated.measurements import ArticulatedReadings
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.solver import Articulated

__all__ = ["Articulated", "ArticulatedModel", "ArticulatedState", "Dynamics", "ArticulatedReadings"]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
