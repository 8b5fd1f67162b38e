"""Whether a launch has many threads, on which the choice of kernels depends."""

import os

import warp as wp

__all__ = ["parallel"]

_ALWAYS = os.environ.get("WARPBOTS_PARALLEL") == "1"
if _ALWAYS:
    wp.config.enable_cpu_blocks = True  # threads of a block that wait for one another


def parallel(device: wp.Device) -> bool:
    """Whether launches on `device` run many threads at once: true on a GPU; a CPU runs one thread.

    This decides between kernels for the two, such as rows that gather and rows that scatter. With the environment
    variable ``WARPBOTS_PARALLEL`` set to ``1`` a CPU uses the kernels of a GPU, which is slower, but tests them without
    a GPU.
    """
    return device.is_cuda or _ALWAYS
