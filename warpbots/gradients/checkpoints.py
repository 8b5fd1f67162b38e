"""Checkpoint schedules: which states a rollout keeps (ChainQueen §3.6; Griewank & Walther 2000)."""

import dataclasses
import math

from warpbots.scene.field_types import conform

__all__ = ["Checkpoints"]


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A checkpoint schedule: a rollout of n control intervals is divided into segments.

    The forward pass keeps only the first state of each segment. When the gradient of a segment is due, its substeps are
    recomputed with the recorded controls: the controller is called only once, and may have memory and noise. The last
    segment is never recomputed; if n is no multiple of the length of segments, the first one is shorter. With b
    substeps per interval and segments of k intervals the backward pass holds about n/k + k (b + 1) states, and two more
    for the gradients of each interval. Every schedule gives the same gradient to the last bit on a CPU.

    =============  ============================  ==========================
    schedule       states held                   intervals computed
    =============  ============================  ==========================
    ``all()``      n (b + 1)                     n
    ``every(k)``   n/k + k (b + 1)               2 n - k
    ``sqrt()``     about 2 sqrt(n (b + 1))       2 n - sqrt(n / (b + 1))
    =============  ============================  ==========================

    Intermediate results of the controller and of ``observe`` are kept for every interval, as by autograd: a few
    kilobytes for a perceptron, more if they create tensors of the size of a state (to recompute these tensors, use
    `torch.utils.checkpoint.checkpoint` inside them).

    Attributes:
        schedule: ``"all"``, ``"every"`` or ``"sqrt"``.
        k: Control intervals in a segment of ``"every"``.

    Raises:
        ValueError: The schedule is unknown, or `k` is below 1.
    """

    schedule: str = "sqrt"
    k: int = 1

    def __post_init__(self):
        conform(self)
        if self.schedule not in ("all", "every", "sqrt"):
            raise ValueError(f"Checkpoints: schedule must be 'all', 'every' or 'sqrt', got {self.schedule!r}")
        if self.k < 1:
            raise ValueError(f"Checkpoints.every: k must be at least 1 control interval, got {self.k}")

    @classmethod
    def all(cls) -> "Checkpoints":
        """Keep every substep: fastest, memory O(n)."""
        return cls("all")

    @classmethod
    def every(cls, k: int) -> "Checkpoints":
        """Keep a state every `k` control intervals."""
        return cls("every", k)

    @classmethod
    def sqrt(cls) -> "Checkpoints":
        """Keep O(sqrt(n)) states, the minimum memory with one extra forward pass."""
        return cls("sqrt")

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is recomputed."""
        return self.schedule == "all"

    def segments(self, intervals: int, substeps: int) -> list[int]:
        """Control intervals in each segment of a rollout of `intervals` with `substeps` each, in order."""
        length = self._segment(intervals, substeps)
        rest = intervals % length
        return [rest] * bool(rest) + [length] * (intervals // length)

    def _segment(self, intervals: int, substeps: int) -> int:
        if self.schedule == "all":
            return intervals
        if self.schedule == "every":
            return min(self.k, intervals)
        # n/k + k (b + 1) is least at k = sqrt(n / (b + 1))
        return max(1, round(math.sqrt(intervals / (substeps + 1))))
