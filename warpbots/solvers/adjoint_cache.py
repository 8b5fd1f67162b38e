"""Data kept with a state besides its fields, because the adjoint of the step that ends in this state reads them."""

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["AdjointCache"]


class AdjointCache(weakref.WeakKeyDictionary):
    """Objects by state, created at the first request and freed with their state."""

    def of(self, state: object, make: Callable[[], Any]) -> Any:
        """Returns the object of `state`; `make` creates it at the first call."""
        if state not in self:
            self[state] = make()
        return self[state]
