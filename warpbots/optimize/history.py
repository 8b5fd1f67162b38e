"""The history of an optimisation."""

import bisect
import csv
import dataclasses
from pathlib import Path

from warpbots.optimize.doubts import doubt_of_iterations
from warpbots.output_files import replacing

__all__ = ["History"]

_COLUMNS = ("loss", "seconds", "gradient_norm", "violation", "episodes", "failures", "lost_worlds")
_BY_USER = ("interrupted", "callback")  # reasons of a search that the user has ended early


@dataclasses.dataclass
class History:
    """Losses and violations of constraints of all iterations.

    Attributes:
        loss: Loss at the start of each iteration.
        seconds: Time from the start of the search until each loss was known [s].
        gradient_norm: Norm of the gradient of the loss in each iteration, before clipping, with respect to the unknowns
            divided by their scales. If a torch optimiser has constraints, it is the norm of the gradient of the
            augmented Lagrangian. The entry of the last loss may be missing; methods without gradients have no entries.
        violation: Largest violation of a constraint at the start of each iteration; zero without constraints.
        episodes: Number of rollouts (calls of the loss) up to each loss. The last entry counts all rollouts, including
            rollouts after the last iteration, for example in a line search that found no smaller loss. The rollout that
            a resumed run repeats is not counted, so that the history equals the history of an uninterrupted run.
        failures: Number of failed rollouts up to each loss. A rollout fails if it does not converge, if it diverges, or
            if its loss or a constraint is not finite. After a failure, methods that compare losses take a smaller step.
        lost_worlds: Number of lost worlds (`Trajectory.lost`) in all rollouts up to each loss. A lost world does not
            make a rollout fail as long as other worlds of the batch go on.
        window: Number of recent losses whose mean is compared to find the best iteration.
        begins: Index of the first iteration of each start of a `warpbots.methods.MultiStart` after the first start.
        allowed_violation: Largest violation of a constraint with which the constraint still counts as fulfilled.
        reason: Why the search ended: ``"converged"``, ``"iteration limit"``, ``"episode limit"``,
            ``"evaluation limit"``, ``"line search failed"`` (no smaller loss along the direction of the step: often the
            search has converged to rounding, or a gradient is wrong), ``"infeasible constraints"``, ``"stagnated"``
            (CMA-ES finds no smaller loss), ``"failed"``, ``"callback"``, ``"interrupted"``, ``"rollout failed"``; empty
            while the search runs.
        message: The reason as a sentence, as the method states it.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    gradient_norm: list[float] = dataclasses.field(default_factory=list)
    violation: list[float] = dataclasses.field(default_factory=list)
    episodes: list[int] = dataclasses.field(default_factory=list)
    failures: list[int] = dataclasses.field(default_factory=list)
    lost_worlds: list[int] = dataclasses.field(default_factory=list)
    window: int = 1
    allowed_violation: float = 0.0
    reason: str = ""
    message: str = ""
    begins: list[int] = dataclasses.field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted the search."""
        return self.reason == "interrupted"

    @property
    def iteration(self) -> list[int]:
        """Indices 0, 1, 2, ... of the iterations, one index for each loss."""
        return list(range(len(self.loss)))

    @property
    def best(self) -> int:
        """Index of the iteration with the smallest loss among the iterations that fulfil all constraints.

        If no iteration fulfils all constraints, it is the iteration with the smallest violation. If `window` is above
        1, means over the last `window` iterations of one start are compared, and iterations before the first full
        window of their start do not count.

        Raises:
            ValueError: No loss was recorded.
        """
        if not self.loss:
            raise ValueError("the history is empty: no iteration was finished")
        loss, violation = self._means()
        return min(self._counted, key=lambda i: self.rank(loss[i], violation[i]))

    def rank(self, loss: float, violation: float) -> tuple[float, float]:
        """Key that sorts results from the best to the worst: by violation if it is not allowed, then by loss."""
        return violation if violation > self.allowed_violation else 0.0, loss

    @property
    def doubt(self) -> str:
        """Why the best iteration may be a poor result, and the remedy; empty if there is no reason, or while it runs.

        There are three reasons: no iteration fulfils the constraints; at least half of all iterations came later, and
        have a clearly smaller loss (by more than a tenth of the change of the loss from the start), but violate a
        constraint; or no iteration is better than the first one, and the search has not converged (a first gradient of
        zero has a warning of its own). There is no reason if the user has ended the search.
        """
        if not self.loss or self.reason in ("", *_BY_USER):
            return ""
        stays = self.reason == "converged" or self.gradient_norm[:1] == [0.0]
        return doubt_of_iterations(*self._means(), self._first, self.best, self.allowed_violation, stays)

    def __str__(self) -> str:
        """Text that says which iteration is the result, and how the search ended."""
        if not self.loss:
            return f"no iteration was finished: {self.reason or 'running'}"
        best, doubt = self.best, self.doubt
        violated = f", violation {self.violation[best]:.2g}" if any(self.violation) else ""
        ended = f"{self.reason} ({self.message})" if self.reason else "running"
        return (
            f"iteration {best} of {len(self.loss) - 1} is the best: loss {self.loss[best]:.5g}{violated} (loss of the "
            f"start {self.loss[0]:.5g}); {ended}{doubt and f'; {doubt}'}"
        )

    def write_csv(self, path: str | Path) -> None:
        """Write a table with the column ``iteration`` followed by all `columns`; missing values are left empty.

        Raises:
            OSError: The file cannot be written; no incomplete file remains.
        """
        with replacing(path) as (temporary,), temporary.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["iteration", *_COLUMNS])
            columns = [[*column, *[""] * (len(self.loss) - len(column))] for column in self.columns().values()]
            writer.writerows(zip(self.iteration, *columns, strict=True))

    def columns(self) -> dict[str, list]:
        """Columns of the table (losses, times and others) by name; the lists grow with the history."""
        return {name: getattr(self, name) for name in _COLUMNS}

    def saved(self) -> dict[str, list]:
        """The lists of a checkpoint by name: all `columns`, and `begins`."""
        return {**self.columns(), "begins": self.begins}

    @property
    def _first(self) -> int:
        """Index of the first iteration with a full window."""
        return min([self.window, len(self.loss), *self.begins[:1]]) - 1

    @property
    def _counted(self) -> list[int]:
        """Indices of the iterations that can be the best one: `_first`, and all others with a full window."""
        full = (i for i, begun in enumerate(self._begun()) if i + 1 - self.window >= begun)
        return [self._first, *(i for i in full if i > self._first)]

    def _begun(self) -> list[int]:
        """For each iteration, the index of the first iteration of its start."""
        return [[0, *self.begins][bisect.bisect(self.begins, i)] for i in self.iteration]

    def _means(self) -> tuple[list[float], list[float]]:
        """Moving averages of losses and violations."""
        return self._mean(self.loss), self._mean(self.violation or [0.0] * len(self.loss))

    def _mean(self, column: list[float]) -> list[float]:
        """Moving averages of a column over `window` entries, which never mix two starts."""
        if self.window == 1:
            return column
        windows = (column[max(i + 1 - self.window, begun) : i + 1] for i, begun in enumerate(self._begun()))
        return [sum(window) / len(window) for window in windows]
