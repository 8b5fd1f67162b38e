"""Arrays of fixed-point iterations with Anderson's acceleration."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE, parallel, real, real_numpy
from warpbots.solvers.projective.islands import Islands

__all__ = [
    "CONVERGED",
    "IDLE",
    "LANES",
    "NORMS",
    "REJECTED",
    "TAKEN",
    "WAITS",
    "AndersonHistory",
    "Iteration",
    "IterationState",
    "chunks_of",
    "iteration",
]

LANES = 256  # threads that add up a part of a sum on a GPU; a CPU has one
_EACH = 8  # numbers that a thread adds, as long as there are fewer parts than _CHUNKS
_CHUNKS = 32  # largest number of parts of a sum
NORMS = 6  # norms of corrections that are remembered
REJECTED, TAKEN, CONVERGED, WAITS, IDLE = (wp.constant(k) for k in range(5))
"""Results for a point: it is rejected; the iteration goes on from it, has converged there, or waits for a Newton step;
there is no result, as the world is not active or has failed."""
_norms = wp.types.vector(NORMS, wp.float64)


@wp.struct
class IterationState:
    """State of the iterations of all islands; shape (worlds * components,) unless given.

    active: 1 while an island iterates.
    any: Number of islands that iterate, plus number of worlds that are searched for contacts before they end, shape
        (1,).
    running: 1 while an island of a world iterates, shape (worlds,).
    converged: 1 for an island whose iteration has converged.
    found: 1 for a world in which the iterations of all islands have converged, shape (worlds,).
    ended: 1 for a world in which no island iterates or waits, and at least one has converged, shape (worlds,).
    passes: Number of iterations so far in which at least one island of a world took part, shape (worlds,).
    used: Number of entries of an iterate that are used, shape (worlds,).
    iterations: Number of iterations so far.
    size: Largest entry of the last correction or of the estimated error [m], whichever is larger; not finite if the
        iteration ended for this reason.
    enough: Value of `size` at which an island has converged [m].
    waiting: 1 for an island that waits for a Newton step.
    any_waiting: Number of islands that wait, shape (1,).
    near: Largest entry of a correction at which an island waits [m].
    held: Largest entry of the solution without contact of an island of rigid bodies alone [m]; if contacts hold all of
        an island, rounding relative to this entry limits the accuracy of the solution. 0 if it is unknown.
    free: The same of an island with soft matter [m], whose solution is not always as small.
    newton_steps: Number of Newton steps so far.
    newton: 1 for an island whose last move was a Newton step.
    correction: Largest entry of the correction at the point at which an island began to wait [m].
    newton_size: Largest entry of the last Newton step [m].
    error_ratio: Largest entry of a Newton step divided by the largest entry of the correction, 0 if unknown.
    points: Number of accepted points since the last restart.
    norms: Norms of the corrections of the last accepted points, newest first, vector.
    moves: Largest entries of the last two moves, newest first [m], vector.
    norm: Weighted norm of the correction of the last accepted point.
    begun: Weighted norm of the correction of the first point of the present problem.
    best: Smallest norm since the beginning, or since all changes were discarded.
    stalled: Number of points since `best` was reached.
    share: Fraction of the correction that a plain step takes.
    taken: Result for the point: `TAKEN` or another code of this module.
    fresh: 1 until a point has been accepted since the iteration began, or 2 if it cannot end at this point; then 0.
    known: Number of stored changes.
    slot: Slot of the last change.
    gram: Products of changes of the correction, shape (worlds * components * slots * slots,).
    factor: Cholesky factor of `gram`, newest change first, shape (worlds * components * slots * slots,).
    theta: Weights of the changes, shape (worlds * components * slots,).
    square: Partial sums of the squared norm, shape (worlds * components * chunks,).
    largest: Largest entries of correction, last move and point in each chunk [m], shape (worlds * components *
        chunks,), vector.
    work: Partial sums of the work of the residual at the start of the last move along this move [J], shape (worlds *
        components * chunks,); used only if the iteration minimises an energy.
    product: Partial sums of the products of changes with the last change and with the correction, shape (worlds *
        components * slots * chunks * 2,).
    """

    active: wp.array[int]
    any: wp.array[int]
    running: wp.array[int]
    converged: wp.array[int]
    found: wp.array[int]
    ended: wp.array[int]
    passes: wp.array[int]
    used: wp.array[int]
    iterations: wp.array[int]
    size: wp.array[wp.float64]
    enough: wp.array[wp.float64]
    waiting: wp.array[int]
    any_waiting: wp.array[int]
    newton_steps: wp.array[int]
    newton: wp.array[int]
    near: wp.array[wp.float64]
    held: wp.array[wp.float64]
    free: wp.array[wp.float64]
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
class AndersonHistory:
    """Points and corrections, all worlds in one row.

    z: The point, shape (worlds * n,).
    f: The correction at the point, 0 in unused entries, shape (worlds * n,).
    weight: Weight of each entry in products, shape (n,).
    unit: Factor that makes each entry a length, shape (n,).
    last_z: The last accepted point, shape (worlds * n,).
    last_f: Correction of the last accepted point, shape (worlds * n,).
    last_r: Residual of the last accepted point at nodes, shape (worlds * n,); used only if the iteration minimises an
        energy.
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
        units: Largest number of islands in all worlds.
        count: Entries of a point of one world.
        slots: Number of stored changes.
        chunks: Number of chunks into which sums are divided.
        history: Points and corrections.
        progress: State of the iterations.
        islands: Parts of a world that iterate on their own.
        device: Device of the arrays.
    """

    worlds: int
    units: int
    count: int
    slots: int
    chunks: int
    history: AndersonHistory
    progress: IterationState
    islands: Islands
    device: wp.Device


def iteration(
    worlds: int, slots: int, weight: np.ndarray, unit: np.ndarray, islands: Islands, device: wp.Device
) -> Iteration:
    """Arrays for an iteration.

    Args:
        worlds: Number of worlds.
        slots: Number of stored changes.
        weight: Weight of each entry of a point in products, shape (count,).
        unit: Factor that makes each entry a length, shape (count,).
        islands: Parts of a world that iterate on their own.
        device: Device of the arrays.
    """
    count, units = len(weight), islands.root.size
    chunks = chunks_of(int(islands.run.numpy()[:, 1].max()), device)
    history, progress = AndersonHistory(), IterationState()
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
    whole = {"any": 1, "any_waiting": 1} | dict.fromkeys(("running", "found", "ended", "passes", "used"), worlds)
    for name, variable in IterationState.vars.items():
        size = whole.get(name, units * sizes.get(name, 1))
        setattr(progress, name, wp.zeros(size, dtype=variable.type.dtype, device=device))
    for name, values in (("weight", weight), ("unit", unit)):
        setattr(history, name, wp.array(values.astype(real_numpy), dtype=real, device=device))
    return Iteration(worlds, units, count, slots, chunks, history, progress, islands, device)


def chunks_of(count: int, device: wp.Device) -> int:
    """Number of chunks into which a sum over `count` entries is divided, each short enough for a thread."""
    return min(_CHUNKS, -(-count // (LANES * _EACH))) if parallel(device) else 1
