"""Base of states and readings: dataclasses with Warp arrays (in a solver) or torch tensors (in a simulation)."""

import dataclasses
from typing import Generic, TypeVar

import warp as wp

__all__ = ["Array", "ArrayFields", "Other"]

Array = TypeVar("Array")
"""Type of the fields: ``wp.array`` or ``torch.Tensor``."""

Other = TypeVar("Other")
"""Type of the fields of a converted copy."""


class ArrayFields(Generic[Array]):
    """Base of dataclasses whose fields are all Warp arrays or all torch tensors."""

    def fields(self) -> list[Array]:
        """All arrays, in the order of the attributes."""
        return [getattr(self, f.name) for f in dataclasses.fields(self)]

    def __reduce__(self) -> tuple:
        """Make pickles and deep copies from the fields alone."""
        if any(isinstance(field, wp.array) for field in self.fields()):
            raise TypeError(
                f"a {type(self).__name__} of Warp arrays belongs to its device and is neither pickled nor deep-copied; "
                f"use the states of a Simulation, which are torch tensors"
            )
        return type(self), tuple(self.fields())
