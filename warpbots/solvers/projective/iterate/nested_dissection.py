"""Nested dissection: an order of elimination in which many nodes are independent (George 1973).

A cut is a set of nodes that separates a domain into two halves that share no element. Halves are eliminated before the
cut, independently of one another, and are domains with cuts of their own. Cuts of several successive depths can be
combined into one block of nodes: there are then fewer levels of blocks, but their matrices have more entries.
`blocks_of` chooses the combination that a device with many threads solves fastest.
"""

import dataclasses

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

__all__ = ["Block", "blocks_of"]

_LAUNCH = 1_000_000  # entries of a matrix that a GPU reads while it starts a kernel (2 us)
_SMALLEST = 64  # number of nodes up to which a domain is not cut
_DEPTH = 24  # largest depth of cuts


@dataclasses.dataclass(frozen=True)
class Block:
    """Nodes that are eliminated together.

    Attributes:
        nodes: Indices of the nodes of this block, shape (n,).
        beyond: Indices of the nodes that are eliminated later and share an element with a node of this block or of a
            block below it, shape (m,).
        below: Blocks of the domains that remain after the cuts of this block.
    """

    nodes: np.ndarray
    beyond: np.ndarray
    below: "tuple[Block, ...]"


@dataclasses.dataclass(frozen=True)
class _Domain:
    """A domain: the nodes of its cut, its neighbours outside, and its halves; a small domain consists of its cut."""

    cut: np.ndarray
    beyond: np.ndarray
    halves: "tuple[_Domain, ...]"


def blocks_of(graph: csr_matrix, position: np.ndarray, worlds: int) -> Block:
    """The block that is eliminated last, with all other blocks below it.

    Args:
        graph: Which nodes share an element, shape (n, n), symmetric.
        position: Positions of the nodes [m], shape (n, 3).
        worlds: Number of worlds, each of which will solve with the matrix.
    """
    whole = _domain(graph, position, np.arange(len(position)), 0)
    return _block(whole, _depths(whole, worlds))


def _domain(graph: csr_matrix, position: np.ndarray, inside: np.ndarray, depth: int) -> _Domain:
    near = np.zeros(len(position), dtype=bool)
    near[graph[inside].indices] = True
    near[inside] = False
    beyond = np.flatnonzero(near)
    if len(inside) <= _SMALLEST or depth == _DEPTH:
        return _Domain(inside, beyond, ())
    place = position[inside]
    along = place[:, np.argmax(np.ptp(place, axis=0))]
    order = inside[np.argsort(along, kind="stable")]
    left, right = order[: len(order) // 2], order[len(order) // 2 :]
    cut = _cover(graph, left, right)
    halves = [np.setdiff1d(half, cut) for half in (left, right)]
    return _Domain(cut, beyond, tuple(_domain(graph, position, half, depth + 1) for half in halves if len(half)))


def _cover(graph: csr_matrix, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Fewest nodes that contain an end of every edge between two sets, by a largest matching (Koenig's theorem)."""
    between = graph[left][:, right]
    match = maximum_bipartite_matching(between, perm_type="column")  # of each on the left, -1 for none
    partner = np.full(len(right), -1)
    partner[match[match >= 0]] = np.flatnonzero(match >= 0)
    seen_left, seen_right = match < 0, np.zeros(len(right), dtype=bool)
    fresh = np.flatnonzero(seen_left)
    while len(fresh):  # paths that alternate between edges outside and inside of the matching
        reached = np.unique(between[fresh].indices)
        reached = reached[~seen_right[reached]]
        seen_right[reached] = True
        fresh = partner[reached]
        seen_left[fresh] = True
    return np.concatenate([left[~seen_left], right[seen_right]])


def _depths(whole: _Domain, worlds: int) -> list[int]:
    """First depth of every level of blocks, for the least cost of entries and launches (2 per level, last 1)."""
    layers = [[whole]]
    while halves := [half for domain in layers[-1] for half in domain.halves]:
        layers.append(halves)
    count = len(layers)
    entries = np.zeros((count, count + 1))
    for depth, layer in enumerate(layers):
        for domain in layer:
            size = np.cumsum(_sizes(domain, count - depth))
            entries[depth, depth + 1 :] += size**2 + 2.0 * size * len(domain.beyond)
    best, step = np.zeros(count + 1), np.zeros(count + 1, dtype=int)
    for depth in reversed(range(count)):
        launches = np.where(np.arange(depth + 1, count + 1) < count, 2.0, 1.0)
        costs = worlds * entries[depth, depth + 1 :] + launches * _LAUNCH + best[depth + 1 :]
        step[depth] = depth + 1 + np.argmin(costs)
        best[depth] = costs.min()
    depths = [0]
    while step[depths[-1]] < count:
        depths.append(step[depths[-1]])
    return depths


def _sizes(domain: _Domain, depths: int) -> np.ndarray:
    """Number of nodes in the cuts at each of the first `depths` depths below a domain."""
    sizes = np.zeros(depths)
    sizes[0] = len(domain.cut)
    for half in domain.halves:
        sizes[1:] += _sizes(half, depths - 1)
    return sizes


def _block(domain: _Domain, depths: list[int]) -> Block:
    """One block of all cuts from the first entry of `depths` to the next, with the blocks below it."""
    layers, layer = [], [domain]
    last = depths[1] - depths[0] if len(depths) > 1 else _DEPTH + 1
    while layer and len(layers) < last:
        layers += [layer]
        layer = [half for domain in layer for half in domain.halves]
    nodes = np.concatenate([domain.cut for layer in layers for domain in layer])
    return Block(nodes, domain.beyond, tuple(_block(half, depths[1:]) for half in layer))
