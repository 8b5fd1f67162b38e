"""The history of an optimisation."""

import csv
import dataclasses
from pathlib import Path

from warpbots.output_files import replacing

__all__ = ["History"]

_COLUMNS = ("loss", "seconds", "gradient_norm", "violation", "episodes", "failures", "lost_worlds")


@dataclasses.dataclass
class History:
    """Losses and violations of constraints of all iterations.

    Attributes:
        loss: Loss at the start of each iteration.
        seconds: Time of each loss since the start [s].
        gradient_norm: Norm of the gradient of the loss (of the augmented Lagrangian, if a torch optimiser has
            constraints) in each iteration, before clipping, in the units of the scales. The last loss may have none;
            methods without gradients have none at all.
        violation: Largest violation of a constraint at the start of each iteration; zero without constraints.
        episodes: Number of rollouts (calls of the loss) up to each loss; the last entry counts all rollouts, including
            those after the last iteration, such as a line search that found no smaller loss. The rollout that a resumed
            run repeats is not counted, so that its history equals that of an uninterrupted run.
        failures: How many of these rollouts failed: they did not converge, diverged, or had a loss or constraint that
            is not finite. Methods that compare losses take a smaller step then.
        lost_worlds: Number of lost worlds (`Trajectory.lost`) in all rollouts up to each loss; the other worlds of
            their batches went on.
        window: Number of recent losses whose mean decides which iteration is best.
        allowed_violation: Largest violation that counts as none.
        reason: Why the search ended: ``"converged"``, ``"iteration limit"``, ``"episode limit"``,
            ``"evaluation limit"``, ``"line search failed"`` (no smaller loss along the direction of the step: often
            converged to rounding, or a wrong gradient), ``"infeasible constraints"``, ``"stagnated"`` (CMA-ES finds
            nothing better), ``"failed"``, ``"callback"``, ``"interrupted"``, ``"rollout failed"``; empty while it runs.
        message: The reason as a sentence, in the words of the method.
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

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted the search."""
        return self.reason == "interrupted"

    @property
    def iteration(self) -> list[int]:
        """0, 1, 2, ...: one for each loss."""
        return list(range(len(self.loss)))

    @property
    def best(self) -> int:
        """Iteration with the smallest loss among those that violate no constraint, or else with the smallest violation.

        For random losses, means over the last `window` iterations are compared; iterations before the first full window
        do not count.

        Raises:
            ValueError: Nothing was recorded.
        """
        if not self.loss:
            raise ValueError("the history is empty: no iteration was finished")
        loss, violation = self._mean(self.loss), self._mean(self.violation or [0.0] * len(self.loss))
        first = min(self.window, len(self.loss)) - 1
        excess = [v if v > self.allowed_violation else 0.0 for v in violation]
        return min(self.iteration[first:], key=lambda i: (excess[i], loss[i]))

    def write_csv(self, path: str | Path) -> None:
        """Write the column ``iteration`` and then `columns`; missing values are empty.

        Raises:
            OSError: The file cannot be written; nothing is left behind.
        """
        with replacing(path) as (temporary,), temporary.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["iteration", *_COLUMNS])
            columns = [[*column, *[""] * (len(self.loss) - len(column))] for column in self.columns().values()]
            writer.writerows(zip(self.iteration, *columns, strict=True))

    def columns(self) -> dict[str, list]:
        """Each column by name, as lists that grow with the history."""
        return {name: getattr(self, name) for name in _COLUMNS}

    def _mean(self, column: list[float]) -> list[float]:
        """Moving averages of a column over `window` entries."""
        if self.window == 1:
            return column
        windows = (column[max(i + 1 - self.window, 0) : i + 1] for i in range(len(column)))
        return [sum(window) / len(window) for window in windows]
