"""How large a script runs: with ``WARPBOTS_FAST`` in the environment, in about a second, and it leaves no pictures.

That says that a script starts and comes to its end; what it prints then measures nothing.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TypeVar

__all__ = ["FAST", "figures", "sized"]

FAST = "WARPBOTS_FAST" in os.environ
"""Whether scripts are only started, as the tests do."""

T = TypeVar("T")


def sized(full: T, fast: T) -> T:
    """`full` where something is measured, `fast` where a script is only started."""
    return fast if FAST else full


def figures(script: str) -> Path:
    """The folder where a script's figures go: beside it, or one that vanishes with this process."""
    if not FAST:
        return Path(script).resolve().parent
    folder = tempfile.mkdtemp(prefix="warpbots-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # outlives this module, which a test may unload
    return Path(folder)
