"""Whose turn it is, and on which stream of a GPU: the order of work between Warp, torch and captures."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

import torch
import warp as wp

__all__ = ["at_turn", "leave_capture", "own_stream", "turn"]

turn = threading.RLock()
"""Held by the thread that launches kernels: what is captured and what is taped are one for the whole process."""

_own: dict[str, wp.Stream] = {}


@contextlib.contextmanager
def at_turn(device: wp.Device) -> Iterator[wp.Stream | None]:
    """Hold `turn`, with `device` as Warp's and, on a GPU, torch's current stream as Warp's.

    Both libraries then enqueue where the user's tensors are made and read, so that neither waits for the other and
    torch's allocator need not know of a second stream. Whatever was enqueued here before, on whichever stream was
    current then, comes first: all of it meets on `own_stream`, which waits for what is enqueued here, and for which it
    waits. Warp's stream waits likewise, since models are built on it and reports are read on it.

    Yields:
        The stream; None on a CPU.
    """
    with turn, torch.inference_mode(False), torch.no_grad():  # buffers outlive the mode in which they are made
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
    """The stream of a GPU that work is captured on, and nothing runs on.

    CUDA captures no default stream, which is torch's current one unless the user makes another. This one does not
    synchronise with the default stream either, as Warp's own streams do: CUDA refuses the default stream to all threads
    while such a stream captures.
    """
    if device.alias not in _own:
        _own[device.alias] = wp.stream_from_torch(torch.cuda.Stream(wp.device_to_torch(device)))
    return _own[device.alias]


def leave_capture(stream: wp.Stream) -> None:
    """End a capture that a failure has left open: Warp does so as well as it can, within loops and branches too."""
    if stream.is_capturing:
        end = wp._src.context.runtime.core.wp_cuda_graph_end_capture
        end(stream.device.context, stream.cuda_stream, ctypes.byref(ctypes.c_void_p()))
