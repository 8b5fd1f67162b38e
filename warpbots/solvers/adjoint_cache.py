"""What a state owns besides its fields, because the adjoint of the step that ends in it will want it."""

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Kept"]


class Kept(weakref.WeakKeyDictionary):
    """Anything by state, made when it is first asked for and gone with its state."""

    def of(self, state: object, make: Callable[[], Any]) -> Any:
        """What `state` owns, from `make` the first time."""
        if state not in self:
            self[state] = make()
        return self[state]
