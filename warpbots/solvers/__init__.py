"""Methods of simulation, one folder each."""

from warpbots.solvers.articulated import Articulated
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.mpm import MPM
from warpbots.solvers.projective import ProjectiveDynamics
from warpbots.solvers.solver import Cautious, Model, Parameter, Reports, Senses, Solver, State

__all__ = [
    "MPM",
    "Articulated",
    "Cautious",
    "MassSpring",
    "Model",
    "Parameter",
    "ProjectiveDynamics",
    "Reports",
    "Senses",
    "Solver",
    "State",
]
