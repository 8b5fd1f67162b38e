"""Stress actuators and strain actuators of matter: stress, and strain of the rest lengths."""

import functools

import numpy as np

from warpbots.actuation_laws.stress import proportional
from warpbots.actuation_laws.stress_checks import law_and_constants
from warpbots.scene import Actuator, Expansion, Oscillation

__all__ = ["rest_strain"]


@functools.singledispatch
def rest_strain(actuator: Actuator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Stress [Pa] and strain of rest lengths [1] of an actuator at signal 1, both of shape (dim, dim).

    The signal is the control u or, for an `Oscillation`, its oscillating factor, which contains the amplitude.

    Raises:
        TypeError: The actuator acts neither by a strain nor by a stress that is proportional to the signal.
    """
    law, stress = law_and_constants(actuator, dim)
    if law is not proportional:
        raise TypeError(f"{type(actuator).__name__} has a stress that is not proportional to the signal")
    return stress, np.zeros((dim, dim))


@rest_strain.register
def _(actuator: Expansion, dim: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((dim, dim)), actuator.max_strain * _along(actuator.direction, dim)


@rest_strain.register
def _(actuator: Oscillation, dim: int) -> tuple[np.ndarray, np.ndarray]:
    # the amplitude is part of the signal, where it can be differentiated
    return np.zeros((dim, dim)), _along(actuator.direction, dim)


def _along(direction: tuple[float, ...] | None, dim: int) -> np.ndarray:
    return np.eye(dim) if direction is None else np.outer(direction, direction)
