"""Laws of actuators: stresses and forces as functions of the control signals."""

from warpbots.actuation_laws.activation import activation, activation_arrays, active_stress
from warpbots.actuation_laws.cable import cable_arrays, cable_kernels
from warpbots.actuation_laws.fibre import fibre_pull
from warpbots.actuation_laws.pneumatic_law import cell_functions
from warpbots.actuation_laws.strain import rest_strain
from warpbots.actuation_laws.stress import acts_as_stress, pattern

__all__ = [
    "activation",
    "activation_arrays",
    "active_stress",
    "acts_as_stress",
    "cable_arrays",
    "cable_kernels",
    "cell_functions",
    "fibre_pull",
    "pattern",
    "rest_strain",
]
