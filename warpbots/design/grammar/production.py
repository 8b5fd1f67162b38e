"""Productions: terms that may replace a symbol."""

import dataclasses
import functools

from warpbots.design.grammar.term import Term

__all__ = ["Production"]


@dataclasses.dataclass(frozen=True)
class Production:
    """A term that may replace a symbol.

    Attributes:
        symbol: The symbol that is replaced, the name of a rule.
        term: The term that replaces it; inner nodes are components, leaves are components or names of rules.
        rules: The names of rules among its leaves, in order.
        weight: Its probability among the productions of the rule.
    """

    symbol: str
    term: Term
    rules: tuple[str, ...]
    weight: float

    @functools.cached_property
    def size(self) -> int:
        """Number of components in its term."""
        return sum(1 for _ in self.term.symbols()) - len(self.rules)

    def __str__(self):
        return f"{self.symbol} -> {self.term}"
