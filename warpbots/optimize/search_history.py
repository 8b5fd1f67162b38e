"""The history of a search over candidates."""

import csv
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from warpbots.output_files import replacing

__all__ = ["Leg", "SearchHistory"]

_GOES_ON = ("episode limit", "iteration limit")
"""Reasons for the end of a leg after which another leg can improve the candidate further."""


@dataclasses.dataclass(frozen=True)
class Leg:
    """A run of `warpbots.minimize` on one candidate, from the best values of the candidate so far.

    Attributes:
        candidate: Name of the candidate.
        round: Index of the round, from 0.
        episodes: Number of rollouts in this leg.
        failures: Number of rollouts of this leg that failed.
        loss: Best loss of this leg; infinite if the leg has no loss.
        violation: Largest violation of a constraint in the iteration with the best loss.
        reason: Why the leg ended: a reason of `warpbots.optimize.History`, ``"not built"`` if the function that makes
            the problem raised an error, or ``"too few episodes"`` if the episodes did not suffice for one iteration.
        message: The reason as a sentence.
    """

    candidate: str
    round: int
    episodes: int
    failures: int
    loss: float
    violation: float
    reason: str
    message: str

    @property
    def goes_on(self) -> bool:
        """Whether more episodes could improve the candidate."""
        return self.reason in _GOES_ON


@dataclasses.dataclass
class SearchHistory:
    """The legs of a search over candidates, and the best values that the search found.

    Attributes:
        candidates: Names of the candidates.
        allowed_violation: Largest violation of a constraint with which the constraint still counts as fulfilled.
        legs: All legs, in the order in which they ran.
        values: For each candidate with a finite loss, the best values of its unknowns, by name.
        reason: Why the search ended: ``"episode limit"``, ``"nothing goes on"`` if no candidate can be improved any
            further, ``"callback"``, ``"interrupted"``; empty while the search runs.
    """

    candidates: tuple[str, ...]
    allowed_violation: float = 0.0
    legs: list[Leg] = dataclasses.field(default_factory=list)
    values: dict[str, Mapping[str, torch.Tensor]] = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def episodes(self) -> int:
        """Number of rollouts so far."""
        return sum(leg.episodes for leg in self.legs)

    @property
    def ranking(self) -> list[Leg]:
        """The best leg of each candidate that was tried, from the best candidate to the worst.

        First come the candidates that fulfil all constraints, by loss; then candidates that violate a constraint, by
        violation; then candidates without a loss. Equal candidates stay in the order of `candidates`.
        """
        return sorted((min(own, key=self._rank) for own in self._by_candidate().values() if own), key=self._rank)

    @property
    def best(self) -> str:
        """Name of the best candidate.

        Raises:
            ValueError: No candidate has a loss.
        """
        ranking = self.ranking
        if not ranking or ranking[0].candidate not in self.values:
            raise ValueError("the search has found nothing: no candidate has a loss, see the messages of its legs")
        return ranking[0].candidate

    @property
    def curve(self) -> list[tuple[int, float]]:
        """For the end of each leg, the number of episodes and the loss of the best candidate so far."""
        found, so_far = [], SearchHistory(self.candidates, self.allowed_violation)
        for leg in self.legs:
            so_far.legs.append(leg)
            found.append((so_far.episodes, so_far.ranking[0].loss))
        return found

    def goes_on(self, candidate: str) -> bool:
        """Whether more episodes could improve a candidate."""
        own = self._by_candidate()[candidate]
        return not own or own[-1].goes_on

    def ranked(self) -> list[str]:
        """Names of all candidates, from the best to the worst; candidates that were not tried are last."""
        tried = [leg.candidate for leg in self.ranking]
        return tried + [name for name in self.candidates if name not in tried]

    def better(self, leg: Leg) -> bool:
        """Whether a leg has a finite loss and is at least as good as every other leg of the same candidate."""
        own = self._by_candidate()[leg.candidate]
        return leg.loss < math.inf and all(self._rank(leg) <= self._rank(other) for other in own)

    def write_csv(self, path: str | Path) -> None:
        """Write a table with a line for each leg.

        Raises:
            OSError: The file cannot be written; no incomplete file remains.
        """
        with replacing(path) as (temporary,), temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Leg)])
            writer.writeheader()
            writer.writerows(dataclasses.asdict(leg) for leg in self.legs)

    def _by_candidate(self) -> dict[str, list[Leg]]:
        legs: dict[str, list[Leg]] = {name: [] for name in self.candidates}
        for leg in self.legs:
            legs[leg.candidate].append(leg)
        return legs

    def _rank(self, leg: Leg) -> tuple[bool, float, float]:
        excess = leg.violation if leg.violation > self.allowed_violation else 0.0
        return math.isinf(leg.loss), excess, leg.loss
