"""States and readings as lists of arrays."""

import dataclasses

import warp as wp

__all__ = ["ArrayFields"]


class ArrayFields:
    """Base of dataclasses whose fields are Warp arrays."""

    def fields(self) -> list[wp.array]:
        """All arrays, in the order of the attributes."""
        return [getattr(self, f.name) for f in dataclasses.fields(self)]
