"""Actuators that act as a stress in the undeformed body: `Pressure` and `Muscle`.

At the control u an actuator adds u F S F^T to the Kirchhoff stress of a driven particle. S is constant and symmetric,
the pattern of the actuator (ChainQueen eq. 15, read as in its eq. A69: it adds F sigma to P). A positive S pulls matter
together.
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
    """Whether an actuator acts as a stress: a function `pattern` is registered for its class or a base class."""
    return pattern.dispatch(type(actuator)) is not pattern.dispatch(object)
