"""Islands: parts of a world that nothing couples in the present step, each of which is iterated on its own.

An island is a component (`components`) with all other components to which pairs of surfaces in contact connect it in
this step. Each island has its own correction, error, memory of the acceleration and Newton steps: the rest of its world
has no effect on these.

The index of an island is the index of its first component; island c, or component c, of world w has the entry w * count
+ c.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE
from warpbots.solvers.projective.components import Components

__all__ = [
    "Islands",
    "component_of",
    "conclude_kernel",
    "island_of",
    "islands_of",
    "rest_kernel",
    "root_of",
    "separate_kernel",
    "unite",
    "worlds_kernel",
]


@wp.struct
class Islands:
    """Islands of all worlds; shape (worlds * count,) unless given.

    count: Components of one world.
    entries: Entries of an iterate before the contacts of pairs.
    pairs: Room for pairs of one world.
    component: Component of each entry of an iterate before the contacts of pairs, shape (entries,).
    first: First entry in `run` of each component, and the end of the last one, shape (count + 1,).
    run: First point of each run of consecutive points of one component, and the point after the last, shape (runs,).
    own_length: Mean length of the edges of a component [m], shape (count,).
    own_symmetric: 1 if the second derivative of a component is symmetric, shape (count,).
    own_thin: 1 if a component has sheets, shape (count,).
    pair: Component of a pair of surfaces, shape (worlds * pairs,).
    root: Island of a component.
    length: Smallest mean edge length of the components of an island [m].
    symmetric: 1 if the second derivative of an island is symmetric.
    thin: 1 if an island has sheets.
    touching: Number of pairs of surfaces in contact in an island.
    changed: 1 for a component with a contact that the last search added or changed.
    again: 1 for a component that takes a second attempt of the present step (`SecondAttempt`).
    moves: 1 for a component that takes the present step; other components of its world stay where they are.
    sound: 1 for a component whose last step succeeded.
    strayed: 1 for a world in which a component that moves has left its box or touched one that rests, shape (worlds,).
    """

    count: int
    entries: int
    pairs: int
    component: wp.array[int]
    first: wp.array[int]
    run: wp.array[wp.vec2i]
    own_length: wp.array[wp.float64]
    own_symmetric: wp.array[int]
    own_thin: wp.array[int]
    pair: wp.array[int]
    root: wp.array[int]
    length: wp.array[wp.float64]
    symmetric: wp.array[int]
    thin: wp.array[int]
    touching: wp.array[int]
    changed: wp.array[int]
    again: wp.array[int]
    moves: wp.array[int]
    sound: wp.array[int]
    strayed: wp.array[int]


def islands_of(components: Components, others: np.ndarray, pairs: int, worlds: int, device: wp.Device) -> Islands:
    """Islands that consist of one component each.

    Args:
        components: The components.
        others: Component of each entry of an iterate after the points and before the contacts of pairs, shape (n,),
            int; arbitrary for an entry that never moves.
        pairs: Room for pairs of surfaces of one world.
        worlds: Number of worlds.
        device: Device of the arrays.
    """

    def array(values: np.ndarray, dtype: type = int) -> wp.array:
        return wp.array(values.astype(np.float64 if dtype is wp.float64 else np.int32), dtype=dtype, device=device)

    islands, count, of = Islands(), len(components), components.of
    islands.count, islands.entries, islands.pairs = count, len(of) + len(others), pairs
    islands.component = array(np.append(of, others))
    begin = np.flatnonzero(np.diff(of, prepend=-1))
    order = np.argsort(of[begin], kind="stable")
    islands.run = array(np.stack([begin, np.append(begin[1:], len(of))], axis=1)[order], wp.vec2i)
    islands.first = array(np.searchsorted(of[begin][order], np.arange(count + 1)))
    own = (("length", wp.float64), ("symmetric", int), ("thin", int))
    for name, dtype in own:
        values = getattr(components, name)
        setattr(islands, f"own_{name}", array(values, dtype))
        setattr(islands, name, array(np.tile(values, worlds), dtype))
    islands.root = array(np.tile(np.arange(count), worlds))
    for name, size in (
        ("touching", count),
        ("changed", count),
        ("again", count),
        ("sound", count),
        ("strayed", 1),
        ("pair", pairs),
    ):
        setattr(islands, name, wp.zeros(worlds * size, dtype=int, device=device))
    islands.moves = wp.ones(worlds * count, dtype=int, device=device)
    return islands


@wp.func
def root_of(islands: Islands, w: int, component: int):
    """Island of a component of a world."""
    return w * islands.count + islands.root[w * islands.count + component]


@wp.func
def component_of(islands: Islands, w: int, i: int):
    """Component of an entry of an iterate."""
    component = int(0)
    if islands.count > 1:
        if i < islands.entries:
            component = islands.component[i]
        else:
            component = islands.pair[w * islands.pairs + i - islands.entries]
    return component


@wp.func
def island_of(islands: Islands, w: int, i: int):
    """Island of an entry of an iterate."""
    return root_of(islands, w, component_of(islands, w, i))


@wp.func
def unite(islands: Islands, w: int, a: int, b: int):
    """Merge the islands of two components; returns the island that is removed, -1 for none."""
    first = w * islands.count
    low = wp.min(islands.root[first + a], islands.root[first + b])
    high = wp.max(islands.root[first + a], islands.root[first + b])
    if low == high:
        return -1
    for c in range(islands.count):
        if islands.root[first + c] == high:
            islands.root[first + c] = low
    islands.length[first + low] = wp.min(islands.length[first + low], islands.length[first + high])
    islands.symmetric[first + low] = islands.symmetric[first + low] * islands.symmetric[first + high]
    islands.thin[first + low] = wp.max(islands.thin[first + low], islands.thin[first + high])
    islands.touching[first + low] = islands.touching[first + low] + islands.touching[first + high]
    return first + high


@wp.kernel(enable_backward=False)
def separate_kernel(
    # state
    where: wp.array[int],
    # out
    islands_out: Islands,
):
    """Make every component of chosen worlds an island of its own."""
    w, c = wp.tid()
    if where[w] == 0:
        return
    u = w * islands_out.count + c
    islands_out.root[u] = c
    islands_out.length[u] = islands_out.own_length[c]
    islands_out.symmetric[u] = islands_out.own_symmetric[c]
    islands_out.thin[u] = islands_out.own_thin[c]
    islands_out.touching[u] = 0
    islands_out.changed[u] = 0


@wp.kernel(enable_backward=False)
def rest_kernel(
    # model
    islands: Islands,
    stride: int,
    # out
    z_out: wp.array[NODE],
):
    """Set displacements of components that do not take the step to zero."""
    w, i = wp.tid()
    if islands.moves[w * islands.count + component_of(islands, w, i)] == 0:
        z_out[w * stride + i] = NODE()


@wp.kernel(enable_backward=False)
def conclude_kernel(
    # work
    converged: wp.array[int],
    # out
    islands_out: Islands,
):
    """Mark the components whose step succeeded."""
    w, c = wp.tid()
    u = w * islands_out.count + c
    islands_out.sound[u] = islands_out.moves[u] * converged[root_of(islands_out, w, c)]


@wp.kernel(enable_backward=False)
def worlds_kernel(
    # model
    islands: Islands,
    # work
    marked: wp.array[int],
    # out
    worlds_out: wp.array[int],
):
    """Write 1 for worlds in which a component, or an island, is marked by a 1, else 0."""
    w = wp.tid()
    some = int(0)
    for c in range(islands.count):
        some = wp.max(some, marked[w * islands.count + c])
    worlds_out[w] = some
