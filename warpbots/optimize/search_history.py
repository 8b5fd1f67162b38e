"""The history of a search over candidates."""

import csv
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from warpbots.output_files import replacing
from warpbots.renamed import FormerAttribute

__all__ = ["SearchRun", "SearchHistory"]

_GOES_ON = ("episode limit", "iteration limit")
"""Reasons for the end of a run after which another run can improve the candidate further."""


@dataclasses.dataclass(frozen=True)
class SearchRun:
    """A run of `warpbots.minimize` on one candidate, from the best values of the candidate so far.

    Attributes:
        candidate: Name of the candidate.
        round: Index of the round, from 0.
        episodes: Number of rollouts in this run.
        failures: Number of rollouts of this run that failed.
        loss: Best loss of this run; infinite if the run has no loss.
        violation: Largest violation of a constraint in the iteration with the best loss.
        reason: Why the run ended: a reason of `warpbots.optimize.History`, ``"not built"`` if the function that makes
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
    """The runs of a search over candidates, and the best values that the search found.

    Attributes:
        candidates: Names of the candidates.
        allowed_violation: Largest violation of a constraint with which the constraint still counts as fulfilled.
        runs: All runs, in the order in which they ran.
        values: For each candidate with a finite loss, the best values of its unknowns, by name.
        reason: Why the search ended: ``"episode limit"``, ``"nothing goes on"`` if no candidate can be improved any
            further, ``"callback"``, ``"interrupted"``; empty while the search runs.
    """

    candidates: tuple[str, ...]
    allowed_violation: float = 0.0
    legs = FormerAttribute("runs")
    runs: list[SearchRun] = dataclasses.field(default_factory=list)
    values: dict[str, Mapping[str, torch.Tensor]] = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def episodes(self) -> int:
        """Number of rollouts so far."""
        return sum(run.episodes for run in self.runs)

    @property
    def ranking(self) -> list[SearchRun]:
        """The best run of each candidate that was tried, from the best candidate to the worst.

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
            raise ValueError("the search has found nothing: no candidate has a loss, see the messages of its runs")
        return ranking[0].candidate

    @property
    def doubt(self) -> str:
        """Why the best candidate may be a poor result; empty if there is no reason, or while the search runs."""
        best = self.ranking[:1]
        if not best or self.reason in ("", "interrupted", "callback"):
            return ""
        if math.isinf(best[0].loss):
            return f"no candidate has a loss; that of {best[0].candidate!r} failed: {best[0].message}"
        if best[0].violation > self.allowed_violation:
            return (
                f"no candidate fulfils all constraints: the smallest violation is {best[0].violation:.2g}, by "
                f"{best[0].candidate!r}, and allowed_violation is {self.allowed_violation:.2g}; give more episodes, "
                f"other candidates, or a larger allowed_violation if such a violation does not matter"
            )
        return ""

    @property
    def curve(self) -> list[tuple[int, float]]:
        """For the end of each run, the number of episodes and the loss of the best candidate so far."""
        found, so_far = [], SearchHistory(self.candidates, self.allowed_violation)
        for run in self.runs:
            so_far.runs.append(run)
            found.append((so_far.episodes, so_far.ranking[0].loss))
        return found

    def goes_on(self, candidate: str) -> bool:
        """Whether more episodes could improve a candidate."""
        own = self._by_candidate()[candidate]
        return not own or own[-1].goes_on

    def ranked(self) -> list[str]:
        """Names of all candidates, from the best to the worst; candidates that were not tried are last."""
        tried = [run.candidate for run in self.ranking]
        return tried + [name for name in self.candidates if name not in tried]

    def better(self, run: SearchRun) -> bool:
        """Whether a run has a finite loss and is at least as good as every other run of the same candidate."""
        own = self._by_candidate()[run.candidate]
        return run.loss < math.inf and all(self._rank(run) <= self._rank(other) for other in own)

    def write_csv(self, path: str | Path) -> None:
        """Write a table with a line for each run.

        Raises:
            OSError: The file cannot be written; no incomplete file remains.
        """
        with replacing(path) as (temporary,), temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(SearchRun)])
            writer.writeheader()
            writer.writerows(dataclasses.asdict(run) for run in self.runs)

    def _by_candidate(self) -> dict[str, list[SearchRun]]:
        runs: dict[str, list[SearchRun]] = {name: [] for name in self.candidates}
        for run in self.runs:
            runs[run.candidate].append(run)
        return runs

    def _rank(self, run: SearchRun) -> tuple[bool, float, float]:
        excess = run.violation if run.violation > self.allowed_violation else 0.0
        return math.isinf(run.loss), excess, run.loss
