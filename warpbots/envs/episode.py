"""The rules of an episode: observation, reward, end and random start; and the judgement of single control intervals."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Generic

import torch

from warpbots.envs.draws import Draw
from warpbots.observers import Observer
from warpbots.scene.field_types import conform, shown
from warpbots.simulation import Simulation
from warpbots.trajectory import TensorState_co

__all__ = ["Episode", "Judge", "Transition", "check_numbers", "clock_phase"]


@dataclasses.dataclass(frozen=True, eq=False)
class Transition(Generic[TensorState_co]):
    """One control interval of all worlds, the argument of rewards and of conditions for the end of an episode.

    Attributes:
        simulation: The simulation.
        before: The state at the start of the interval.
        control: The control signal in the interval, shape (worlds, channels).
        after: The state at the end of the interval. A lost world keeps the state `before`.
        age: Time since the start of the episode at the end of the interval [s], shape (worlds,).
        goals: The goals of the episode by name, each of shape (worlds, ...).
        parameters: The parameters that differ from those of the model, by name, each of shape (worlds, ...).
    """

    simulation: Simulation[TensorState_co]
    before: TensorState_co
    control: torch.Tensor
    after: TensorState_co
    age: torch.Tensor
    goals: Mapping[str, torch.Tensor]
    parameters: Mapping[str, torch.Tensor]


Reward = Callable[[Transition[Any]], torch.Tensor | Mapping[str, torch.Tensor]]
Condition = Callable[[Transition[Any]], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Episode:
    """The rules of an episode of reinforcement learning, for any simulation whose scene they fit.

    Attributes:
        observer: Source of the observation: an observer of `warpbots.observers`, a function of the state that returns a
            tensor of shape (worlds, features), or a tuple of these, whose observations follow one another. Goals follow
            after them, and then the clock. Motor torques and other observations that depend on a control see the
            control of the last interval, or 0 at the start of an episode.
        reward: A function of a `Transition` that returns the reward of each world, shape (worlds,), or several terms by
            name, whose sum is the reward.
        steps: Number of control intervals after which an episode is truncated, at least 1.
        terminated: A function of a `Transition` that returns whether the episode of each world is over, shape
            (worlds,), bool; None if episodes end only by time or by the loss of a world.
        start: How fields of the state at the start are drawn, by the name of the field.
        parameters: How parameters of the model are drawn, by name; see `warpbots.Simulation.parameters`.
        goals: How goals are drawn, by name: numbers that the reward needs and the observation contains, such as the
            position of a target. The value without randomness is a single 0; a draw may return an array.
        clock: Period of a clock [s]; its sine and cosine are part of the observation. None for no clock.
    """

    observer: Observer | Callable[[Any], torch.Tensor] | tuple[Observer | Callable[[Any], torch.Tensor], ...]
    reward: Reward
    steps: int
    terminated: Condition | None = None
    start: Mapping[str, Draw] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Draw] = dataclasses.field(default_factory=dict)
    goals: Mapping[str, Draw] = dataclasses.field(default_factory=dict)
    clock: float | None = None

    def __post_init__(self):
        conform(self)
        if self.observer == ():
            raise ValueError("Episode: observer is an empty tuple; name at least one observer, such as Centroid()")
        if self.steps < 1:
            raise ValueError(f"Episode: steps must be at least 1 control interval, got {self.steps}")
        if self.clock is not None and not self.clock > 0.0:
            raise ValueError(f"Episode: clock must be a positive period [s], or None, got {self.clock:g}")


class Judge:
    """Rewards and ends of control intervals by the rules of an episode, checked."""

    def __init__(self, episode: Episode, worlds: int):
        """Store the arguments.

        Args:
            episode: The rules.
            worlds: Number of worlds.
        """
        self._episode, self._worlds = episode, worlds

    def reward(self, transition: Transition[Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The reward of each world, shape (worlds,), and its terms by name, each of this shape.

        Raises:
            ValueError: The reward is not a tensor of this shape, a value is not finite, or the function has changed the
                state.
        """
        found = _without_changes(self._episode.reward, "reward", transition)
        terms = dict(found) if isinstance(found, Mapping) else {"reward": found}
        if not terms:
            raise ValueError("Episode: reward returned no term; return a tensor of shape (worlds,), or terms by name")
        for name, value in terms.items():
            if not isinstance(name, str) or name.startswith("_"):
                raise ValueError(
                    f"Episode: a term of the reward is called {shown(name)}; its name must be a text that does not "
                    f"begin with _, which is for the masks in infos"
                )
            term = "reward" if name == "reward" else f"term {name!r} of the reward"
            self._check(value, term, transition)
            remedy = "end episodes before that, by terminated=..., or bound it, for example with torch.clamp or log1p"
            _check_finite(value, term, "", remedy, transition)
        total = torch.stack(list(terms.values())).sum(dim=0).to(transition.control.dtype)
        what, precision = "the sum of the terms of the reward", f" in {total.dtype}"
        _check_finite(total, what, precision, "scale the reward down", transition)
        return total, terms if isinstance(found, Mapping) else {}

    def terminated(self, transition: Transition[Any]) -> torch.Tensor:
        """Whether the episode of each world is over, shape (worlds,), bool.

        Raises:
            ValueError: The condition did not return a mask of this shape, or has changed the state.
        """
        if self._episode.terminated is None:
            return torch.zeros(self._worlds, dtype=torch.bool, device=transition.control.device)
        found = _without_changes(self._episode.terminated, "terminated", transition)
        self._check(found, "terminated", transition)
        if found.dtype != torch.bool:
            raise ValueError(f"Episode: terminated must return a mask, bool, got numbers of type {found.dtype}")
        return found

    def _check(self, value: Any, what: str, transition: Transition[Any]) -> None:
        if not isinstance(value, torch.Tensor) or value.shape != (self._worlds,):
            got = tuple(value.shape) if isinstance(value, torch.Tensor) else shown(value)
            raise ValueError(
                f"Episode: {what} must be a torch tensor of shape ({self._worlds},), one value for each world, got "
                f"{got}"
            )
        check_numbers(value, what, transition.control.device)


