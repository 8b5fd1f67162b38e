"""Arithmetic without subnormal numbers on x86 processors.

Numbers below 1.2e-38 in single precision (2.2e-308 in double) have fewer digits the smaller they are. A core of an x86
processor takes about 40 times as long for an instruction that meets one, and gradients are full of them: a body at rest
has strains of 1e-10, and products of two of them with the weight of a loss underflow. Replayed kernels therefore count
such numbers as zero, and leave the mode of the thread as it was. Other processors lose no time, and keep these numbers.
"""

import contextlib
from collections.abc import Iterator

import warp as wp

from warpbots.numerics.launch import launch

__all__ = ["mode_of_thread", "without_subnormals"]


def _x86(code: str) -> str:
    return f"""
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
    {code}
#endif
"""


@wp.func_native(
    _x86("""
    mode_out.data[0] = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode_out.data[0] | 0x8040);  // flush to zero, and denormals are zero
""")
)
def keep_and_flush(mode_out: wp.array[wp.uint32]):
    """Keep the mode of the thread, and let it count subnormal numbers as zero."""


@wp.func_native(_x86("__builtin_ia32_ldmxcsr(mode.data[0]);"))
def return_to(mode: wp.array[wp.uint32]):
    """Return to the kept mode."""


@wp.kernel(module=wp.get_module("warpbots.subnormals"), enable_backward=False)
def begin_kernel(mode_out: wp.array[wp.uint32]):
    """Keep the mode of floating-point numbers of this thread, and let it count subnormal numbers as zero."""
    keep_and_flush(mode_out)


@wp.kernel(module=wp.get_module("warpbots.subnormals"), enable_backward=False)
def end_kernel(mode: wp.array[wp.uint32]):
    """Return to the mode that `begin_kernel` kept."""
    return_to(mode)


def mode_of_thread(device: wp.Device) -> wp.array | None:
    """Array in which `without_subnormals` keeps the mode of a thread, shape (1,), uint32; None for a GPU."""
    return None if device.is_cuda else wp.zeros(1, dtype=wp.uint32, device=device)


@contextlib.contextmanager
def without_subnormals(mode: wp.array | None) -> Iterator[None]:
    """Context of launches, or of a capture of launches, that count subnormal numbers as zero.

    Args:
        mode: `mode_of_thread`, which a captured graph uses as long as it exists; None changes nothing.
    """
    if mode is None:
        yield
        return
    launch(begin_kernel, 1, [], [mode], mode.device)
    try:
        yield
    finally:
        launch(end_kernel, 1, [mode], [], mode.device)
