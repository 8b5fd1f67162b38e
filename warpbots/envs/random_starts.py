"""The randomness of an environment: a generator for each world, and what the worlds draw from it for an episode."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from warpbots.envs.draws import Draw
from warpbots.envs.episode import Episode
from warpbots.scene.field_types import shown
from warpbots.simulation import Simulation

__all__ = ["RandomStarts", "seeds_of"]


class RandomStarts:
    """Draws starts, parameters and goals; each world has a generator of its own.

    Attributes:
        generators: The generator of each world.
    """

    def __init__(self, simulation: Simulation[Any], episode: Episode):
        """Check the names of what is drawn.

        Args:
            simulation: The simulation.
            episode: The rules that say what is drawn.

        Raises:
            ValueError: The state has no such field, or the model no such parameter.
        """
        self._episode, self._rest = episode, simulation.state()
        self._fields = vars(self._rest)
        for what, known, given in (
            ("start: a state", self._fields, episode.start),
            ("parameters: the model", simulation.parameters(), episode.parameters),
        ):
            for name in given:
                if name not in known:
                    raise ValueError(f"Episode: {what} has no {name!r}; it has {', '.join(known)}")
        self.parameters_of_model = {name: simulation.parameter(name) for name in episode.parameters}
        self.generators: list[np.random.Generator] = []
        self._noise: torch.Tensor | None = None

    def seed(self, seeds: Sequence[int | None]) -> None:
        """Give each world a new generator; None leaves the generator of a world as it is, if it has one."""
        old = self.generators or [None] * len(seeds)
        self.generators = [
            np.random.default_rng(seed) if seed is not None or before is None else before
            for seed, before in zip(seeds, old, strict=True)
        ]
        if self._noise is None or any(seed is not None for seed in seeds):
            bits = np.random.SeedSequence([int(g.bit_generator.seed_seq.entropy) for g in self.generators])
            self._noise = torch.Generator().manual_seed(int(bits.generate_state(1, np.uint64)[0])).get_state()

    @contextlib.contextmanager
    def noise(self, device: torch.device) -> Iterator[None]:
        """Context in which torch's global generators are those of the environment, for observers with noise."""
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.set_rng_state(self._noise)
            if device.type == "cuda":
                torch.cuda.manual_seed(int(torch.randint(2**62, ())))
            yield
            self._noise = torch.get_rng_state()

    def start(self, worlds: torch.Tensor) -> dict[str, torch.Tensor]:
        """Fields of a start, with new values in the chosen worlds, by name.

        Args:
            worlds: Mask of the worlds, shape (worlds,), bool.
        """
        given = {name: self._fields[name] for name in self._episode.start}
        return self._drawn("start", self._episode.start, given, given, worlds)

    def parameters(self, worlds: torch.Tensor, before: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Parameters, with new values in the chosen worlds, by name.

        Args:
            worlds: Mask of the worlds, shape (worlds,), bool.
            before: The parameters so far, for the other worlds; empty at the first start.
        """
        draws, own = self._episode.parameters, self.parameters_of_model
        return self._drawn("parameters", draws, own, {**own, **before}, worlds)

    def goals(self, worlds: torch.Tensor, before: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Goals, with new values in the chosen worlds, by name; arguments as for `parameters`."""
        goals = {}
        like = next(iter(self._fields.values()))
        for name, draw in self._episode.goals.items():
            rows = [
                _numbers(draw(like.new_zeros(()), generator), like, f"goals[{name!r}]")
                if chosen or not before
                else before[name][i]
                for i, (chosen, generator) in enumerate(zip(worlds.tolist(), self.generators, strict=True))
            ]
            shapes = {tuple(row.shape) for row in rows}
            if len(shapes) > 1:
                raise ValueError(
                    f"Episode: goals[{name!r}] must be of one shape in all episodes, got shapes {sorted(shapes)}"
                )
            goals[name] = _finite(torch.stack(rows), f"goals[{name!r}]")
        return goals

    def _drawn(
        self,
        what: str,
        draws: Mapping[str, Draw],
        own: Mapping[str, torch.Tensor],
        before: Mapping[str, torch.Tensor],
        worlds: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """New values in the chosen worlds, and those of `before` in the others.

        Args:
            what: Name of what is drawn, for messages.
            draws: How values are drawn, by name.
            own: The values without randomness, by name, each of shape (worlds, ...).
            before: The values so far, by name.
            worlds: Mask of the worlds, shape (worlds,), bool.
        """
        found = {}
        for name, draw in draws.items():
            rows = list(before[name].unbind())
            for world in torch.nonzero(worlds).flatten().tolist():
                value = own[name][world]
                new = draw(value.clone(), self.generators[world])
                try:
                    rows[world] = torch.as_tensor(new).to(value).expand(value.shape)
                except (TypeError, ValueError, RuntimeError):
                    raise ValueError(
                        f"Episode: {what}[{name!r}] must draw values that broadcast to shape {tuple(value.shape)}, got "
                        f"{tuple(new.shape) if isinstance(new, torch.Tensor) else shown(new)}"
                    ) from None
            found[name] = _finite(torch.stack(rows), f"{what}[{name!r}]")
        return found


def seeds_of(seed: Any, worlds: int) -> list[int | None]:
    """The seed of each world: from one integer s, these are s, s + 1, ...

    Args:
        seed: An integer, one integer or None for each world, or None.
        worlds: Number of worlds.

    Raises:
        ValueError: `seed` is neither, or an integer is negative.
    """
    if seed is None:
        return [None] * worlds
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        seed = [int(seed) + i for i in range(worlds)]
    if not isinstance(seed, Sequence) or len(seed) != worlds:
        raise ValueError(
            f"reset: seed must be an integer, {worlds} integers, one for each world, or None, got {shown(seed)}"
        )
    for one in seed:
        if one is not None and (isinstance(one, bool) or not isinstance(one, int | np.integer) or one < 0):
            raise ValueError(f"reset: a seed must be an integer of at least 0, got {shown(one)}")
    return [None if one is None else int(one) for one in seed]


def _numbers(drawn: Any, like: torch.Tensor, what: str) -> torch.Tensor:
    """What a function drew, as a tensor of the type and on the device of `like`."""
    try:
        return torch.as_tensor(drawn).to(like)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"Episode: {what} must draw numbers, got {shown(drawn)}") from None


def _finite(values: torch.Tensor, what: str) -> torch.Tensor:
    wrong = torch.nonzero(~torch.isfinite(values))
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        raise ValueError(f"Episode: {what} drew {values[at].item():g} in world {at[0]}, and must draw finite numbers")
    return values
