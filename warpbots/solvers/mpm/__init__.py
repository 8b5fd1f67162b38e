"""Moving least squares material point method."""

from typing import TYPE_CHECKING

from warpbots.renamed import refuse_former
from warpbots.solvers.mpm.measurements import MPMReadings
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.solver import MPM

__all__ = ["MPM", "MPMModel", "MPMState", "MPMReadings"]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
