"""Devices of Warp, and a quiet start of Warp."""

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
    """The device of Warp with this name; None for the current one.

    The first use of Warp goes through this function: at its start Warp says on stderr if a machine has no GPU, which
    graders of notebooks mistake for an error of the cell that runs first.

    Raises:
        ValueError: There is no such device.
    """
    _start()
    return wp.get_device(name)


@functools.cache
def _start() -> None:
    """Start Warp; its messages go to stderr, except the one about a missing GPU."""
    with native_messages() as said:
        with_own_settings(wp.init)
    for line in said:
        if line != _NO_GPU:
            sys.stderr.write(f"{line}\n")


@contextlib.contextmanager
def native_messages() -> Iterator[list[str]]:
    """Capture the lines that compiled code writes to stderr during the block; complete when the block ends."""
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
