"""Warnings are attributed to the line of the user's program, however many calls lie between it and what warns."""

import inspect
import types
import warnings

__all__ = ["user_frame", "warn_user"]

_BETWEEN = {"warpbots", "torch"}
"""Packages whose functions call one another on the way from a program to a warning."""


def user_frame() -> tuple[types.FrameType, int]:
    """The innermost frame of neither warpbots nor torch, or the outermost one, and how many calls it is away.

    Modules are told by their names, as functions that are generated, such as those of dataclasses, have no file.
    """
    frame, calls = inspect.currentframe(), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        frame, calls = frame.f_back, calls + 1
    return frame, calls


def warn_user(warning: str | Warning) -> None:
    """Issue a warning at the user's line, which sees it once, as Python has it.

    Args:
        warning: The message of a `UserWarning`, or a warning.
    """
    warnings.warn(warning, stacklevel=user_frame()[1])
