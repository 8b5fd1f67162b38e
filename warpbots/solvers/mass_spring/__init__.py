"""The mass-spring solver: lattices of masses and springs, their statics and their natural modes."""

from typing import TYPE_CHECKING

from warpbots.renamed import refuse_former
from warpbots.solvers.mass_spring.measurements import MassSpringReadings
from warpbots.solvers.mass_spring.modal_analysis import natural_modes, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.solver import MassSpring
from warpbots.solvers.mass_spring.spectrum import Spectrum, spectrum
from warpbots.solvers.mass_spring.statics import equilibrium, forces

__all__ = [
    "MassSpring",
    "MassSpringModel",
    "MassSpringState",
    "MassSpringReadings",
    "Spectrum",
    "equilibrium",
    "forces",
    "natural_modes",
    "spectrum",
    "stiffness_matrix",
]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
