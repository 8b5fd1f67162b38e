"""Laws of actuators: stresses and forces as functions of the control signals."""

import typing

from warpbots.actuation_laws.activation import (
    ActivationArrays,
    ActiveLaw,
    activation,
    active_laws,
    active_stress,
    active_work,
)
from warpbots.actuation_laws.cable import cable_arrays, cable_kernels
from warpbots.actuation_laws.contraction import contraction
from warpbots.actuation_laws.fibre import fibre_pull
from warpbots.actuation_laws.pneumatic_law import cell_functions
from warpbots.actuation_laws.strain import rest_strain
from warpbots.actuation_laws.stress import acts_as_stress, proportional, stress_law
from warpbots.actuation_laws.stress_checks import kept_stress_laws, law_and_constants, without_energy
from warpbots.renamed import refuse_former

__all__ = [
    "ActivationArrays",
    "ActiveLaw",
    "activation",
    "active_laws",
    "active_stress",
    "active_work",
    "acts_as_stress",
    "cable_arrays",
    "cable_kernels",
    "cell_functions",
    "contraction",
    "fibre_pull",
    "kept_stress_laws",
    "law_and_constants",
    "proportional",
    "rest_strain",
    "stress_law",
    "without_energy",
]

if not typing.TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
