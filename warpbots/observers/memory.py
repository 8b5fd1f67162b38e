"""Observations with memory or random noise, and the classes that hold the memory of observations."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from warpbots.observers.observer import Observation, Observer, detach, forget
from warpbots.scene.field_types import checked, conform, shown
from warpbots.simulation import Simulation
from warpbots.simulation.ages import chosen_worlds
from warpbots.simulation.rollouts import Rollout, innermost_rollout
from warpbots.solvers import State

__all__ = ["Delayed", "Noisy", "Recall", "interval", "remembering"]

_T = TypeVar("_T")

_remembered: ContextVar[torch.Tensor | None] = ContextVar("remembered", default=None)
"""The worlds whose memory a call changes, a mask of shape (worlds,), bool; None for all worlds."""


@contextlib.contextmanager
def remembering(worlds: torch.Tensor) -> Iterator[None]:
    """Context in which observations are remembered only in some worlds; in the others a call leaves no trace.

    The last observation of an episode is needed in addition to the first one of the next episode, while other worlds go
    on without a second look at the same moment.

    Args:
        worlds: Mask of the worlds, shape (worlds,), bool.
    """
    token = _remembered.set(worlds)
    try:
        yield
    finally:
        _remembered.reset(token)


def interval(simulation: "Simulation[Any]") -> float:
    """Length of a control interval [s]: of the rollout in progress, or outside of rollouts of `simulation`."""
    rollout = innermost_rollout()
    return simulation.dt if rollout is None else rollout.dt


class Memory(Generic[_T]):
    """Keeps a separate memory for each motion; every rollout begins with a new memory.

    The rollout may be one of another simulation than the simulation that the observer was made with, such as one with
    shorter steps. If a rollout runs within another rollout, the outer rollout keeps its memory.
    """

    def __init__(self, simulation: "Simulation[Any]", make: Callable[[], _T]):
        """Begin without any memory.

        Args:
            simulation: The simulation that the observer was made with.
            make: Function that makes the memory of a new motion.
        """
        self._simulation, self._make = simulation, make
        self._kept: WeakKeyDictionary[Rollout, _T] = WeakKeyDictionary()  # a rollout that ends takes its memory along
        self._by_steps: _T | None = None

    def now(self) -> _T:
        """The memory of the rollout in progress; outside of rollouts, the memory of the motion by single steps."""
        rollout = innermost_rollout()
        if rollout is not None:
            if rollout not in self._kept:
                self._kept[rollout] = self._make()
            return self._kept[rollout]
        if self._by_steps is None:
            self._by_steps = self._make()
        return self._by_steps

    def chosen(self, worlds: Any) -> torch.Tensor:
        """Convert `worlds`, a mask or a list of indices, to a mask of the chosen worlds, shape (worlds,), bool.

        Raises:
            ValueError: `worlds` is neither a mask nor a list of indices, or an index is out of range.
        """
        return chosen_worlds(worlds, self._simulation.worlds, torch.device("cpu"), "forget")

    def forget(self) -> None:
        """Delete the memories of all motions."""
        self._kept.clear()
        self._by_steps = None


class Recall:
    """Returns the values that were passed a fixed number of calls ago, separately for each world.

    If there were fewer earlier calls, the values of the first call are returned.
    """

    def __init__(self, simulation: "Simulation[Any]", calls: int):
        """Begin without values.

        Args:
            simulation: The simulation that is observed.
            calls: Number of calls by which the returned values are older than the current values.
        """
        self._calls = calls
        self._memory: Memory[_Past] = Memory(simulation, _Past)

    def __call__(self, now: torch.Tensor) -> torch.Tensor:
        """Store the values of this call, and return the values of `calls` calls ago, with their gradient.

        Args:
            now: Values of this call, shape (worlds, ...).
        """
        past, only = self._memory.now(), _remembered.get()
        rows = (-1, *[1] * (now.dim() - 1))
        values, new = past.values, past.new
        if values is None:
            new = torch.ones(len(now), dtype=torch.bool)
            values = [now] * self._calls
        _refuse_other_worlds(len(values[0]), len(now))
        if past.values is not None and new is not None:
            first = new.to(now.device).view(rows)
            values = [torch.where(first, now, value) for value in values]
        found, later = values[0], [*values[1:], now]
        if only is None:
            past.values, past.new = later, None
        else:
            kept = only.to(now.device).view(rows)
            past.values = [torch.where(kept, b, a) for a, b in zip(values, later, strict=True)]
            past.new = None if new is None else new & ~only.to(new.device)
        return found

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """Clear the memory of some worlds or of all worlds (`warpbots.observers.Remembers`)."""
        if worlds is None:
            self._memory.forget()
            return
        past, new = self._memory.now(), self._memory.chosen(worlds)
        past.new = new if past.new is None else past.new | new

    def detach(self) -> None:
        """Cut the gradient of the memory (`warpbots.observers.Remembers`)."""
        past = self._memory.now()
        past.values = None if past.values is None else [value.detach() for value in past.values]


@dataclasses.dataclass
class _Past:
    """The memory of `Recall` for one motion.

    Attributes:
        values: Values of the last calls, the oldest values first, each of shape (worlds, ...); None before the first
            call.
        new: Whether the next call is the first call of each world, shape (worlds,), bool; None if it is not the first
            call of any world.
    """

    values: list[torch.Tensor] | None = None
    new: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Delayed:
    """An observation with a delay, as from a camera or over a data bus.

    Attributes:
        observer: The observer whose observation is delayed.
        intervals: Delay [control intervals], at least 1. The first `intervals` calls return the first observation.
    """

    observer: Observer
    intervals: int

    def __post_init__(self):
        _check_observer(self)
        conform(self)
        if self.intervals < 1:
            raise ValueError(f"Delayed: intervals must be at least 1 control interval, got {self.intervals}")

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function of the state whose result is the observation of an earlier state.

        The result has the shape of the observation of `observer`. The function has memory
        (`warpbots.observers.Remembers`).
        """
        return _Late(self.observer.bind(simulation), Recall(simulation, self.intervals))


