"""Checkpoint schedules, which determine the states that a rollout keeps (ChainQueen §3.6; Griewank & Walther 2000)."""

import dataclasses
import math

from warpbots.scene.field_types import conform

__all__ = ["Checkpoints"]


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A checkpoint schedule, which divides a rollout of n control intervals into segments.

    The forward pass keeps only the first state of each segment. When the backward pass reaches a segment, the substeps
    of the segment are recomputed with the recorded controls. The controller is not called again, so it may have memory
    and noise. The last segment is never recomputed. If n is not a multiple of the length of a segment, the first
    segment is shorter. With b substeps per interval and segments of k intervals, the backward pass holds about n/k +
    k (b + 1) states, and two more states for the gradients of each interval in the segment. On a CPU every schedule
    gives the same gradient to the last bit.

    =============  ============================  ==========================
    schedule       states held                   intervals computed
    =============  ============================  ==========================
    ``all()``      n (b + 1)                     n
    ``every(k)``   n/k + k (b + 1)               2 n - k
    ``sqrt()``     about 2 sqrt(n (b + 1))       2 n - sqrt(n / (b + 1))
    =============  ============================  ==========================

    Autograd keeps the intermediate results of the controller and of ``observe`` for every interval: a few kilobytes for
    a perceptron, more if these functions create tensors of the size of a state (to recompute such tensors, use
    `torch.utils.checkpoint.checkpoint` in the function).

    Attributes:
        schedule: ``"all"``, ``"every"`` or ``"sqrt"``.
        k: Number of control intervals in a segment, for the schedule ``"every"``.

    Raises:
        ValueError: The schedule is unknown, or `k` is below 1 or given for another schedule than ``"every"``.
    """

    schedule: str = "sqrt"
    k: int = 1

    def __post_init__(self):
        conform(self)
        if self.schedule not in ("all", "every", "sqrt"):
            raise ValueError(f"Checkpoints: schedule must be 'all', 'every' or 'sqrt', got {self.schedule!r}")
        if self.k < 1:
            raise ValueError(f"Checkpoints: k must be at least 1 control interval, got {self.k}")
        if self.k > 1 and self.schedule != "every":
            raise ValueError(f"Checkpoints: k is for 'every' alone, got {self.schedule!r} and k {self.k}; leave out k")

    @classmethod
    def all(cls) -> "Checkpoints":
        """Schedule that keeps all substeps, with memory O(n): the fastest schedule once it has run.

        Every control interval has arrays of its own, which are made in the first rollout, and recorded kernel launches,
        which are made in the second. These two take longer than later ones. For a robot of a few hundred particles on
        a CPU they take so long that a search gains only after 60 to 700 iterations (docs/performance.md).
        """
        return cls("all")

    @classmethod
    def every(cls, k: int) -> "Checkpoints":
        """Schedule that keeps one state for every `k` control intervals."""
        return cls("every", k)

    @classmethod
    def sqrt(cls) -> "Checkpoints":
        """Schedule that keeps O(sqrt(n)) states, the least memory with one additional forward pass."""
        return cls("sqrt")

    @property
    def keeps_all(self) -> bool:
        """Whether the schedule keeps all substeps, so that nothing is recomputed."""
        return self.schedule == "all"

    def segments(self, intervals: int, substeps: int) -> list[int]:
        """Number of control intervals in each segment of a rollout, in order.

        Args:
            intervals: Number of control intervals of the rollout.
            substeps: Number of substeps in each control interval.
        """
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
