"""The observation of an environment: observers, goals and a clock, one after another."""

from collections.abc import Mapping
from typing import Any

import torch

from warpbots.envs.episode import Episode, check_numbers, clock_phase
from warpbots.observers import BoundObserver, Observer, detach, forget
from warpbots.scene.field_types import shown
from warpbots.simulation import Simulation

__all__ = ["WorldsObservation"]


class WorldsObservation:
    """Computes the observation of all worlds."""

    def __init__(self, simulation: Simulation[Any], episode: Episode):
        """Bind the observers.

        Args:
            simulation: The simulation.
            episode: The rules, which name the observers.
        """
        given = episode.observer if isinstance(episode.observer, tuple) else (episode.observer,)
        self._parts = [BoundObserver(one, simulation) if isinstance(one, Observer) else one for one in given]
        self._worlds, self._clock = simulation.worlds, episode.clock
        self._features: list[int] | None = None

    def __call__(
        self,
        state: Any,
        parameters: Mapping[str, torch.Tensor],
        goals: Mapping[str, torch.Tensor],
        age: torch.Tensor,
        control: torch.Tensor,
    ) -> torch.Tensor:
        """The observation, shape (worlds, features).

        Args:
            state: The state of all worlds.
            parameters: Parameters that differ from those of the model, by name.
            goals: The goals by name, each of shape (worlds, ...).
            age: Time since the start of the episode [s], shape (worlds,).
            control: Control signal in the last interval, 0 at the start of an episode, shape (worlds, channels).

        Raises:
            ValueError: An observer did not return a tensor of this shape, or a value is not finite.
        """
        found, device = [], age.device
        for part in self._parts:
            acting = {"control": control} if isinstance(part, BoundObserver) and part.takes_control else {}
            seen = part(state, **acting, **parameters) if isinstance(part, BoundObserver) else part(state)
            if not isinstance(seen, torch.Tensor) or seen.dim() != 2 or len(seen) != self._worlds:
                got = tuple(seen.shape) if isinstance(seen, torch.Tensor) else shown(seen)
                raise ValueError(
                    f"Episode: observer must return a torch tensor of shape ({self._worlds}, features), got {got}"
                )
            check_numbers(seen, "the observation", device)
            found.append(seen)
        self._check_features([seen.shape[1] for seen in found])
        like = found[0]
        found += [goal.reshape(self._worlds, -1).to(like) for goal in goals.values()]
        if self._clock is not None:
            found.append(clock_phase(age, self._clock).to(like))
        seen = torch.cat(found, dim=1)
        wrong = torch.nonzero(~torch.isfinite(seen.detach()))
        if len(wrong):
            world, feature = map(int, wrong[0])
            raise ValueError(
                f"Episode: the observation is {seen[world, feature].item():g} in world {world} at index {feature}, and "
                f"must be finite; check the observer for divisions by zero"
            )
        return seen

    def _check_features(self, now: list[int]) -> None:
        if self._features is None:
            self._features = now
        if now != self._features:
            raise ValueError(
                f"Episode: the observers returned {now} features, and {self._features} when the environment was made; "
                f"each must always return the same number"
            )

    def forget(self, worlds: torch.Tensor | None) -> None:
        """Clear the memory of observers in the worlds of a mask, or in all worlds."""
        forget(*self._parts, worlds=worlds)

    def detach(self) -> None:
        """Cut the gradient of the memory of observers."""
        detach(*self._parts)
