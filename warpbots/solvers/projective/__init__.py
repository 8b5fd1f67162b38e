"""Projective dynamics: finite elements with implicit steps."""

from warpbots.solvers.projective.measurements import (
    ProjectiveReadings,
    SkeletalReadings,
    SkeletalSupportReadings,
    SupportReadings,
)
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import StepReport
from warpbots.solvers.projective.solver import ProjectiveDynamics
from warpbots.solvers.projective.states import NodalState, ProjectiveState
from warpbots.solvers.projective.statics import Equilibrium, equilibrium

__all__ = [
    "Equilibrium",
    "NodalState",
    "ProjectiveDynamics",
    "ProjectiveModel",
    "ProjectiveReadings",
    "ProjectiveState",
    "SkeletalReadings",
    "SkeletalSupportReadings",
    "StepReport",
    "SupportReadings",
    "equilibrium",
]
