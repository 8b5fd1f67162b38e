"""Grammars of robots: rules that join components and further rules, and the topologies to which the rules lead."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from warpbots.design.component import Component
from warpbots.design.grammar.checks import cycle, refuse_endless, refuse_misfits, smallest_sizes
from warpbots.design.grammar.derivations import Derivation, Derivations, chosen
from warpbots.design.grammar.production import Production
from warpbots.design.grammar.symmetry import canonical
from warpbots.design.grammar.term import Term
from warpbots.design.grammar.topology import Topology

__all__ = ["Grammar"]

_LARGEST = 200
"""Largest number of components of a topology, well below the recursion limit of Python."""
_PATIENCE = 100
"""Largest number of random draws for each distinct topology that is requested."""


@dataclasses.dataclass(frozen=True, eq=False)
class Grammar:
    """A regular tree grammar: the name of a rule is replaced by components and names of further rules.

    Rules are plain data. In ``{"finger": ["knuckle segment", "segment"], "segment": ["joint phalanx tip", "joint
    phalanx segment"]}`` each rule has a list of productions. A production is a `Term` of components, whose leaves may
    be names of rules. A mapping in place of the list gives weights: ``{"knuckle segment": 1, "segment": 3}``.

    Everything is checked when the grammar is made, including the sections of all ports that can join. See Comon et al.,
    Tree Automata Techniques and Applications (2007), section 2.1, for regular tree grammars; see Zhao et al. 2020
    (RoboGrammar) and Xu et al. 2021 (DiffHand, section III-A) for grammars of robots.

    Attributes:
        rules: Productions of each rule, as texts of terms; or the weight of each production, by the text of the term.
        components: Components by name.
        start: The rule with which every topology begins; None for the first rule.

    Raises:
        ValueError: A rule never ends, has no productions, has the same production twice, or has a weight that is not
            positive; a name is unknown, or is the name of both a rule and a component; or components do not fit.
    """

    rules: Mapping[str, Sequence[str] | Mapping[str, float]]
    components: Mapping[str, Component]
    start: str | None = None

    def __post_init__(self):
        if not self.rules:
            raise ValueError("Grammar: it has no rules")
        if self.start is None:
            object.__setattr__(self, "start", next(iter(self.rules)))
        if self.start not in self.rules:
            raise ValueError(
                f"Grammar: there is no rule {self.start!r} to start with; there are {', '.join(self.rules)}"
            )
        if both := [name for name in self.rules if name in self.components]:
            raise ValueError(f"Grammar: {both[0]!r} is the name of a rule and of a component; rename one of them")
        refuse_endless(self.productions)
        refuse_misfits(self.productions, self.components)

    @functools.cached_property
    def productions(self) -> dict[str, tuple[Production, ...]]:
        """The productions of each rule."""
        return {symbol: self._productions_of(symbol) for symbol in self.rules}

    def count(self, size: int) -> int:
        """Number of derivations with `size` components; several derivations may lead to the same topology."""
        return int(self._counted(max(size, 1)).total(self.start, size))

    def topologies(self, largest: int | None = None, up_to_symmetry: bool = False) -> Iterator[Topology]:
        """All topologies, in ascending order of size; each topology is yielded once.

        Args:
            largest: Largest number of components, at most 200; None if the grammar has no recursion.
            up_to_symmetry: Whether robots that are rotated or mirrored images of each other count as one topology.

        Raises:
            ValueError: All topologies have more than `largest` components, or `largest` is None and a rule leads back
                to itself.
        """
        largest = self._limit(largest)
        derivations = self._counted(largest)

        def found() -> Iterator[Topology]:
            for size in range(1, largest + 1):
                seen = set()
                for derivation in derivations.all(self.start, size):
                    topology = self._topology(derivation)
                    key = canonical(topology.term, self.components) if up_to_symmetry else topology.term
                    if key not in seen:
                        seen.add(key)
                        yield topology

        return found()

    def random(self, largest: int, seed: int = 0, uniform: bool = False) -> Topology:
        """A random topology.

        Args:
            largest: Largest number of components, at most 200.
            seed: Seed of the random numbers.
            uniform: Whether all derivations with at most `largest` components are equally likely; otherwise the
                probability of a derivation is the product of the weights of its productions, divided by the sum of
                these products over all derivations.

        Raises:
            ValueError: All topologies have more than `largest` components.
        """
        return next(self._random(largest, seed, uniform))

    def sample(self, count: int, largest: int, seed: int = 0, uniform: bool = False) -> list[Topology]:
        """Random topologies that all differ from each other.

        Args:
            count: Number of topologies.
            largest: Largest number of components, as in `random`.
            seed: Seed of the random numbers.
            uniform: Whether all derivations are equally likely, as in `random`.

        Raises:
            ValueError: There are too few different topologies, all have more than `largest` components, or `count` is
                negative.
        """
        if count < 0:
            raise ValueError(f"Grammar.sample: count must not be negative, got {count}")
        found: dict[Term, Topology] = {}
        drawn = self._random(largest, seed, uniform)
        for _ in range(_PATIENCE * count):
            if len(found) == count:
                break
            topology = next(drawn)
            found.setdefault(topology.term, topology)
        if len(found) < count:
            raise ValueError(
                f"Grammar.sample: {_PATIENCE * count} draws have found {len(found)} different topologies of at most "
                f"{largest} components, and not {count}; ask for fewer or larger ones, or take all by topologies()"
            )
        return list(found.values())

    def _random(self, largest: int, seed: int, uniform: bool) -> Iterator[Topology]:
        largest = self._limit(largest)
        derivations = self._counted(largest, None if uniform else _weight)
        sizes = range(1, largest + 1)
        weights = [derivations.total(self.start, size) for size in sizes]
        rng = np.random.default_rng(seed)
        while True:
            yield self._topology(derivations.draw(self.start, chosen(sizes, weights, rng), rng))

    def _counted(self, largest: int, weight: Callable[[Production], float] | None = None) -> Derivations:
        """The derivations, counted up to `largest` components; by default all productions have the weight 1."""
        derivations = Derivations(self.productions, weight or (lambda production: 1))
        for size in range(1, largest + 1):  # in ascending order, so that recursion stays shallow
            derivations.total(self.start, size)
        return derivations

    def _topology(self, derivation: Derivation) -> Topology:
        return Topology(tuple((p.symbol, str(p.term)) for p in derivation), self.components)

    def _limit(self, largest: int | None) -> int:
        """`largest`, or the number of components of the largest topology if `largest` is None."""
        smallest = smallest_sizes(self.productions)[self.start]
        if largest is None:
            if found := cycle(self.productions, self.start):
                raise ValueError(
                    f"Grammar: rules {' -> '.join(map(repr, found))} lead back to where they began, so that topologies "
                    f"have no end; give the largest number of components"
                )
            largest = self._longest(self.start)
        if not smallest <= largest <= _LARGEST:
            raise ValueError(
                f"Grammar: topologies from {self.start!r} have at least {smallest:g} components, and largest must be "
                f"from there to {_LARGEST}, got {largest}"
            )
        return largest

    def _longest(self, symbol: str) -> int:
        """The largest number of components of a derivation of the rule `symbol`, in a grammar without recursion."""
        return max(p.size + sum(self._longest(name) for name in p.rules) for p in self.productions[symbol])

    def _productions_of(self, symbol: str) -> tuple[Production, ...]:
        own = self.rules[symbol]
        weights = dict(own) if isinstance(own, Mapping) else dict.fromkeys(own, 1.0)
        what = f"Grammar: rule {symbol!r}"
        if isinstance(own, str) or not weights:
            raise ValueError(f"{what} needs a list of productions, or weights by production, got {own!r}")
        if bad := [text for text, weight in weights.items() if not 0.0 < weight < math.inf]:
            raise ValueError(f"{what}: the weight of {bad[0]!r} must be positive and finite, got {weights[bad[0]]!r}")
        terms = [self._term(what, text) for text in weights]
        if len(set(terms)) < len(own):
            raise ValueError(f"{what} has one production twice; give it a weight of 2 instead")
        total = sum(weights.values())
        return tuple(
            Production(symbol, term, tuple(s for s in term.symbols() if s in self.rules), weight / total)
            for term, weight in zip(terms, weights.values(), strict=True)
        )

    def _term(self, what: str, text: str) -> Term:
        """The term of a production, parsed and checked."""
        try:
            term = Term.parse(text)
        except ValueError as fault:
            raise ValueError(f"{what}: {fault}") from None
        for node in term.nodes():
            if node.symbol not in self.rules and node.symbol not in self.components:
                raise ValueError(
                    f"{what}: production {text!r} names {node.symbol!r}, which is neither a rule nor a component; "
                    f"there are rules {', '.join(self.rules)} and components {', '.join(self.components)}"
                )
            if node.symbol in self.rules and node.children:
                raise ValueError(
                    f"{what}: in production {text!r} something joins {node.symbol!r}, which is a rule; only components "
                    f"have ports, so move it into the productions of {node.symbol!r}"
                )
        return term


def _weight(production: Production) -> float:
    return production.weight
