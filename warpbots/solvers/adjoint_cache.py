"""Cache of data that the adjoint of a step needs, owned by the state at the end of the step."""

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Kept"]


class Kept(weakref.WeakKeyDictionary):
    """Data by state, created on first use and deleted with the state."""

    def of(self, state: object, make: Callable[[], Any]) -> Any:
        """The data of `state`; `make` creates it on first use."""
        if state not in self:
            self[state] = make()
        return self[state]
