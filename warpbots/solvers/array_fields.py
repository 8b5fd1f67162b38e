"""States and readings: dataclasses of arrays of one kind, Warp's in a solver and torch's in a simulation."""

import dataclasses
from typing import Generic, TypeVar

__all__ = ["Array", "ArrayFields", "Other"]

Array = TypeVar("Array")
"""Kind of the fields: ``wp.array``, or ``torch.Tensor``."""

Other = TypeVar("Other")
"""Another kind of fields."""


class ArrayFields(Generic[Array]):
    """Base of dataclasses whose fields are arrays of one kind."""

    def fields(self) -> list[Array]:
        """All arrays, in the order of the attributes."""
        return [getattr(self, f.name) for f in dataclasses.fields(self)]
