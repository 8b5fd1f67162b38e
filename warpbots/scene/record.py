"""Base of all scene objects, which are frozen, raise readable errors and are compared field by field."""

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, dataclass_transform

import numpy as np

from warpbots.near_names import names_arguments
from warpbots.scene.field_types import conform, fitted

__all__ = ["SceneError", "direction", "point", "record", "refuse"]


_LONG = 12
"""Number of entries above which an array is printed by its shape and range."""


class SceneError(ValueError):
    """Raised for a scene that cannot be simulated; the message names the object, its value and the remedy."""


def refuse(faults: list[str]) -> None:
    """Raise one `SceneError` that lists all `faults`; do nothing if the list is empty."""
    if faults:
        raise SceneError("\n".join(faults))


def point(value: Any, what: str, dim: int | None = None) -> tuple[float, ...]:
    """Convert `value` to a tuple of `dim` finite floats, or of two or three floats if `dim` is None.

    Raises:
        SceneError: `value` does not consist of this number of finite numbers.
    """
    try:
        found = fitted(value, tuple[float, ...], what)
    except ValueError:
        found = ()
    if len(found) not in ((2, 3) if dim is None else (dim,)):
        count = {None: "two (2D) or three (3D)", 2: "two", 3: "three"}[dim]
        raise SceneError(f"{what} must be {count} finite numbers, got {value!r}")
    return found


def direction(value: Any, what: str, dim: int | None = None) -> tuple[float, ...]:
    """Convert `value` to a unit vector of `dim` components, or of two or three components if `dim` is None.

    A unit vector is returned with the same bits.

    Raises:
        SceneError: `value` does not consist of this number of finite numbers, or it cannot be normalised.
    """
    n = point(value, what, dim)
    length = math.hypot(*n)
    if length == 0.0:
        raise SceneError(f"{what} must not be the zero vector")
    unit = n if abs(length - 1.0) < 1e-12 else tuple(c / length for c in n)
    if abs(math.hypot(*unit) - 1.0) > 1e-9:
        raise SceneError(f"{what} must be a vector that can be normalised, got {n} of length {length:g}")
    return unit


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def _shown(value: Any) -> str:
    """Text of `value` for `repr`; for a long array the text gives only its shape and range."""
    if isinstance(value, np.ndarray) and value.size > _LONG:
        return f"<{value.dtype} array of shape {value.shape}, from {float(value.min()):g} to {float(value.max()):g}>"
    return repr(value)


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: type) -> type:
    """Make `cls` a frozen dataclass that is compared field by field, including its arrays.

    Before the ``__post_init__`` of `cls` runs, the fields are converted to their annotated types, or a `SceneError` is
    raised. Arrays are read-only, also in copies and unpickled records.
    """
    check = cls.__dict__.get("__post_init__", lambda self: None)

    def __post_init__(self):
        try:
            conform(self)
        except ValueError as fault:
            raise SceneError(str(fault)) from None
        check(self)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        fields = (f.name for f in dataclasses.fields(self) if f.compare)
        return all(_equal(getattr(self, name), getattr(other, name)) for name in fields)

    def __repr__(self):
        fields = (f.name for f in dataclasses.fields(self) if f.repr)
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(getattr(self, name))}' for name in fields)})"

    def __setstate__(self, state):
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # pickle and copy.deepcopy do not keep this flag
        vars(self).update(state)

    cls.__post_init__ = __post_init__
    cls.__setstate__ = __setstate__
    cls.__eq__ = __eq__
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = __repr__
    cls.__hash__ = None
    made = names_arguments(dataclasses.dataclass(frozen=True, eq=False)(cls))
    made.__init__.__signature__ = _without_types(made.__init__)
    return made


def _without_types(function: Callable[..., None]) -> inspect.Signature:
    """Signature for ``help`` with names and defaults but without types, because `Shape` alone lists fifteen classes."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)
