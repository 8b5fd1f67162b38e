"""Which states a rollout keeps for its backward pass (ChainQueen §3.6; Griewank & Walther 2000)."""

import dataclasses
import math

__all__ = ["Checkpoints"]


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A schedule: a rollout of n control intervals is cut into segments, and within one all substeps are kept.

    Between segments one state is kept; a segment's substeps are computed again when its gradient is due. With b
    substeps per interval and segments of k intervals the backward pass holds about n/k + 2 k b states (a substep
    stands for a state and its gradient). Every schedule gives the same gradient to the last bit on a CPU.

    =============  ====================  ==========================
    schedule       states held           forward passes
    =============  ====================  ==========================
    ``all()``      2 n b                 1
    ``every(k)``   n/k + 2 k b           2
    ``sqrt()``     about 3 sqrt(n b)     2
    =============  ====================  ==========================

    Attributes:
        interval: Control intervals in a segment; 0 for a single segment that keeps everything, None for the square
            root.

    Raises:
        ValueError: `interval` is negative.
    """

    interval: int | None = None

    def __post_init__(self):
        if self.interval is not None and self.interval < 0:
            raise ValueError(f"Checkpoints.every: k must be at least 1 control interval, got {self.interval}")

    @classmethod
    def all(cls) -> "Checkpoints":
        """Keep every substep: fastest, memory O(n)."""
        return cls(0)

    @classmethod
    def every(cls, k: int) -> "Checkpoints":
        """Keep a state every `k` control intervals."""
        if k < 1:
            raise ValueError(f"Checkpoints.every: k must be at least 1 control interval, got {k}")
        return cls(k)

    @classmethod
    def sqrt(cls) -> "Checkpoints":
        """Keep O(sqrt(n)) states, the least memory that one extra forward pass can buy."""
        return cls(None)

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is computed twice."""
        return self.interval == 0

    def segment(self, intervals: int, substeps: int) -> int:
        """Control intervals in a segment of a rollout of `intervals` with `substeps` each."""
        if self.keeps_all:
            return intervals
        if self.interval is None:
            # n/k + 2 k b is least at k = sqrt(n / (2 b))
            return max(1, round(math.sqrt(intervals / (2.0 * substeps))))
        return min(self.interval, intervals)