class _Late:
    def __init__(self, observe: Observation, recall: Recall):
        self._observe, self._recall = observe, recall

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        return self._recall(self._observe(state, **parameters))

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        forget(self._observe, self._recall, worlds=worlds)

    def detach(self) -> None:
        detach(self._observe, self._recall)


@dataclasses.dataclass(frozen=True)
class Noisy:
    """An observation with normally distributed noise, independent in each call and in each world.

    Attributes:
        observer: The observer to whose observation noise is added.
        deviation: Standard deviation of the noise in the units of the observation: a single number, or one number for
            each feature.
        seed: Seed of the noise. With a seed, every rollout has the same noise, and a world that is reset starts again
            with the noise of the first call. With None, the noise comes from torch's global generator, whose state
            `warpbots.minimize` stores in its checkpoints.
    """

    observer: Observer
    deviation: float | tuple[float, ...]
    seed: int | None = None

    def __post_init__(self):
        _check_observer(self)
        conform(self)
        deviations = self.deviation if isinstance(self.deviation, tuple) else (self.deviation,)
        if not all(math.isfinite(d) and d >= 0.0 for d in deviations):
            raise ValueError(f"Noisy: deviation must be finite and at least 0, got {self.deviation}")

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function of the state whose result is the observation of `observer` plus noise.

        With a seed the function counts its calls, so it has memory (`warpbots.observers.Remembers`).
        """
        return _Blurred(self.observer.bind(simulation), self, simulation)


class _Blurred:
    def __init__(self, observe: Observation, options: Noisy, simulation: "Simulation[Any]"):
        self._observe, self._deviation, self._seed = observe, options.deviation, options.seed
        self._memory: Memory[_Age] = Memory(simulation, _Age)

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        seen = self._observe(state, **parameters)
        deviation = seen.new_tensor(self._deviation)
        if deviation.dim() and len(deviation) != seen.shape[-1]:
            raise ValueError(
                f"Noisy: deviation must be one number or {seen.shape[-1]}, one for each feature, got {len(deviation)}"
            )
        return seen + deviation * (torch.randn_like(seen) if self._seed is None else self._noise(seen))

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """Clear the memory of some worlds or of all worlds (`warpbots.observers.Remembers`)."""
        if worlds is None:
            self._memory.forget()
        else:
            age, chosen = self._memory.now(), self._memory.chosen(worlds).numpy()
            if age.calls is not None:
                age.calls[chosen] = 0
        forget(self._observe, worlds=worlds)

    def detach(self) -> None:
        """Cut the gradient of the memory of the observer; noise has none (`warpbots.observers.Remembers`)."""
        detach(self._observe)

    def _noise(self, like: torch.Tensor) -> torch.Tensor:
        """Standard normal noise, which depends on the seed, the world, and the calls since the start of the world."""
        age, noise, only = self._memory.now(), torch.empty_like(like), _remembered.get()
        if age.calls is None:
            age.calls = np.zeros(len(like), dtype=np.int64)
        _refuse_other_worlds(len(age.calls), len(like))
        for earlier in np.unique(age.calls):
            bits = np.random.SeedSequence((self._seed % 2**64, int(earlier))).generate_state(1, np.uint64)
            generator = torch.Generator(like.device).manual_seed(int(bits[0]))
            drawn = torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator)
            rows = torch.as_tensor(np.flatnonzero(age.calls == earlier), device=like.device)
            noise[rows] = drawn[rows]
        age.calls += 1 if only is None else only.cpu().numpy()
        return noise


@dataclasses.dataclass
class _Age:
    """The memory of `Noisy` for one motion.

    Attributes:
        calls: Number of earlier calls of each world, shape (worlds,); None before the first call.
    """

    calls: np.ndarray | None = None


def _refuse_other_worlds(before: int, now: int) -> None:
    if before != now:
        raise ValueError(
            f"an observer with memory was called for {before} worlds, and is now called for {now}: another motion "
            f"begins; call forget of the observer, or of its controller, before it"
        )


def _check_observer(wrapper: Delayed | Noisy) -> None:
    if not isinstance(wrapper.observer, Observer):
        raise TypeError(
            f"{type(wrapper).__name__}: observer must be an observer of warpbots.observers, got "
            f"{shown(wrapper.observer)}"
        )
