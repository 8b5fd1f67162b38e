"""Makes names unique."""

from collections.abc import Iterable

__all__ = ["distinct", "unique"]


def unique(name: str, taken: set[str]) -> str:
    """`name`, with a number appended if it is in `taken`; the result is added to `taken`."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} {count}"
    taken.add(found)
    return found


def distinct(names: Iterable[str], taken: set[str]) -> list[str]:
    """The `names`, each made unique by `unique`, one after the other."""
    return [unique(name, taken) for name in names]
