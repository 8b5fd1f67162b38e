"""What actuators do: a control signal becomes stress or force."""

from warpbots.actuators.cable import cable_arrays, cable_kernels
from warpbots.actuators.strain import rest_strain
from warpbots.actuators.stress import pattern

__all__ = ["cable_arrays", "cable_kernels", "pattern", "rest_strain"]
