"""Counts, lists or draws at random the derivations of a grammar with a given number of components."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from warpbots.design.grammar.production import Production

__all__ = ["Derivation", "Derivations"]

Derivation: TypeAlias = tuple[Production, ...]
"""Productions in the order in which they replace the first symbol that is the name of a rule."""

_Option = TypeVar("_Option")


class Derivations:
    """The derivations of a grammar; the weight of a derivation is the product of the weights of its productions.

    Let a production have the weight w, c components and the rules B1, ..., Bk. The total weight N(n) of all derivations
    of a symbol with n components is the sum of w S(n - c) over the productions of the symbol, where S is the
    convolution of the functions N of the rules B1, ..., Bk. With the numbers N a random derivation is drawn top down,
    each choice with its exact probability (Nijenhuis and Wilf 1978, the recursive method; Flajolet, Zimmermann and Van
    Cutsem 1994).
    """

    def __init__(self, productions: Mapping[str, Sequence[Production]], weight: Callable[[Production], float]):
        """Store the productions by symbol; no production may lead back to its own symbol without adding a component."""
        self._productions, self._weight = productions, weight
        self.total = functools.cache(self._total)
        self._together = functools.cache(self._convolution)

    def all(self, symbol: str, size: int) -> Iterator[Derivation]:
        """All derivations from `symbol` with `size` components."""
        for production in self._productions[symbol]:
            for parts in self._splits(production.rules, size - production.size):
                yield (production, *parts)

    def draw(self, symbol: str, size: int, rng: np.random.Generator) -> Derivation:
        """A random derivation from `symbol` with `size` components; at least one such derivation must exist."""
        own = self._productions[symbol]
        production = chosen(own, [self._of_production(p, size) for p in own], rng)
        parts: Derivation = (production,)
        rules, left = production.rules, size - production.size
        while rules:
            first, rules = rules[0], rules[1:]
            sizes = range(1, left + 1)
            n = chosen(sizes, [self.total(first, n) * self._together(rules, left - n) for n in sizes], rng)
            parts += self.draw(first, n, rng)
            left -= n
        return parts

    def _total(self, symbol: str, size: int) -> float:
        """Total weight of all derivations from `symbol` with `size` components.

        It is an int if all weights are ints.
        """
        return sum(self._of_production(production, size) for production in self._productions[symbol])

    def _of_production(self, production: Production, size: int) -> float:
        return self._weight(production) * self._together(production.rules, size - production.size)

    def _convolution(self, rules: tuple[str, ...], size: int) -> float:
        """Total weight of all ways to derive `size` components in total from the symbols `rules`."""
        if not rules:
            return 1 if size == 0 else 0
        return sum(self.total(rules[0], n) * self._together(rules[1:], size - n) for n in range(1, size + 1))

    def _splits(self, rules: tuple[str, ...], size: int) -> Iterator[Derivation]:
        if not rules:
            if size == 0:
                yield ()
            return
        for n in range(1, size + 1):
            if self.total(rules[0], n) and self._together(rules[1:], size - n):
                for head in self.all(rules[0], n):
                    for tail in self._splits(rules[1:], size - n):
                        yield head + tail


def chosen(options: Sequence[_Option], weights: Sequence[float], rng: np.random.Generator) -> _Option:
    """One of several options, with a probability in proportion to its weight."""
    total, level = sum(weights), rng.random()
    likely = [(option, weight / total) for option, weight in zip(options, weights, strict=True) if weight]
    for option, probability in likely:
        level -= probability
        if level < 0.0:
            return option
    return likely[-1][0]  # rounding may leave a remainder
