"""Actuators, which act on soft matter, cavities, cables and joints according to a control signal in [-1, 1]."""

from warpbots.scene import (
    Cable,
    Cavity,
    Expansion,
    Fibre,
    Motor,
    Muscle,
    Oscillation,
    PneumaticCell,
    Pressure,
    Servo,
    StressActuator,
    Torque,
)

__all__ = [
    "StressActuator",
    "Pressure",
    "Muscle",
    "Fibre",
    "PneumaticCell",
    "Cavity",
    "Cable",
    "Expansion",
    "Oscillation",
    "Motor",
    "Torque",
    "Servo",
]
