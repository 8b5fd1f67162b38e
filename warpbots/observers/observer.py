"""Protocols of observers, which are bound to a simulation and then compute observations from its states."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import torch

from warpbots.near_names import no_parameter
from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.simulation.rollouts import replaced_parameters
from warpbots.solvers import State

__all__ = ["BoundObserver", "Observation", "Observer", "Remembers", "detach", "forget", "refuse_unknown"]


class Observation(Protocol):
    """A function from a state to an observation; the result of `Observer.bind`."""

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features)."""


@runtime_checkable
class Observer(Protocol):
    """An observer; a controller accepts an observer or a function of the state."""

    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return the function that computes the observation of a state of `simulation`."""


@runtime_checkable
class Remembers(Protocol):
    """An observation or a controller with memory: the result of a call depends on the states of earlier calls.

    A rollout starts without memory. If you simulate by single steps (`warpbots.Simulation.step`), call `forget` at the
    start of a motion, and after `warpbots.Simulation.reset` for the worlds that were reset. Call `detach` wherever you
    cut the gradient of the state.
    """

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """Clear the memory, so that the next call is the first one of a new motion.

        Args:
            worlds: The worlds that begin a new motion, as a mask of shape (worlds,), bool, or a list of indices; None
                for all worlds.

        Raises:
            ValueError: `worlds` has another shape, or an index is out of range.
        """

    def detach(self) -> None:
        """Cut the gradient of the memory: later results do not depend on the states of earlier calls."""


@runtime_checkable
class _Forgets(Protocol):
    """The first half of `Remembers`, to tell an incomplete memory from no memory."""

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """See `Remembers`."""


def refuse_unknown(simulation: "Simulation[Any]", parameters: Mapping[str, Any]) -> None:
    """For observations on which parameters have no effect: raise if the model of `simulation` lacks one of them.

    Raises:
        ValueError: There is no such parameter.
    """
    known = simulation.parameters() if parameters else {}
    for name in parameters:
        if name not in known:
            raise ValueError(no_parameter(name, known))


def forget(*parts: object, worlds: torch.Tensor | None = None) -> None:
    """Call the method `forget` of each object in `parts` that has memory (`Remembers.forget`).

    Raises:
        TypeError: An object has a method `forget` but no method `detach`.
    """
    for part in _with_memory(parts):
        part.forget(worlds)


def detach(*parts: object) -> None:
    """Call the method `detach` of each object in `parts` that has memory (`Remembers.detach`).

    Raises:
        TypeError: An object has a method `forget` but no method `detach`.
    """
    for part in _with_memory(parts):
        part.detach()


def _with_memory(parts: tuple[object, ...]) -> Iterator[Remembers]:
    for part in parts:
        if isinstance(part, Remembers):
            yield part
        elif isinstance(part, _Forgets):
            raise TypeError(
                f"{type(part).__name__} has memory, since it has a method forget, but no method detach; give it one "
                f"that cuts the gradient of its memory (warpbots.observers.Remembers)"
            )


def _takes_parameters(observe: Any) -> bool:
    """Whether a function takes any parameters by name, as every `Observation` should; functions of users may not."""
    called = observe.forward if isinstance(observe, torch.nn.Module) else observe
    kinds = (one.kind for one in inspect.signature(called).parameters.values())
    return inspect.Parameter.VAR_KEYWORD in kinds


def _takes_control(observe: Any) -> bool:
    """Whether an observation, or the one that is delayed or noisy in it, has an argument ``control``."""
    inner = getattr(observe, "_observe", None)
    if callable(inner):
        return _takes_control(inner)
    return not isinstance(observe, torch.nn.Module) and "control" in inspect.signature(observe).parameters


class BoundObserver:
    """The observation that an observer computes for a simulation, in a form that can be pickled and copied.

    In a rollout that replaces parameters, these parameters apply to the observation as well. A pickle contains the
    observer and the simulation. Copies use the same function for the observation, unless the function has memory.

    Attributes:
        takes_control: Whether the observation depends on a control signal, the argument ``control`` of a call, as that
            of motor torques does.
    """

    @checked
    def __init__(self, observer: Observer, simulation: "Simulation[Any]"):
        """Bind `observer` to `simulation`.

        Args:
            observer: The observer.
            simulation: The simulation that is observed.
        """
        self._parts, self._observe = (observer, simulation), observer.bind(simulation)
        self._takes_parameters = _takes_parameters(self._observe)
        self.takes_control = _takes_control(self._observe)
        self._shapes = {name: field.shape[1:] for name, field in vars(simulation.state()).items()}

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        """The observation of `state`, shape (worlds, features).

        Args:
            state: The state.
            parameters: Tensors instead of the model's parameters, by name; in a rollout, in addition to those that the
                rollout replaces.

        Raises:
            ValueError: The fields of the state have other shapes than those of the simulation, whatever the number of
                worlds is.
        """
        for name, shape in self._shapes.items():
            if (field := getattr(state, name, None)) is not None and field.shape[1:] != shape:
                observer, simulation = self._parts
                raise ValueError(
                    f"{type(observer).__name__} observes the simulation of {simulation.scene.name!r} that it was made "
                    f"with, and got a state of another one: its {name} has shape {tuple(field.shape)} instead of "
                    f"{('worlds', *shape)}; make the observer, or its controller, with the simulation that runs"
                )
        return self._observe(state, **self._of_rollout() | parameters)

    def _of_rollout(self) -> dict[str, torch.Tensor]:
        """Parameters of the model that the rollout in progress replaces, if the observation takes parameters."""
        replaced = replaced_parameters() if self._takes_parameters else {}
        known = self._parts[1].parameters() if replaced else {}
        return {name: value for name, value in replaced.items() if name in known}

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """Clear the memory of the observation, if the observation has memory (`Remembers.forget`)."""
        forget(self._observe, worlds=worlds)

    def detach(self) -> None:
        """Cut the gradient of the memory, if the observation has memory (`Remembers.detach`)."""
        detach(self._observe)

    def __reduce__(self) -> tuple:
        return type(self), self._parts

    def __deepcopy__(self, memo: dict) -> "BoundObserver":
        return type(self)(*self._parts) if isinstance(self._observe, Remembers) else self
