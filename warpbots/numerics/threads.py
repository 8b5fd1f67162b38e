"""Whether a launch has many threads, on which the shape of a kernel's work depends."""

import os

import warp as wp

__all__ = ["parallel"]

_ALWAYS = os.environ.get("WARPBOTS_PARALLEL") == "1"
if _ALWAYS:
    wp.config.enable_cpu_blocks = True  # threads of a block that wait for one another


def parallel(device: wp.Device) -> bool:
    """Whether launches on `device` run many threads at once: those of a GPU do, those of a CPU run one.

    Where the two want different work, as rows that gather and rows that scatter, this is what decides. With the
    environment variable ``WARPBOTS_PARALLEL`` set to ``1`` a CPU takes the choices of a GPU: slower, and the way to
    test them without one.
    """
    return device.is_cuda or _ALWAYS
