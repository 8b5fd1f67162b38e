"""Warp devices, and the start of Warp without messages."""

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Iterator

import warp as wp

from warpbots.numerics.warp_settings import with_own_settings

__all__ = ["native_messages", "warp_device"]

_NO_GPU = "Warp CUDA warning: Could not find or load the NVIDIA CUDA driver. GPU execution will not be available."


def warp_device(name: wp.DeviceLike = None) -> wp.Device:
    """The Warp device of the given name, or the current device if `name` is None.

    The first use of Warp in a process must be a call of this function. When Warp starts by itself on a machine without
    a GPU, it writes a message to stderr, and graders of notebooks mistake this message for an error of the first cell.

    Raises:
        ValueError: There is no device of this name.
    """
    _start()
    return wp.get_device(name)


@functools.cache
def _start() -> None:
    """Start Warp; its messages are written to stderr, except for the message about a missing GPU."""
    with native_messages() as said:
        with_own_settings(wp.init)
    for line in said:
        if line != _NO_GPU:
            sys.stderr.write(f"{line}\n")


@contextlib.contextmanager
def native_messages() -> Iterator[list[str]]:
    """Capture the lines that compiled code writes to stderr during the block; the list is complete after the block."""
    lines: list[str] = []
    try:
        stderr = os.dup(2)
    except OSError:  # a process without stderr
        yield lines
        return
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            lines += written.read().decode(errors="replace").splitlines()
