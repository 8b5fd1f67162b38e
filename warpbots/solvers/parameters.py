"""Parameters that several solvers have."""

from math import inf

from warpbots.numerics.parameters import Parameter

__all__ = [
    "AMPLITUDE", "DAMPING", "DENSITY", "FREQUENCY", "FRICTION", "GRAVITY", "LOAD", "PHASE", "POISSONS_RATIO", "SPEED",
    "TORQUE", "YOUNGS_MODULUS",
]  # fmt: skip

YOUNGS_MODULUS = Parameter("Pa", 0.0, inf, "element", "Young's modulus", intensive=True)
POISSONS_RATIO = Parameter("1", -1.0, 0.5, "element", "Poisson's ratio", intensive=True)
DENSITY = Parameter("kg/m^3", 0.0, inf, "element", "density at rest", intensive=True)
DAMPING = Parameter("s", 0.0, inf, "element", "time of Kelvin-Voigt damping", inclusive=True, intensive=True)
LOAD = Parameter("N", -inf, inf, "element", "steady force", entry="vector")
FRICTION = Parameter("1", 0.0, inf, "obstacle", "Coulomb coefficient", inclusive=True)
GRAVITY = Parameter("m/s^2", -inf, inf, "component", "gravitational acceleration", axes="", entry="vector")
AMPLITUDE = Parameter("1", -1.0, 1.0, "oscillation", "strain of an oscillation")
FREQUENCY = Parameter("Hz", 0.0, inf, "oscillation", "frequency of an oscillation", inclusive=True)
PHASE = Parameter(
    "rad", -inf, inf, "oscillation", "phase of an oscillation", meaning="phase of an oscillation at time 0"
)
TORQUE = Parameter("N m", 0.0, inf, "motor", "torque of a motor at standstill", inclusive=True)
SPEED = Parameter("rad/s", 0.0, inf, "motor", "speed of a motor without load")
