"""The history of an optimisation."""

import csv
import dataclasses
from pathlib import Path

from warpbots.output_files import replacing

__all__ = ["History"]


@dataclasses.dataclass
class History:
    """Losses and gradient norms of all iterations.

    Attributes:
        loss: Loss at the start of each iteration.
        seconds: Time of each loss since the start [s].
        gradient_norm: Norm of the gradient in each iteration, before clipping; the last loss has none.
        interrupted: Whether the user interrupted it.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    gradient_norm: list[float] = dataclasses.field(default_factory=list)
    interrupted: bool = False

    @property
    def iteration(self) -> list[int]:
        """0, 1, 2, ...: one for each loss."""
        return list(range(len(self.loss)))

    @property
    def best(self) -> int:
        """Iteration with the smallest loss.

        Raises:
            ValueError: Nothing was recorded.
        """
        if not self.loss:
            raise ValueError("the history is empty: no iteration was finished")
        return min(self.iteration, key=lambda i: self.loss[i])

    def write_csv(self, path: str | Path) -> None:
        """Write the columns ``iteration, loss, seconds, gradient_norm``; the last norm is empty.

        Raises:
            OSError: The file cannot be written; nothing is left behind.
        """
        with replacing(path) as (temporary,), temporary.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["iteration", "loss", "seconds", "gradient_norm"])
            norms = [*self.gradient_norm, *[""] * (len(self.loss) - len(self.gradient_norm))]
            writer.writerows(zip(self.iteration, self.loss, self.seconds, norms, strict=True))
