"""Locking and stream order between Warp, torch and captures."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

import torch
import warp as wp

__all__ = ["at_turn", "leave_capture", "own_stream", "turn"]

turn = threading.RLock()
"""Lock of the thread that launches kernels, as captures and tapes are global to the process."""

_own: dict[str, wp.Stream] = {}


@contextlib.contextmanager
def at_turn(device: wp.Device) -> Iterator[wp.Stream | None]:
    """Hold `turn`, with `device` as Warp's and, on a GPU, torch's current stream as Warp's.

    Both libraries then enqueue work on the stream of the user's tensors, so that neither waits for the other and
    torch's allocator need not know of a second stream. Work that was enqueued in this way before, on any stream, comes
    first: on entry every stream waits for `own_stream`, and on exit `own_stream` waits for the stream. Warp's stream is
    synchronised likewise, since models are built and reports are read on it.

    Yields:
        The stream; None on a CPU.
    """
    with turn, torch.inference_mode(False), torch.no_grad():  # buffers outlive the mode in which they are created
        if not device.is_cuda:
            with wp.ScopedDevice(device):
                yield None
            return
        own, stream = own_stream(device), wp.stream_from_torch(wp.device_to_torch(device))
        stream.wait_stream(own)
        try:
            with wp.ScopedStream(stream, sync_enter=True, sync_exit=True):
                yield stream
        finally:
            own.wait_stream(stream)


def own_stream(device: wp.Device) -> wp.Stream:
    """The stream of a GPU for captures, on which nothing runs.

    CUDA cannot capture the default stream, which is torch's current one unless the user creates another. Unlike Warp's
    own streams, this one does not synchronise with the default stream: while a synchronising stream captures, CUDA
    refuses the default stream to all threads.
    """
    if device.alias not in _own:
        _own[device.alias] = wp.stream_from_torch(torch.cuda.Stream(wp.device_to_torch(device)))
    return _own[device.alias]


def leave_capture(stream: wp.Stream) -> None:
    """End a capture that a failure has left open, also within loops and branches, as far as Warp can."""
    if stream.is_capturing:
        end = wp._src.context.runtime.core.wp_cuda_graph_end_capture
        end(stream.device.context, stream.cuda_stream, ctypes.byref(ctypes.c_void_p()))
