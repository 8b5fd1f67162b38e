"""Whether a launch has many threads, on which the choice of kernels depends."""

import os

import warp as wp

__all__ = ["emulated", "parallel"]

_ALWAYS = os.environ.get("WARPBOTS_PARALLEL") == "1"


def emulated() -> bool:
    """Whether a CPU uses the kernels of a GPU: the environment variable ``WARPBOTS_PARALLEL`` is ``1``."""
    return _ALWAYS


def parallel(device: wp.Device) -> bool:
    """Whether launches on `device` run many threads at once: true on a GPU; a CPU runs one thread.

    The result decides between kernels for a GPU and kernels for a CPU, such as gathering and scattering products with
    rows. With the environment variable ``WARPBOTS_PARALLEL`` set to ``1`` a CPU uses the kernels of a GPU, which is
    slower, but tests them without a GPU.
    """
    return device.is_cuda or _ALWAYS
