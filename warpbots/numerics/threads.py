"""Whether a launch has many threads, on which the choice of kernels depends."""

import os

import warp as wp

__all__ = ["emulated", "parallel"]

_ALWAYS = os.environ.get("WARPBOTS_PARALLEL") == "1"


def emulated() -> bool:
    """Whether a CPU takes the choices of a GPU, as the environment variable ``WARPBOTS_PARALLEL`` demands."""
    return _ALWAYS


def parallel(device: wp.Device) -> bool:
    """Whether launches on `device` run many threads at once: true on a GPU; a CPU runs one thread.

    This decides between kernels for the two, such as rows that gather and rows that scatter. With the environment
    variable ``WARPBOTS_PARALLEL`` set to ``1`` a CPU uses the kernels of a GPU, which is slower, but tests them without
    a GPU.
    """
    return device.is_cuda or _ALWAYS
