"""Collectors of marks of faults; the marks stay on the device until they are read."""

import dataclasses
from collections.abc import Callable

import torch
import warp as wp
from torch.autograd import Variable

from warpbots.gradients.streams import at_turn

__all__ = ["BackwardWatch", "Found", "Watch"]

Found = list[list[int]]
"""Rows of `Marks.taken`, as lists on the host."""


@dataclasses.dataclass
class Watch:
    """Collector of the marks of several intervals; reads all marks together, so that the host waits only once.

    Attributes:
        device: Warp device of the marks.
        length: Number of intervals after which the marks are read.
    """

    device: wp.Device
    length: int
    _unread: list[tuple[torch.Tensor, Callable[[Found], None]]] = dataclasses.field(default_factory=list)

    def note(self, marks: torch.Tensor, judge: Callable[[Found], None]) -> None:
        """Add the marks of one interval.

        Args:
            marks: Result of `Marks.taken`.
            judge: Function that raises an error if the marks contain a fault.
        """
        self._unread.append((marks, judge))
        if len(self._unread) >= self.length:
            self.read()

    def read(self) -> None:
        """Read all pending marks, and raise an error for the earliest fault."""
        unread, self._unread = self._unread, []
        if not unread:
            return
        with at_turn(self.device):
            rows = torch.cat([marks for marks, _ in unread]).tolist()
        for marks, judge in unread:
            judge(rows[: len(marks)])
            del rows[: len(marks)]

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, kind: type | None, fault: BaseException | None, trace: object) -> None:
        """Read the pending marks, and raise an error for the earliest fault.

        This error replaces an exception within the context, because the fault may have caused that exception.
        """
        if kind is None or issubclass(kind, Exception):
            self.read()


@dataclasses.dataclass
class BackwardWatch:
    """Collector with a `Watch` for each backward pass of torch; the marks are read at the end of the pass or before.

    Attributes:
        device: Warp device of the marks.
        length: Number of intervals after which the marks are read.
    """

    device: wp.Device
    length: int
    _passes: dict[int, Watch] = dataclasses.field(default_factory=dict)

    def note(self, marks: torch.Tensor, judge: Callable[[Found], None]) -> None:
        """Add the marks of one interval to the `Watch` of the current backward pass.

        Call this method within a backward pass.
        """
        number = torch._C._current_graph_task_id()
        if number not in self._passes:
            self._passes[number] = Watch(self.device, self.length)
            Variable._execution_engine.queue_callback(lambda: self._passes.pop(number).read())
        self._passes[number].note(marks, judge)
