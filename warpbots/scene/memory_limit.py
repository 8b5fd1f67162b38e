"""What would not fit into memory is refused before it is made."""

import contextlib
import math
import os
from pathlib import Path

from warpbots.scene.record import SceneError

__all__ = ["available_memory", "refuse_excess"]

_MOST = 2**31 - 1
"""The largest number that kernels count to."""


def available_memory() -> float:
    """Memory of the host that can still be taken [bytes]; infinity where the system does not say."""
    free = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, KeyError, ValueError):
        free.append(1024 * _entries("/proc/meminfo")["MemAvailable:"])
    with contextlib.suppress(OSError, KeyError, ValueError):  # containers have less than their machine
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        free.append(limit - _entries("/sys/fs/cgroup/memory.stat")["anon"])
    return min(free)


def refuse_excess(count: float, each: float, what: str, remedy: str) -> None:
    """Raise if so many things do not fit into memory.

    Args:
        count: How many; it may be too large for an integer.
        each: Memory that one takes at the most, as measured [bytes].
        what: What they are, in the plural and of which body or solver, for people.
        remedy: What a user can do about it.

    Raises:
        SceneError: They do not, or there are more than can be counted.
    """
    need, free = count * each, available_memory()
    if need > free:
        raise SceneError(
            f"{what}: {count:.3g} of them need about {_gigabytes(need)} of memory, and {_gigabytes(free)} are left; "
            f"{remedy}"
        )
    if count > _MOST:
        raise SceneError(f"{what}: {count:.3g} of them are more than the {_MOST:.3g} that can be counted; {remedy}")


def _entries(path: str) -> dict[str, int]:
    """First two words of each line of a file."""
    return {words[0]: int(words[1]) for words in map(str.split, Path(path).read_text().splitlines())}


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
