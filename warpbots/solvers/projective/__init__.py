"""Projective dynamics: finite elements with implicit steps."""

from warpbots.solvers.projective.model import NodalState, ProjectiveModel, ProjectiveState
from warpbots.solvers.projective.report import StepReport
from warpbots.solvers.projective.solver import ProjectiveDynamics

__all__ = ["ProjectiveDynamics", "NodalState", "ProjectiveModel", "ProjectiveState", "StepReport"]
