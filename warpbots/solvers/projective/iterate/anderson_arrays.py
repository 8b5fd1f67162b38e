"""Arrays of fixed-point iterations with Anderson's acceleration."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE, parallel, real, real_numpy

__all__ = [
    "CONVERGED",
    "IDLE",
    "LANES",
    "NORMS",
    "REJECTED",
    "TAKEN",
    "WAITS",
    "History",
    "Iteration",
    "Progress",
    "chunks_of",
    "iteration",
]

LANES = 256  # threads that add up a part of a sum on a GPU; a CPU has one
_EACH = 8  # numbers that each of them adds at most in a sum of no more than
_CHUNKS = 32  # parts
NORMS = 6  # norms of corrections that are remembered
REJECTED, TAKEN, CONVERGED, WAITS, IDLE = (wp.constant(k) for k in range(5))
"""Results for a point: it is rejected; the iteration goes on from it, has converged there, or waits for a Newton step;
there is none, as the world is not active or has failed."""
_norms = wp.types.vector(NORMS, wp.float64)


@wp.struct
class Progress:
    """State of the iterations of all worlds.

    active: 1 while a world iterates, shape (worlds,).
    any: Number of worlds that do, shape (1,).
    converged: 1 where an iteration converged, shape (worlds,).
    used: Entries of an iterate that are used, shape (worlds,).
    iterations: Number of iterations so far, shape (worlds,).
    size: Largest entry of the last correction or of the estimated error [m], whichever is larger; not finite where it
        ended by that, shape (worlds,).
    enough: Size at which a world has converged [m], shape (worlds,).
    waiting: 1 where a world waits for a Newton step, shape (worlds,).
    any_waiting: Number of worlds that do, shape (1,).
    near: Largest entry of a correction at which a world waits [m], shape (worlds,).
    newton_steps: Number of Newton steps so far, shape (worlds,).
    newton: 1 where the last move was one, shape (worlds,).
    correction: Largest entry of the correction where a world waits [m], shape (worlds,).
    newton_size: Largest entry of the last Newton step [m], shape (worlds,).
    error_ratio: Largest entry of a Newton step relative to that of the correction, 0 if unknown, shape (worlds,).
    points: Accepted points since the last restart, shape (worlds,).
    norms: Norms of the corrections of the last of them, newest first, shape (worlds,), vector.
    moves: Largest entries of the last two moves, newest first [m], shape (worlds,), vector.
    norm: Weighted norm of the correction of the last accepted point, shape (worlds,).
    begun: The same of the first one of the present problem, shape (worlds,).
    best: Smallest norm so far, or since the last restart, shape (worlds,).
    stalled: Points since then, shape (worlds,).
    share: Part of the correction that a plain step takes, shape (worlds,).
    taken: Result for the point, `TAKEN` and its like, shape (worlds,).
    fresh: 1 until a point has been accepted since the iteration began, shape (worlds,).
    known: Number of stored changes, shape (worlds,).
    slot: Slot of the last change, shape (worlds,).
    gram: Products of changes of the correction, shape (worlds * slots * slots,).
    factor: Their Cholesky factor, newest first, shape (worlds * slots * slots,).
    theta: Weights of the changes, shape (worlds * slots,).
    square: Parts of the squared norm, shape (worlds * chunks,).
    largest: Largest entries of correction, last move and point of each part [m], shape (worlds * chunks,), vector.
    work: Parts of the work along the last move of the residual at its start [J], where the iteration minimises an
        energy, shape (worlds * chunks,).
    product: Parts of the products with the last change and with the correction, shape (worlds * slots * chunks * 2,).
    """

    active: wp.array[int]
    any: wp.array[int]
    converged: wp.array[int]
    used: wp.array[int]
    iterations: wp.array[int]
    size: wp.array[wp.float64]
    enough: wp.array[wp.float64]
    waiting: wp.array[int]
    any_waiting: wp.array[int]
    newton_steps: wp.array[int]
    newton: wp.array[int]
    near: wp.array[wp.float64]
    correction: wp.array[wp.float64]
    newton_size: wp.array[wp.float64]
    error_ratio: wp.array[wp.float64]
    points: wp.array[int]
    norms: wp.array[_norms]
    moves: wp.array[wp.vec2d]
    norm: wp.array[wp.float64]
    begun: wp.array[wp.float64]
    best: wp.array[wp.float64]
    stalled: wp.array[int]
    share: wp.array[wp.float64]
    taken: wp.array[int]
    fresh: wp.array[int]
    known: wp.array[int]
    slot: wp.array[int]
    gram: wp.array[wp.float64]
    factor: wp.array[wp.float64]
    theta: wp.array[wp.float64]
    square: wp.array[wp.float64]
    largest: wp.array[wp.vec3d]
    work: wp.array[wp.float64]
    product: wp.array[wp.float64]


@wp.struct
class History:
    """Points and corrections, all worlds in one row.

    z: The point, shape (worlds * n,).
    f: Its correction, 0 in unused entries, shape (worlds * n,).
    weight: Weight of each entry in products, shape (n,).
    unit: Factor of each entry to be a length, shape (n,).
    last_z: The last accepted point, shape (worlds * n,).
    last_f: Its correction, shape (worlds * n,).
    last_r: Its residual at nodes, where the iteration minimises an energy, shape (worlds * n,).
    dz: Changes of the point, shape (slots * worlds * n,).
    df: Changes of the correction, shape (slots * worlds * n,).
    """

    z: wp.array[NODE]
    f: wp.array[NODE]
    weight: wp.array[real]
    unit: wp.array[real]
    last_z: wp.array[NODE]
    last_f: wp.array[NODE]
    last_r: wp.array[NODE]
    dz: wp.array[NODE]
    df: wp.array[NODE]


@dataclasses.dataclass(frozen=True)
class Iteration:
    """Arrays of an iteration.

    Attributes:
        worlds: Number of worlds.
        count: Entries of a point of one world.
        slots: Number of stored changes.
        chunks: Parts into which sums are cut.
        history: Points and corrections.
        progress: Its state.
        device: Device of the arrays.
    """

    worlds: int
    count: int
    slots: int
    chunks: int
    history: History
    progress: Progress
    device: wp.Device


def iteration(worlds: int, slots: int, weight: np.ndarray, unit: np.ndarray, device: wp.Device) -> Iteration:
    """Arrays for an iteration.

    Args:
        worlds: Number of worlds.
        slots: Number of stored changes.
        weight: Weight of each entry of a point in products, shape (count,).
        unit: Factor of each to be a length, shape (count,).
        device: Device of the arrays.
    """
    count = len(weight)
    chunks = chunks_of(count, device)
    history, progress = History(), Progress()
    for name in ("z", "f", "last_z", "last_f", "last_r"):
        setattr(history, name, wp.zeros(worlds * count, dtype=NODE, device=device))
    for name in ("dz", "df"):
        setattr(history, name, wp.zeros(slots * worlds * count, dtype=NODE, device=device))
    sizes = {
        "gram": slots * slots,
        "factor": slots * slots,
        "theta": slots,
        "square": chunks,
        "largest": chunks,
        "work": chunks,
        "product": 2 * slots * chunks,
    }
    for name, variable in Progress.vars.items():
        size = 1 if name in ("any", "any_waiting") else worlds * sizes.get(name, 1)
        setattr(progress, name, wp.zeros(size, dtype=variable.type.dtype, device=device))
    for name, values in (("weight", weight), ("unit", unit)):
        setattr(history, name, wp.array(values.astype(real_numpy), dtype=real, device=device))
    return Iteration(worlds, count, slots, chunks, history, progress, device)


def chunks_of(count: int, device: wp.Device) -> int:
    """Parts into which sums over so many entries are cut, short enough for a thread."""
    return min(_CHUNKS, -(-count // (LANES * _EACH))) if parallel(device) else 1
