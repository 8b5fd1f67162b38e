"""The sign of a control signal: whether an actuator contracts or expands."""

from warpbots.scene import Actuator, Cavity, Expansion, PneumaticCell, Pressure

__all__ = ["contraction"]


def contraction(actuator: Actuator, signal: float) -> float:
    """Contraction of `actuator` at a control signal, in [-1, 1]: 1 is full contraction, -1 full expansion."""
    return -signal if isinstance(actuator, Pressure | PneumaticCell | Cavity | Expansion) else signal
