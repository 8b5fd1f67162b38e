"""Refusal of objects that do not fit into memory, before they are allocated."""

import contextlib
import math
import os
from pathlib import Path

from warpbots.scene.record import SceneError

__all__ = ["available_memory", "refuse_excess"]

_MOST = 2**31 - 1
"""The largest index in a kernel."""


def available_memory() -> float:
    """Available memory of the host [bytes]; infinity if the system does not report it."""
    free = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, KeyError, ValueError):
        free.append(1024 * _entries("/proc/meminfo")["MemAvailable:"])
    with contextlib.suppress(OSError, KeyError, ValueError):  # containers have less memory than their host
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        free.append(limit - _entries("/sys/fs/cgroup/memory.stat")["anon"])
    return min(free)


def refuse_excess(count: float, each: float, what: str, remedy: str) -> None:
    """Raise an error if a number of objects does not fit into memory.

    Args:
        count: Number of objects; the number may be too large for an integer.
        each: Measured memory of one object [bytes].
        what: Words for the objects in messages, in the plural, including the body or solver to which they belong.
        remedy: Advice for the user in messages.

    Raises:
        SceneError: The objects do not fit into memory, or their number exceeds the range of an index.
    """
    need, free = count * each, available_memory()
    if need > free:
        raise SceneError(
            f"{what}: {count:.3g} of them need about {_gigabytes(need)} of memory, and {_gigabytes(free)} are "
            f"available; {remedy}"
        )
    if count > _MOST:
        raise SceneError(f"{what}: {count:.3g} of them exceed the largest index, {_MOST:.3g}; {remedy}")


def _entries(path: str) -> dict[str, int]:
    """Read a file whose lines consist of a word and an integer; return the integers by word."""
    return {words[0]: int(words[1]) for words in map(str.split, Path(path).read_text().splitlines())}


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
