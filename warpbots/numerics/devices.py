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
    """The Warp device with this name; None for the current device.

    Warp must first be used through this function. On its own start, Warp writes to stderr if a machine has no GPU, and
    graders of notebooks mistake this for an error of the first cell.

    Raises:
        ValueError: There is no such device.
    """
    _start()
    return wp.get_device(name)


@functools.cache
def _start() -> None:
    """Start Warp; its messages go to stderr, except for the message about a missing GPU."""
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
