"""Settings of Warp during calls of warpbots.

The settings of Warp are global and belong to the user; the settings of warpbots apply only during calls of warpbots.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import warp as wp

from warpbots.numerics import threads

__all__ = ["with_own_settings"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_own_settings(call: Callable[_P, _R], *words: _P.args, **options: _P.kwargs) -> _R:
    """Call a function of Warp under the settings of warpbots, then restore the settings of the user.

    Warp's message about each kernel module that is loaded appears only if the user has set ``wp.LOG_DEBUG``, not at
    Warp's default ``wp.LOG_INFO``. If a CPU uses the kernels of a GPU, the threads of a block wait for one another.
    Otherwise kernels for a CPU do not note the place of their tiles in a variable of the module, as Warp's kernels do
    on x86: two threads of a process could not run kernels of one module at the same time.

    Args:
        call: The function, such as ``wp.launch``.
        words: Positional arguments of the function.
        options: Keyword arguments of the function.
    """
    config = wp.config
    loud = config.log_level == wp.LOG_INFO
    alone = threads.emulated() and not config.enable_cpu_blocks
    stacked = config.enable_tiles_in_stack_memory if not threads.emulated() else None
    if loud:
        config.log_level = wp.LOG_WARNING
    if alone:
        config.enable_cpu_blocks = True
    if stacked:
        config.enable_tiles_in_stack_memory = None
    try:
        return call(*words, **options)
    finally:  # only what was changed here: another thread may be in here, too
        if loud:
            config.log_level = wp.LOG_INFO
        if alone:
            config.enable_cpu_blocks = False
        if stacked:
            config.enable_tiles_in_stack_memory = stacked
