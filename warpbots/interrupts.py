"""Interrupts from the keyboard, deferred where they would do harm."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["interrupts_deferred"]


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Context during which Ctrl-C has no effect; it takes effect at the end.

    Python raises `KeyboardInterrupt` between any two lines of the main thread, also between those of its own library:
    an interrupt while a thread pool counts its idle threads left the lock of the counter locked, and later tasks waited
    for ever.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # Python handles signals only in the main thread, and none that the system ignores
        return
    waiting: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(signal.SIGINT, waiting[0])
