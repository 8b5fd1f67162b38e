"""Actuators that act as a stress in the undeformed body: pressure chambers and muscles.

At control u the Kirchhoff stress of a driven particle gains u F S F^T with a constant symmetric S, the actuator's
pattern (ChainQueen eq. 15, read as in A69: P gains F sigma). A positive S pulls matter together.
"""

import functools

import numpy as np

from warpbots.scene import Actuator, Muscle, Pressure

__all__ = ["acts_as_stress", "pattern"]


@functools.singledispatch
def pattern(actuator: Actuator, dim: int) -> np.ndarray:
    """Stress S of `actuator` at u = 1 in the undeformed body [Pa], shape (dim, dim).

    Raises:
        TypeError: The actuator does not act as a stress.
    """
    raise TypeError(f"{type(actuator).__name__} is not a stress actuator; register its stress with pattern")


@pattern.register
def _(actuator: Pressure, dim: int) -> np.ndarray:
    return -actuator.max_pressure * np.eye(dim)


@pattern.register
def _(actuator: Muscle, dim: int) -> np.ndarray:
    return actuator.max_stress * np.outer(actuator.direction, actuator.direction)


def acts_as_stress(actuator: Actuator) -> bool:
    """Whether an actuator acts as a stress: its class, or one that it derives from, has a `pattern`."""
    return pattern.dispatch(type(actuator)) is not pattern.dispatch(object)
