"""Settings of Warp are global and belong to the user; those that warpbots needs hold during its own calls alone."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import warp as wp

from warpbots.numerics import threads

__all__ = ["with_own_settings"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_own_settings(call: Callable[_P, _R], *words: _P.args, **options: _P.kwargs) -> _R:
    """Call a function of Warp under the settings of warpbots, and leave those of the user as they were.

    A line for each kernel module that is loaded appears at ``wp.LOG_DEBUG`` alone: ``wp.LOG_INFO`` is Warp's default,
    which nobody has asked for. Where a CPU takes the choices of a GPU, threads of a block wait for one another.

    Args:
        call: The function, such as ``wp.launch``.
        words: Its positional arguments.
        options: Its keyword arguments.
    """
    config = wp.config
    loud = config.log_level == wp.LOG_INFO
    alone = threads.emulated() and not config.enable_cpu_blocks
    if loud:
        config.log_level = wp.LOG_WARNING
    if alone:
        config.enable_cpu_blocks = True
    try:
        return call(*words, **options)
    finally:  # only what was changed here: another thread may be in here, too
        if loud:
            config.log_level = wp.LOG_INFO
        if alone:
            config.enable_cpu_blocks = False
