"""Random values of states, parameters and goals, drawn anew for each episode of each world."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from warpbots.scene.field_types import shown

__all__ = ["Draw", "Scaled", "Shifted", "UniformValue"]


Draw = Callable[[torch.Tensor, np.random.Generator], Any]
"""A function (value, generator) that draws a value for one episode of one world.

The first argument is the value of this world without randomness, of the model or of the state at the start; the result
must broadcast to its shape. All random numbers must come from the generator, which belongs to this world."""


@dataclasses.dataclass(frozen=True)
class _Range:
    """A range of values, and how many numbers are drawn from it.

    Attributes:
        lower: Lower end of the range: a number, or numbers of a shape that broadcasts to the shape of the value.
        upper: Upper end, likewise.
        each: Whether every entry of the value gets a number of its own. Otherwise as many numbers are drawn as the ends
            have entries, and entries of the value along the other axes share them.
    """

    lower: Any
    upper: Any
    each: bool = False

    def __post_init__(self):
        name = type(self).__name__
        try:
            lower, upper = np.broadcast_arrays(np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float))
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: lower and upper must be numbers or arrays of one shape, got {shown(self.lower)} and "
                f"{shown(self.upper)}"
            ) from None
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower <= upper).all()):
            raise ValueError(
                f"{name}: lower and upper must be finite, and lower at most upper, got {shown(self.lower)} and "
                f"{shown(self.upper)}"
            )
        self._check(name, lower)

    def _check(self, name: str, lower: np.ndarray) -> None:
        """Raise a ValueError if the range has values that the draw cannot take."""

    def _drawn(self, value: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """Numbers of the range, of the type and on the device of `value`."""
        shape, wanted = np.broadcast_shapes(np.shape(self.lower), np.shape(self.upper)), tuple(value.shape)
        if wanted and not _broadcasts(shape, wanted):
            raise ValueError(
                f"{type(self).__name__}: lower and upper have shape {shape}, which does not broadcast to shape "
                f"{wanted} of the value that is drawn for a world"
            )
        return torch.as_tensor(self._between(generator.random(tuple(value.shape) if self.each else shape))).to(value)

    def _between(self, share: np.ndarray) -> np.ndarray:
        """The values at a `share` of the way from the lower to the upper end."""
        lower, upper = np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
        return lower + (upper - lower) * share


class UniformValue(_Range):
    """A value between `lower` and `upper`, uniformly distributed, whatever the value was before."""

    def __call__(self, value: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """See `Draw`."""
        return self._drawn(value, generator)


class Shifted(_Range):
    """The value plus a shift between `lower` and `upper`, uniformly distributed, in the unit of the value."""

    def __call__(self, value: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """See `Draw`."""
        return value + self._drawn(value, generator)


class Scaled(_Range):
    """The value times a positive factor between `lower` and `upper`, whose logarithm is uniformly distributed [1]."""

    def _check(self, name: str, lower: np.ndarray) -> None:
        if not (lower > 0.0).all():
            raise ValueError(
                f"{name}: lower must be above 0, because the logarithm of the factor is uniformly distributed, got "
                f"{shown(self.lower)}; use Shifted or UniformValue for ranges that contain 0"
            )

    def _between(self, share: np.ndarray) -> np.ndarray:
        lower, upper = np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
        return np.exp(np.log(lower) + (np.log(upper) - np.log(lower)) * share)

    def __call__(self, value: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """See `Draw`."""
        return value * self._drawn(value, generator)


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `wanted` without changing it."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False
