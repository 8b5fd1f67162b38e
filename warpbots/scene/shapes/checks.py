"""What the constructors of shapes have in common: readable faults for numbers and arrays."""

from typing import Any

import numpy as np

from warpbots.scene.record import SceneError

__all__ = ["assign", "finite_array", "positive"]


def assign(instance: Any, **values: Any) -> None:
    """Set attributes of a frozen `instance`, in its own constructor."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def finite_array(value: Any, what: str, ndim: int, dtype: type = np.float64) -> np.ndarray:
    """`value` as a read-only array of `ndim` dimensions.

    Raises:
        SceneError: It is empty, has other dimensions, or holds a number that is not finite.
    """
    array = np.array(value, dtype=dtype)
    if array.ndim != ndim or array.size == 0:
        raise SceneError(f"{what} must be a non-empty array of {ndim} dimensions, got shape {array.shape}")
    if dtype is np.float64 and not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise SceneError(f"{what} must be finite, got {array[bad]} at index {bad}")
    array.flags.writeable = False
    return array


def positive(value: float, what: str) -> float:
    """`value` as a float.

    Raises:
        SceneError: It is not a finite number above zero.
    """
    value = float(value)
    if not (np.isfinite(value) and value > 0.0):
        raise SceneError(f"{what} must be a positive number, got {value:g}")
    return value
