"""Devices of Warp, and a start of Warp without noise."""

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Iterator

import warp as wp

__all__ = ["native_messages", "warp_device"]

_NO_GPU = "Warp CUDA warning: Could not find or load the NVIDIA CUDA driver. GPU execution will not be available."


def warp_device(name: wp.DeviceLike = None) -> wp.Device:
    """The device of Warp with this name; None for the current one.

    What comes first to Warp comes through here: its start says on stderr that a machine has no GPU, which graders of
    notebooks take for a fault of the cell that happens to run then.

    Raises:
        ValueError: There is no such device.
    """
    _start()
    return wp.get_device(name)


@functools.cache
def _start() -> None:
    """Start Warp; of what it says, all but the absence of a GPU goes to stderr."""
    with native_messages() as said:
        wp.init()
    for line in said:
        if line != _NO_GPU:
            sys.stderr.write(f"{line}\n")


@contextlib.contextmanager
def native_messages() -> Iterator[list[str]]:
    """Lines that compiled code writes to stderr meanwhile, which are kept from it; complete when the block ends."""
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
