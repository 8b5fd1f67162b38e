"""The history of an optimisation."""

import csv
import dataclasses
from pathlib import Path

from warpbots.output_files import replacing

__all__ = ["History"]

_COLUMNS = ("loss", "seconds", "gradient_norm", "violation", "episodes")


@dataclasses.dataclass
class History:
    """Losses and violations of constraints of all iterations.

    Attributes:
        loss: Loss at the start of each iteration.
        seconds: Time of each loss since the start [s].
        gradient_norm: Norm of the gradient in each iteration, before clipping, of what a torch optimiser minimises or
            else of the loss, in the units of the scales; the last loss may have none, and methods without gradients
            have none at all.
        interrupted: Whether the user interrupted it.
        violation: Largest violation of a constraint at the start of each iteration; zero without constraints.
        episodes: Number of evaluations of the loss up to each loss.
        draws: Number of recent losses whose mean decides which iteration is best.
        allowed_violation: Largest violation that counts as none.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    gradient_norm: list[float] = dataclasses.field(default_factory=list)
    interrupted: bool = False
    violation: list[float] = dataclasses.field(default_factory=list)
    episodes: list[int] = dataclasses.field(default_factory=list)
    draws: int = 1
    allowed_violation: float = 0.0

    @property
    def iteration(self) -> list[int]:
        """0, 1, 2, ...: one for each loss."""
        return list(range(len(self.loss)))

    @property
    def best(self) -> int:
        """Iteration with the smallest loss among those that violate no constraint, or else with the smallest violation.

        For random losses, means over the last `draws` iterations are compared, and only those of as many.

        Raises:
            ValueError: Nothing was recorded.
        """
        if not self.loss:
            raise ValueError("the history is empty: no iteration was finished")
        loss, violation = self._mean(self.loss), self._mean(self.violation or [0.0] * len(self.loss))
        first = min(self.draws, len(self.loss)) - 1
        excess = [v if v > self.allowed_violation else 0.0 for v in violation]
        return min(self.iteration[first:], key=lambda i: (excess[i], loss[i]))

    def write_csv(self, path: str | Path) -> None:
        """Write the columns ``iteration, loss, seconds, gradient_norm, violation, episodes``; what is missing is empty.

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
        """Means over the last `draws` entries up to each."""
        if self.draws == 1:
            return column
        windows = (column[max(i + 1 - self.draws, 0) : i + 1] for i in range(len(column)))
        return [sum(window) / len(window) for window in windows]
