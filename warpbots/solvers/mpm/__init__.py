"""Moving least squares material point method."""

from warpbots.solvers.mpm.measurements import Readings
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.solver import MPM

__all__ = ["MPM", "MPMModel", "MPMState", "Readings"]
