"""Solvers, one folder each, and what they share."""

from warpbots.solvers.articulated import Articulated
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.mpm import MPM
from warpbots.solvers.projective import ProjectiveDynamics
from warpbots.solvers.solver import Cautious, Model, Parameter, Solver, State, with_parameters

__all__ = [
    "MPM",
    "Articulated",
    "Cautious",
    "MassSpring",
    "Model",
    "Parameter",
    "ProjectiveDynamics",
    "Solver",
    "State",
    "with_parameters",
]
