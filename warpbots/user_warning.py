"""Warnings that are attributed to a line of the user's program, even through many calls inside of warpbots."""

import inspect
import types
import warnings

__all__ = ["user_frame", "warn_user"]

_BETWEEN = {"warpbots", "torch"}
"""Packages whose functions may lie between the user's program and a warning."""


def user_frame() -> tuple[types.FrameType, int]:
    """The innermost stack frame outside warpbots and torch, or else the outermost frame, and its distance in calls.

    Modules are recognised by their names, because generated functions, such as methods of dataclasses, have no file.
    """
    frame, calls = inspect.currentframe(), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        frame, calls = frame.f_back, calls + 1
    return frame, calls


def warn_user(warning: str | Warning) -> None:
    """Issue a warning at the user's line; by default Python shows it once per line.

    Args:
        warning: The message of a `UserWarning`, or the warning itself.
    """
    warnings.warn(warning, stacklevel=user_frame()[1])
