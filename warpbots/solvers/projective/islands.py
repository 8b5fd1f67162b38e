"""Islands: parts of a world that nothing couples in the present step, each of which is iterated on its own.

Components are what elements, cables, attachments, motors, chambers and bones connect; they never change. An island is
a component with all others that pairs of surfaces in contact connect it to in this step. Its correction, its error, the
changes that its acceleration remembers and its Newton steps are its own: what happens in one world elsewhere changes
none of them.

An island has the number of its first component; island and component c of world w are entry w * count + c.
"""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE

__all__ = [
    "Components",
    "Islands",
    "component_of",
    "conclude_kernel",
    "island_of",
    "islands_of",
    "rest_kernel",
    "root_of",
    "separate_kernel",
    "unite",
]


@dataclasses.dataclass(frozen=True)
class Components:
    """Components of one world, on the host.

    Attributes:
        of: Component of each entry of an iterate before the contacts of pairs, shape (entries,), int; 0 where an entry
            never moves.
        points: Number of points, the first entries, over which products are taken.
        length: Mean length of the edges of elements [m], shape (count,).
        symmetric: Whether the second derivative of the energy is symmetric, shape (count,), bool.
        thin: Whether there are triangles of sheets, shape (count,), bool.
        bound: A point that is bound to bones; 0 without bones.
    """

    of: np.ndarray
    points: int
    length: np.ndarray
    symmetric: np.ndarray
    thin: np.ndarray
    bound: int = 0

    @classmethod
    def one(cls, entries: int) -> "Components":
        """A world with one component."""
        return cls(np.zeros(entries, dtype=int), entries, np.ones(1), np.ones(1, dtype=bool), np.zeros(1, dtype=bool))

    def __len__(self) -> int:
        return len(self.length)


@wp.struct
class Islands:
    """Islands of all worlds; shape (worlds * count,) unless given.

    count: Components of one world.
    entries: Entries of an iterate before the contacts of pairs.
    pairs: Room for pairs of one world.
    component: Component of each of these entries, shape (entries,).
    first: First run of points of a component, one more for the end, shape (count + 1,).
    run: First point of a run and the one after its last, shape (runs,).
    own_length: Mean length of the edges of a component [m], shape (count,).
    own_symmetric: 1 if its second derivative is symmetric, shape (count,).
    own_thin: 1 if it has sheets, shape (count,).
    pair: Component of a pair of surfaces, shape (worlds * pairs,).
    root: Island of a component.
    length: Least mean length of edges in an island [m].
    symmetric: 1 if its second derivative is symmetric.
    thin: 1 if it has sheets.
    touching: Number of its pairs of surfaces.
    changed: 1 for a component with a contact that the last search added or changed.
    moves: 1 for a component that takes the present step; others of its world rest where they are.
    sound: 1 for a component whose last step has been found.
    strayed: 1 for a world in which one that moves came near to one that rests, shape (worlds,).
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
    moves: wp.array[int]
    sound: wp.array[int]
    strayed: wp.array[int]


def islands_of(components: Components, pairs: int, worlds: int, device: wp.Device) -> Islands:
    """Islands that are components.

    Args:
        components: The components.
        pairs: Room for pairs of surfaces of one world.
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    islands, count = Islands(), len(components)
    islands.count, islands.entries, islands.pairs = count, len(components.of), pairs
    of = components.of[: components.points]
    begin = np.flatnonzero(np.diff(of, prepend=-1))
    run = np.stack([begin, np.append(begin[1:], len(of))], axis=1)
    order = np.argsort(of[begin], kind="stable")
    first = np.searchsorted(of[begin][order], np.arange(count + 1))

    def constant(values: np.ndarray, dtype: type) -> wp.array:
        kind = np.float64 if dtype is wp.float64 else np.int32
        return wp.array(values.astype(kind), dtype=dtype, device=device)

    islands.component, islands.first = constant(components.of, int), constant(first, int)
    islands.run = constant(run[order], wp.vec2i)
    own = {"length": components.length, "symmetric": components.symmetric, "thin": components.thin}
    for name, values in own.items():
        dtype = wp.float64 if name == "length" else int
        setattr(islands, f"own_{name}", constant(values, dtype))
        setattr(islands, name, constant(np.tile(values, worlds), dtype))
    islands.root = constant(np.tile(np.arange(count), worlds), int)
    islands.pair = wp.zeros(worlds * pairs, dtype=int, device=device)
    for name in ("touching", "changed", "sound"):
        setattr(islands, name, wp.zeros(worlds * count, dtype=int, device=device))
    islands.moves = wp.ones(worlds * count, dtype=int, device=device)
    islands.strayed = wp.zeros(worlds, dtype=int, device=device)
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
    """Make one island of those of two components; the one that is no more, -1 for none."""
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
    """Every component of chosen worlds is an island."""
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
    """Components that do not take a step stay where they are."""
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
    """Components whose step has been found."""
    w, c = wp.tid()
    u = w * islands_out.count + c
    islands_out.sound[u] = islands_out.moves[u] * converged[root_of(islands_out, w, c)]
