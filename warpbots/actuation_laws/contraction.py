"""The sign of a control signal: whether an actuator contracts or expands."""

import functools

from warpbots.scene import Actuator, Cavity, Expansion, PneumaticCell, Pressure

__all__ = ["contraction"]


@functools.singledispatch
def contraction(actuator: Actuator, signal: float) -> float:
    """Contraction of `actuator` at a control signal, in [-1, 1]: 1 is full contraction, -1 full expansion.

    The contraction is the signal itself, unless a function is registered for the class of the actuator.
    """
    return signal


@contraction.register
def _(actuator: Pressure | PneumaticCell | Cavity | Expansion, signal: float) -> float:
    return -signal
