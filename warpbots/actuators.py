"""Actuators, which act on soft matter, cavities, cables, joints and obstacles by a control signal in [-1, 1]."""

from warpbots.scene.actuators import *  # noqa: F403 (all of them, so that a new one need not be named again)
from warpbots.scene.actuators import __all__ as _SOFT
from warpbots.scene.joint_motors import Servo, Torque
from warpbots.scene.prescribed_motion import VelocityDrive

__all__ = ["Torque", "Servo", "VelocityDrive"]
__all__ += [name for name in _SOFT if name != "Actuator"]