def _check_finite(value: torch.Tensor, what: str, precision: str, remedy: str, transition: Transition[Any]) -> None:
    """Raise a ValueError if a value is not finite in a world; `precision` follows the value in the message."""
    wrong = torch.nonzero(~torch.isfinite(value.detach())).flatten()
    if len(wrong):
        world = int(wrong[0])
        raise ValueError(
            f"Episode: {what} is {value[world].item():g}{precision} in world {world} at t = "
            f"{transition.age[world].item():.6g} s, and must be finite; {remedy}"
        )


def _without_changes(function: Callable[[Transition[Any]], Any], what: str, transition: Transition[Any]) -> Any:
    """What a function returns, or a ValueError if it changes a tensor of the transition in place."""
    fields = {f"state {name}": field for name, field in vars(transition.after).items()}
    fields |= {f"goal {name}": field for name, field in transition.goals.items()} | {"control": transition.control}
    fields = {name: field for name, field in fields.items() if not field.is_inference()}  # these count no changes
    before = {name: field._version for name, field in fields.items()}
    found = function(transition)
    for name, field in fields.items():
        if field._version != before[name]:
            raise ValueError(
                f"Episode: {what} changes {name} in place, and the motion with it; use operations that make a new "
                f"tensor, such as 2 * x for x.mul_(2)"
            )
    return found


def check_numbers(value: torch.Tensor, what: str, device: torch.device) -> None:
    """Raise a ValueError if `value`, which is called `what`, has complex numbers or is not on `device`."""
    if value.is_complex():
        raise ValueError(f"Episode: {what} must have real numbers, got type {value.dtype}; take its .real or abs()")
    if value.device != device:
        raise ValueError(
            f"Episode: {what} must be on the device of the simulation, {device}, got a tensor on {value.device}; make "
            f"it from tensors of the state"
        )


def clock_phase(age: torch.Tensor, period: float) -> torch.Tensor:
    """Sine and cosine of a clock, shape (worlds, 2).

    Args:
        age: Time since the start of the episode [s], shape (worlds,).
        period: Period of the clock [s].
    """
    phase = 2.0 * math.pi * age[:, None] / period
    return torch.cat([phase.sin(), phase.cos()], dim=1)
