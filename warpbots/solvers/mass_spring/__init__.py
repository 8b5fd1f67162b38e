"""Masses and springs."""

from warpbots.solvers.mass_spring.measurements import Readings
from warpbots.solvers.mass_spring.modal_analysis import natural_modes, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.solver import MassSpring
from warpbots.solvers.mass_spring.spectrum import Spectrum, spectrum
from warpbots.solvers.mass_spring.statics import equilibrium, forces

__all__ = [
    "MassSpring",
    "MassSpringModel",
    "MassSpringState",
    "Readings",
    "Spectrum",
    "equilibrium",
    "forces",
    "natural_modes",
    "spectrum",
    "stiffness_matrix",
]
