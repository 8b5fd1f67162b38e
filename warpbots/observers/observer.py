"""Observers: objects that are bound to a simulation and then observe its states."""

from typing import Any, Protocol, runtime_checkable

import torch

from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["BoundObserver", "Observation", "Observer", "Remembers", "forget"]


class Observation(Protocol):
    """The function that `bind` returns."""

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features)."""


@runtime_checkable
class Observer(Protocol):
    """An observer, which a controller accepts instead of a function of the state."""

    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`."""


@runtime_checkable
class Remembers(Protocol):
    """An observation with memory, or a controller with one: its value depends on the states of earlier calls.

    The memory is cleared at the start of each rollout. When a simulation is stepped by hand, call `forget` at the start
    of a motion, and after `warpbots.Simulation.reset` for the worlds that were reset.
    """

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """The next call is the first of a new motion.

        Args:
            worlds: Which worlds begin anew: a mask of shape (worlds,), bool, or indices; None for all.

        Raises:
            ValueError: `worlds` has another shape, or an index out of range.
        """


def forget(*parts: object, worlds: torch.Tensor | None = None) -> None:
    """Clear the memory of all `parts` that have one; see `Remembers.forget`."""
    for part in parts:
        if isinstance(part, Remembers):
            part.forget(worlds)


class BoundObserver:
    """The observation of an observer, which is pickled as the observer and its simulation.

    Copies share the observation, unless it has memory.
    """

    @checked
    def __init__(self, observer: Observer, simulation: "Simulation[Any]"):
        """Bind an observer.

        Args:
            observer: The observer.
            simulation: The simulation that is observed.
        """
        self._parts, self._observe = (observer, simulation), observer.bind(simulation)

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features)."""
        return self._observe(state, **parameters)

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """See `Remembers`."""
        forget(self._observe, worlds=worlds)

    def __reduce__(self) -> tuple:
        return type(self), self._parts

    def __deepcopy__(self, memo: dict) -> "BoundObserver":
        return type(self)(*self._parts) if isinstance(self._observe, Remembers) else self
