"""Queries whether launches run many threads at once; the choice of kernels depends on the answer."""

import os

import warp as wp

__all__ = ["emulated", "parallel"]

_ALWAYS = os.environ.get("WARPBOTS_PARALLEL") == "1"


def emulated() -> bool:
    """Whether a CPU uses the kernels of a GPU because the environment variable ``WARPBOTS_PARALLEL`` is ``1``."""
    return _ALWAYS


def parallel(device: wp.Device) -> bool:
    """Whether launches on `device` run many threads at once, which is true on a GPU; a CPU runs a single thread.

    The result decides between kernels for a GPU and kernels for a CPU, for example between products with rows that
    gather and products that scatter. With the environment variable ``WARPBOTS_PARALLEL`` set to ``1`` a CPU uses the
    kernels of a GPU. This is slower, but tests these kernels without a GPU.
    """
    return device.is_cuda or _ALWAYS
