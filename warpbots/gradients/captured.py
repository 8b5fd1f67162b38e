"""Kernel launches that are captured once as a graph and then replayed."""

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator

import warp as wp

from warpbots.gradients.progress_notice import said_when_slow
from warpbots.gradients.streams import launching, leave_capture, own_stream
from warpbots.gradients.thread_team import together
from warpbots.numerics import (
    Slices,
    dividing,
    load,
    mode_of_thread,
    parallel,
    preparing,
    without_rare_bodies,
    without_subnormals,
)
from warpbots.user_warning import warn_user

__all__ = ["Captured"]


class Captured:
    """Kernel launches on fixed arrays: the first call launches them, the second captures them, later ones replay them.

    A capture takes longer than a call that launches the kernels, so it is left to those that are called again: in a
    rollout with a gradient, each control interval has kernels of its own, which a single loss calls once.

    If the launches cannot be captured, for any reason, each call launches the kernels, with the same result.

    On a CPU, the graph leaves out kernels that run `rarely` until a replay needs one of them; then all launches are
    captured again. On a GPU the graph contains these kernels from the start, because the host does not wait for the
    device.

    On a CPU, all kernels count subnormal numbers as zero (`without_subnormals`).

    Several threads of a CPU share the launches that `launch_slices` divides, with the same result. Each has a graph.

    Attributes:
        seconds: Time in which the last call replayed the graph [s]; 0 if it launched the kernels.
    """

    def __init__(
        self,
        device: wp.Device,
        work: Callable[[], None],
        first: Callable[[], None],
        what: str,
        threads: int = 1,
        announced: set[object] | None = None,
        kernels: object = None,
    ):
        """Store the functions; nothing runs yet.

        Args:
            device: Device of all arrays.
            work: Function that launches the kernels.
            first: Function that launches the same kernels; it is called instead of `work` at the first call.
            what: Name of the kernels in the message about slow compilation.
            threads: Number of threads that share large launches.
            announced: Keys of first runs that were announced. A run whose key is among them is not announced again.
            kernels: What tells these kernels from others with the same `announced`.
        """
        self._modes = [mode_of_thread(device) for _ in range(threads)]
        self._device, self._what = device, what
        self._announced, self._kernels = set() if announced is None else announced, kernels
        self._work, self._first = (without_subnormals(self._modes[0])(f) for f in (work, first))
        self._graph: wp.Graph | None = None
        self._threads, self._others = threads, list[wp.Graph]()
        self._slices: Slices | None = None
        self._left: list[Callable[[], None]] | None = None
        self._capturable = True
        self._missed = None if parallel(device) else wp.zeros(1, dtype=int, device=device)
        self.seconds = 0.0

    def __call__(self, fill: Callable[[], object], stream: wp.Stream | None) -> None:
        """Write the inputs and run the kernels.

        Args:
            fill: Function that writes the inputs of the kernels. If the run must be repeated, the function is called
                again.
            stream: Stream on which the kernels run, which is the current stream of Warp; None on a CPU.
        """
        self.seconds = 0.0
        fill()
        if self._graph is None:
            with launching(self._device):
                captured = self._launched(fill)
            if not captured:
                return
        begun = time.perf_counter()
        self._or_give_up(lambda: self._replay(stream), fill)
        self.seconds = time.perf_counter() - begun
        if self._missed is not None and self._missed.numpy()[0]:
            self._missed = self._graph = self._left = None
            self(fill, stream)

    def _replay(self, stream: wp.Stream | None) -> None:
        if self._slices is None:
            wp.capture_launch(self._graph, stream)
            return
        self._slices.convene()
        graphs = [self._graph, *self._others]
        together([functools.partial(wp.capture_launch, graph) for graph in graphs], self._slices.call_off)

    def _launched(self, fill: Callable[[], object]) -> bool:
        """Launch the kernels or, after the first time, capture them; returns whether the graph must be replayed."""
        if self._left is None:
            with self._preparing("launched"), preparing() as left:
                self._first()
            self._left = left
        elif self._capturable:
            self._or_give_up(self._load_and_capture, fill)
            if self._left and self._graph is not None:
                fill()
        else:
            self._work()
        return self._graph is not None

    @contextlib.contextmanager
    def _preparing(self, stage: str) -> Iterator[None]:
        """Context in which kernels are compiled, at the stage where they are launched first or captured."""
        text = f"first run of {self._what} (compiled once, then cached)"
        rare = contextlib.nullcontext() if self._missed is None else without_rare_bodies(self._missed)
        begun = (stage, self._missed is None, self._what, self._kernels)
        with rare, contextlib.nullcontext() if begun in self._announced else said_when_slow(text):
            self._announced.add(begun)
            yield

    def _load_and_capture(self) -> None:
        with self._preparing("captured"):
            load(self._left)
            self._capture()

    def _or_give_up(self, replay: Callable[[], None], fill: Callable[[], object]) -> None:
        try:
            replay()
        except Exception as fault:
            self._graph, self._capturable = None, False
            fill()
            with launching(self._device):
                self._work()
            _say(self._device, fault)

    def _capture(self) -> None:
        own = own_stream(self._device) if self._device.is_cuda else None
        slices = Slices(self._threads, self._device) if self._threads > 1 else None
        try:
            with wp.ScopedStream(own), wp.ScopedCapture(self._device, own) as capture, dividing(slices):
                self._work()
        finally:
            if own is not None:
                leave_capture(own)
        self._slices, self._others = slices or None, []  # without a divided launch, there is nothing to share
        for thread in range(1, self._threads if slices else 1):
            with wp.ScopedCapture(self._device) as capture_of_slices, without_subnormals(self._modes[thread]):
                slices.launch(thread)
            self._others.append(capture_of_slices.graph)
        self._graph = capture.graph


_said = threading.Event()


def _say(device: wp.Device, fault: Exception) -> None:
    """Warn, once per process, that steps could not be captured because of `fault`."""
    if _said.is_set():
        return
    _said.set()
    warn_user(
        f"steps cannot be captured on {device} ({type(fault).__name__}: {fault}): their kernels are launched one by "
        f"one, with the same result. Small robots take several times as long, and on a GPU every iteration "
        f"waits for the host"
    )
