"""Locks, and the order of work on streams between Warp, torch and captures."""

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Iterator

import torch
import warp as wp

__all__ = ["at_turn", "launching", "leave_capture", "model_lock", "own_stream", "replaying", "turn"]

turn = threading.RLock()
"""Lock that a thread holds while it launches kernels, because captures and tapes are global to the process.

A thread that holds this lock must not wait for the lock of a model (see `replaying`)."""

_forking = threading.RLock()
"""Lock of `_model_locks`."""

_model_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
"""Locks from `model_lock`."""

_own: dict[str, wp.Stream] = {}


def model_lock() -> threading.RLock:
    """A lock for the arrays of a model, see `replaying`."""
    lock = threading.RLock()
    with _forking:
        _model_locks.add(lock)
    return lock


def _copy_between_replays() -> None:
    """Let a process be copied (`os.fork`) only while no other thread replays or launches kernels.

    The copy has only the thread that makes it: locks that other threads hold would never be released there.
    """
    held: list[threading.RLock] = []

    def acquire() -> None:
        _forking.acquire()
        held.extend((*_model_locks, turn))  # in the order in which other threads wait for them
        for lock in held:
            lock.acquire()

    def release() -> None:
        while held:
            held.pop().release()
        _forking.release()

    os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)


if sys.platform != "win32":
    _copy_between_replays()


@contextlib.contextmanager
def at_turn(device: wp.Device) -> Iterator[wp.Stream | None]:
    """Context that holds the lock `turn` and makes `device` the current device of Warp.

    On a GPU, Warp uses the current stream of torch in this context. Both libraries then enqueue work on the stream of
    the user's tensors, so that neither library waits for the other, and the allocator of torch need not know about a
    second stream. Work of earlier contexts of this kind, on any stream, is finished first: on entry the current stream
    of torch waits for `own_stream`, and on exit `own_stream` waits for the current stream of torch. Warp's usual
    stream, on which models are built and reports are read, is synchronised in the same way.

    Yields:
        The stream on which Warp works; None on a CPU.
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


@contextlib.contextmanager
def replaying(device: wp.Device, alone: threading.RLock) -> Iterator[wp.Stream | None]:
    """Context in which a thread replays captured launches.

    On a CPU several threads are in here at the same time, each with arrays of its own, and one after the other in
    `launching`. On a GPU this is `at_turn`.

    Args:
        device: Device of the arrays.
        alone: Lock of the arrays, from `model_lock`, which all replays of one model share.

    Yields:
        The stream on which Warp works; None on a CPU.
    """
    turned = at_turn(device) if device.is_cuda else contextlib.nullcontext()
    with alone, turned as stream, torch.inference_mode(False), torch.no_grad():
        yield stream


def launching(device: wp.Device) -> contextlib.AbstractContextManager:
    """Context within `replaying` in which launches are captured, or run without a capture: `at_turn` on a CPU."""
    return contextlib.nullcontext() if device.is_cuda else at_turn(device)


def own_stream(device: wp.Device) -> wp.Stream:
    """The stream of a GPU on which graphs are captured; no work runs on this stream.

    CUDA cannot capture the default stream, which is the current stream of torch unless the user creates another stream.
    Unlike the streams of Warp, the returned stream does not synchronise with the default stream: while CUDA captures a
    stream that synchronises with the default stream, it refuses all work on the default stream, from any thread.
    """
    if device.alias not in _own:
        _own[device.alias] = wp.stream_from_torch(torch.cuda.Stream(wp.device_to_torch(device)))
    return _own[device.alias]


def leave_capture(stream: wp.Stream) -> None:
    """End the capture that a failure may have left open on `stream`."""
    if stream.is_capturing:
        end = wp._src.context.runtime.core.wp_cuda_graph_end_capture
        end(stream.device.context, stream.cuda_stream, ctypes.byref(ctypes.c_void_p()))
