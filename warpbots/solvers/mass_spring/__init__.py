"""Masses and springs."""

from warpbots.solvers.mass_spring.modal_analysis import Energy, energy, natural_modes, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.solver import MassSpring
from warpbots.solvers.mass_spring.spectrum import Spectrum, spectrum
from warpbots.solvers.mass_spring.statics import equilibrium, forces

__all__ = [
    "Energy",
    "MassSpring",
    "MassSpringModel",
    "MassSpringState",
    "Spectrum",
    "energy",
    "equilibrium",
    "forces",
    "natural_modes",
    "spectrum",
    "stiffness_matrix",
]
