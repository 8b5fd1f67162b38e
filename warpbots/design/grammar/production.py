"""Productions: terms that may replace a symbol."""

import dataclasses
import functools

from warpbots.design.grammar.term import Term

__all__ = ["Production"]


@dataclasses.dataclass(frozen=True)
class Production:
    """A term that may replace a symbol.

    Attributes:
        symbol: The symbol that the term may replace: the name of a rule.
        term: The term that replaces the symbol; inner nodes are components, leaves are components or names of rules.
        rules: The names of rules among the leaves of the term, in the order of the leaves.
        weight: Probability of this production among all productions of the rule.
    """

    symbol: str
    term: Term
    rules: tuple[str, ...]
    weight: float

    @functools.cached_property
    def size(self) -> int:
        """Number of components in the term."""
        return sum(1 for _ in self.term.symbols()) - len(self.rules)

    def __str__(self):
        return f"{self.symbol} -> {self.term}"
