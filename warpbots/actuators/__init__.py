"""From control signals to stress and force."""

from warpbots.actuators.activation import activation, activation_arrays, active_stress
from warpbots.actuators.cable import cable_arrays, cable_kernels
from warpbots.actuators.fibre import fibre_pull
from warpbots.actuators.pneumatic_cell import cell_functions
from warpbots.actuators.strain import rest_strain
from warpbots.actuators.stress import pattern

__all__ = [
    "activation",
    "activation_arrays",
    "active_stress",
    "cable_arrays",
    "cable_kernels",
    "cell_functions",
    "fibre_pull",
    "pattern",
    "rest_strain",
]
