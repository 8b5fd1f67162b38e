"""Data stored for a state in addition to its fields, for the adjoint of the step that ends in this state."""

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["AdjointCache"]


class AdjointCache(weakref.WeakKeyDictionary):
    """Objects by state, created at the first request and freed with their state."""

    def of(self, state: object, make: Callable[[], Any]) -> Any:
        """The object stored for `state`; at the first call for a state, `make` creates this object."""
        if state not in self:
            self[state] = make()
        return self[state]
