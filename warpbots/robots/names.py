"""Names that are unique."""

__all__ = ["unique"]


def unique(name: str, taken: set[str]) -> str:
    """`name`, numbered if it is in `taken`, to which the result is added."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} {count}"
    taken.add(found)
    return found
