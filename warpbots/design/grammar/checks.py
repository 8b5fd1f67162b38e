"""Checks of a grammar before its use: all names exist, components fit, and derivations end."""

import graphlib
import math
from collections.abc import Mapping, Sequence

from warpbots.design.component import Component
from warpbots.design.grammar.production import Production
from warpbots.design.grammar.term import Term
from warpbots.design.tree import Node, instances_of

__all__ = ["cycle", "refuse_endless", "refuse_misfits", "smallest_sizes"]

_Productions = Mapping[str, Sequence[Production]]


def smallest_sizes(productions: _Productions) -> dict[str, float]:
    """For each rule, the smallest number of components of its derivations; infinite if the rule never ends."""
    sizes = dict.fromkeys(productions, math.inf)
    for _ in productions:  # a smallest tree uses no rule twice on one branch
        for symbol, own in productions.items():
            sizes[symbol] = min(p.size + sum(sizes[name] for name in p.rules) for p in own)
    return sizes


def cycle(productions: _Productions, start: str, alone: bool = False) -> list[str]:
    """Rules that form a cycle, each leading to the next one; empty if there is no cycle.

    The last rule in the list is the first one again.

    Args:
        productions: Productions by rule.
        start: The rule from which the search for cycles starts.
        alone: Whether only productions without any component are considered.
    """
    graph = {s: {r for p in own if not (alone and p.size) for r in p.rules} for s, own in productions.items()}
    reached = _reached(graph, start)
    try:
        graphlib.TopologicalSorter({start: graph[start], **{s: graph[s] for s in reached}}).prepare()
    except graphlib.CycleError as fault:
        return list(reversed(fault.args[1]))
    return []


def refuse_endless(productions: _Productions) -> None:
    """Raise if a rule never ends, or if rules form a cycle that adds no component.

    Raises:
        ValueError: There are such rules; the message names the rules.
    """
    endless = {symbol for symbol, size in smallest_sizes(productions).items() if size == math.inf}
    graph = {s: {r for p in productions[s] for r in p.rules if r in endless} for s in endless}
    around = [repr(symbol) for symbol in productions if symbol in endless and symbol in _reached(graph, symbol)]
    if around:
        several = len(around) > 1
        raise ValueError(
            f"Grammar: {'rules' if several else 'rule'} {', '.join(around)} never {'end' if several else 'ends'}, as "
            f"every production leads to {'one of them' if several else 'it'} again; add one that does not"
        )
    for symbol in productions:
        if found := cycle(productions, symbol, alone=True):
            raise ValueError(
                f"Grammar: productions {' -> '.join(map(repr, found))} go round without adding a component; leave one "
                f"of them out"
            )


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Nodes of `graph` that can be reached from the node `start` in one or more steps."""
    reached, waiting = set[str](), [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def refuse_misfits(productions: _Productions, components: Mapping[str, Component]) -> None:
    """Raise if components that can join according to the rules do not fit.

    Raises:
        ValueError: A term names a port that its component does not have, or the sections of two ports differ; the
            message names the production.
    """
    roots = _roots(productions)
    for own in productions.values():
        for production in own:
            for term in production.term.nodes():
                for port, child in term.children:
                    for symbol in sorted(roots.get(child.symbol, {child.symbol})):
                        _refuse_misfit(production, components, term, port, symbol)


def _refuse_misfit(
    production: Production, components: Mapping[str, Component], parent: Term, port: str, child: str
) -> None:
    pair = Node(components[parent.symbol], {port: Node(components[child])})
    try:
        instances_of(pair)
    except (ValueError, KeyError) as fault:
        raise ValueError(
            f"Grammar: {str(production)!r} joins {child!r} to {parent.symbol!r}: {fault.args[0]}"
        ) from None


def _roots(productions: _Productions) -> dict[str, set[str]]:
    """For each rule, the components that can be the root of a derivation of the rule."""
    roots: dict[str, set[str]] = {symbol: set() for symbol in productions}
    for _ in productions:
        for symbol, own in productions.items():
            for production in own:
                first = production.term.symbol
                roots[symbol] |= roots.get(first, {first})
    return roots
