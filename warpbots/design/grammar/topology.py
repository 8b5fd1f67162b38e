"""Topologies of robots: trees of components that are derived from a grammar."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

from warpbots.design.assembly import Assembly
from warpbots.design.component import Component
from warpbots.design.grammar.term import Term
from warpbots.design.tree import Node
from warpbots.scene.field_types import checked

__all__ = ["Topology"]


@dataclasses.dataclass(frozen=True)
class Topology:
    """A tree of components, given by its derivation.

    ``str(topology)`` is the tree of the names of the components in the notation of the grammar, such as ``palm(out:
    knuckle joint phalanx tip)``.

    Attributes:
        derivation: Pairs of the name of a rule and the text of the production that replaces this name. The derivation
            begins with the rule name of the first pair; each pair then replaces the first rule name in the text derived
            so far.
        components: Components by name.

    Raises:
        ValueError: The derivation is invalid, or a component is missing.
    """

    derivation: tuple[tuple[str, str], ...]
    components: Mapping[str, Component] = dataclasses.field(repr=False, compare=False)

    def __post_init__(self):
        if missing := [symbol for symbol in self.term.symbols() if symbol not in self.components]:
            raise ValueError(
                f"Topology: there is no component {missing[0]!r}; there are {', '.join(self.components)}: "
                f"add it to the table of components"
            )

    def __str__(self):
        return str(self.term)

    @functools.cached_property
    def term(self) -> Term:
        """The tree of the names of the components."""
        if not self.derivation:
            raise ValueError("Topology: its derivation is empty")
        return _derived(self.derivation)

    @property
    def size(self) -> int:
        """Number of components."""
        return sum(1 for _ in self.term.symbols())

    def node(self) -> Node:
        """The tree of components."""
        return self._node(self.term)

    @checked
    def assembly(self, constant: Sequence[str] = (), density: float = 1000.0) -> Assembly:
        """The topology as articulated bodies with free sizes.

        Args:
            constant: Names, or patterns of names such as ``"palm.*"``, of scale factors that remain 1.
            density: Density [kg/m^3].

        Raises:
            ValueError: A pattern matches no parameter, or the density is not positive.
        """
        return Assembly(self.node(), constant, density)

    def _node(self, term: Term) -> Node:
        return Node(self.components[term.symbol], {port: self._node(child) for port, child in term.children})


def _derived(derivation: Sequence[tuple[str, str]]) -> Term:
    """The term to which a derivation leads: each production replaces the first rule name in the term so far."""
    names, steps = {symbol for symbol, _ in derivation}, iter(derivation)

    def expanded(term: Term) -> Term:
        if term.symbol in names:
            return expanded(_replacement(steps, term.symbol))
        return Term(term.symbol, tuple((port, expanded(child)) for port, child in term.children))

    found = expanded(_replacement(steps, derivation[0][0]))
    if rest := next(steps, None):
        raise ValueError(f"Topology: its derivation is complete before {rest[0]!r} -> {rest[1]!r}")
    return found


def _replacement(steps: Iterator[tuple[str, str]], symbol: str) -> Term:
    step = next(steps, None)
    if step is None or step[0] != symbol:
        found = "ends" if step is None else f"replaces {step[0]!r}"
        raise ValueError(f"Topology: its derivation {found} where it has to replace {symbol!r}")
    return Term.parse(step[1])
