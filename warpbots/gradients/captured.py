"""Work that is captured once and replayed."""

import threading
import warnings
from collections.abc import Callable

import warp as wp

from warpbots.gradients.progress_notice import said_when_slow
from warpbots.gradients.streams import leave_capture, own_stream
from warpbots.numerics import preparing

__all__ = ["Captured"]


class Captured:
    """Work over fixed arrays: launched and captured when it is first called, replayed from then on.

    If it cannot be captured, whatever the reason, its kernels are launched every time; the result is the same.
    """

    def __init__(self, device: wp.Device, work: Callable[[], None], first: Callable[[], None], what: str):
        """Nothing runs yet.

        Args:
            device: Device of all arrays.
            work: Launches the kernels.
            first: Launches the same kernels, the first time.
            what: What takes long to prepare, in words.
        """
        self._device, self._work, self._first, self._what = device, work, first, what
        self._graph: wp.Graph | None = None
        self._capturable = True

    def __call__(self, fill: Callable[[], object], stream: wp.Stream | None) -> None:
        """Run.

        Args:
            fill: Writes what the work reads.
            stream: Where to run on a GPU, which is Warp's current stream there.
        """
        fill()
        if self._graph is None and self._capturable:
            text = f"preparing {self._what} (compiled at their first use, then cached)"
            with said_when_slow(text), preparing() as left:
                self._first()
            self._or_give_up(self._capture, fill)
            if not left or not self._capturable:
                return
            fill()
        if self._graph is None:
            self._work()
        else:
            self._or_give_up(lambda: wp.capture_launch(self._graph, stream), fill)

    def _or_give_up(self, replay: Callable[[], None], fill: Callable[[], object]) -> None:
        try:
            replay()
        except Exception as fault:
            self._graph, self._capturable = None, False
            fill()
            self._work()
            _say(self._device, fault)

    def _capture(self) -> None:
        own = own_stream(self._device) if self._device.is_cuda else None
        try:
            with wp.ScopedStream(own), wp.ScopedCapture(self._device, own) as capture:
                self._work()
        finally:
            if own is not None:
                leave_capture(own)
        self._graph = capture.graph


_said = threading.Event()


def _say(device: wp.Device, fault: Exception) -> None:
    """Warn, once in a process."""
    if _said.is_set():
        return
    _said.set()
    warnings.warn(
        f"steps cannot be captured on {device} ({type(fault).__name__}: {fault}): their kernels are launched one by "
        f"one, with the same result. Small robots take several times as long, and on a GPU every round of an iteration "
        f"waits for the host",
        stacklevel=2,
    )
