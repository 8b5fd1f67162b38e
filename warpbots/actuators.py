"""Actuators, which act on soft matter, cavities, cables and joints according to a control signal in [-1, 1]."""

from warpbots.scene.actuators import *  # noqa: F403 (all of them, so that a new one need not be named again)
from warpbots.scene.actuators import __all__ as _SOFT
from warpbots.scene.joint_motors import Servo, Torque

__all__ = ["Torque", "Servo"]
__all__ += [name for name in _SOFT if name != "Actuator"]
