"""Graphs that are captured once and replayed."""

import contextlib
import threading
from collections.abc import Callable

import warp as wp

from warpbots.gradients.progress_notice import said_when_slow
from warpbots.gradients.streams import leave_capture, own_stream
from warpbots.numerics import parallel, preparing, sparing
from warpbots.user_warning import warn_user

__all__ = ["Captured"]


class Captured:
    """Work on fixed arrays: launched and captured at the first call, replayed afterwards.

    If the work cannot be captured, for any reason, its kernels are launched every time, with the same result.

    Kernels that run `rarely` are captured when they are needed for the first time; on a GPU, where the host does not
    wait for the device, they are captured at once.
    """

    def __init__(self, device: wp.Device, work: Callable[[], None], first: Callable[[], None], what: str):
        """Store the work; nothing runs yet.

        Args:
            device: Device of all arrays.
            work: Launches the kernels.
            first: Launches the same kernels at the first call.
            what: Name of the kernels in the message about slow compilation.
        """
        self._device, self._work, self._first, self._what = device, work, first, what
        self._graph: wp.Graph | None = None
        self._capturable = True
        self._missed = None if parallel(device) else wp.zeros(1, dtype=int, device=device)

    def __call__(self, fill: Callable[[], object], stream: wp.Stream | None) -> None:
        """Run.

        Args:
            fill: Writes the inputs of the work.
            stream: Stream to run on, Warp's current one; None on a CPU.
        """
        fill()
        if self._graph is None and self._capturable:
            left = self._prepare(fill)
            if not left or not self._capturable:
                return
            fill()
        if self._graph is None:
            self._work()
            return
        self._or_give_up(lambda: wp.capture_launch(self._graph, stream), fill)
        if self._missed is not None and self._missed.numpy()[0]:
            self._missed, self._graph = None, None
            self(fill, stream)

    def _prepare(self, fill: Callable[[], object]) -> list[Callable[[], None]]:
        """Run and capture; returns the list of `preparing`."""
        text = f"first run of {self._what} (compiled once, then cached)"
        with contextlib.nullcontext() if self._missed is None else sparing(self._missed):
            with said_when_slow(text), preparing() as left:
                self._first()
            self._or_give_up(self._capture, fill)
        return left

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
    """Warn once per process."""
    if _said.is_set():
        return
    _said.set()
    warn_user(
        f"steps cannot be captured on {device} ({type(fault).__name__}: {fault}): their kernels are launched one by "
        f"one, with the same result. Small robots take several times as long, and on a GPU every iteration "
        f"waits for the host"
    )
