"""Size of a run: with ``WARPBOTS_FAST`` in the environment, a script takes about a second and leaves no figures.

Such a test run only checks that the script runs to its end; its results mean nothing.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TypeVar

__all__ = ["FAST", "figures", "sized"]

FAST = "WARPBOTS_FAST" in os.environ
"""Whether scripts run at a small size, as in the tests."""

T = TypeVar("T")


def sized(full: T, fast: T) -> T:
    """Return `full` for a measurement, or `fast` for a test run."""
    return fast if FAST else full


def figures(script: str) -> Path:
    """The folder for the figures of a script: the folder of the script, or a temporary folder in a test run."""
    if not FAST:
        return Path(script).resolve().parent
    folder = tempfile.mkdtemp(prefix="warpbots-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # at exit, as a test may unload this module
    return Path(folder)
