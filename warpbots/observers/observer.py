"""What an observer is: something that is told the simulation, and then sees its states."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from warpbots.solvers import State

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["BoundObserver", "Observation", "Observer"]


class Observation(Protocol):
    """The function that `bind` returns."""

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features)."""


@runtime_checkable
class Observer(Protocol):
    """What a controller may be given instead of a function of the state."""

    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`."""


class BoundObserver:
    """The observation of an observer, which is pickled as the observer and its simulation.

    Copies share it, since it does not change.
    """

    def __init__(self, observer: Observer, simulation: "Simulation[Any]"):
        """Bind an observer.

        Args:
            observer: What is observed.
            simulation: Of what.
        """
        self._parts, self._observe = (observer, simulation), observer.bind(simulation)

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features)."""
        return self._observe(state, **parameters)

    def __reduce__(self) -> tuple:
        return type(self), self._parts

    def __deepcopy__(self, memo: dict) -> "BoundObserver":
        return self
