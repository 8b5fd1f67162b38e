"""Decides whether a point of an iteration is accepted, and whether its island has converged.

An island has converged when neither the estimated error (`error_estimate`) nor the correction is larger than the
tolerance, or when the correction is at the level of rounding; at the first point, the latter also requires a Newton
step. An adjoint that contacts hold has also converged when it makes no progress any more, at a correction at the level
of rounding of its solution without contact.

If the iteration minimises an energy with the negative gradient r as residual, a point with a smaller residual may be
nearer to a saddle. A move s with s . r <= 0 leads uphill, and its end is rejected.
"""

import dataclasses

import warp as wp

from warpbots.numerics import NODE, largest_of_lanes, launch, launch_lanes, real, sum_of_lanes
from warpbots.solvers.projective.islands import Islands, root_of
from warpbots.solvers.projective.iterate.anderson_arrays import (
    CONVERGED,
    IDLE,
    LANES,
    REJECTED,
    TAKEN,
    WAITS,
    AndersonHistory,
    Iteration,
    IterationState,
)
from warpbots.solvers.projective.iterate.error_estimate import Criterion, estimate, is_rounding, note

__all__ = ["Objective", "gather_kernel", "hold_kernel", "judge", "look", "retire", "slope_of"]

_ZERO, _TENTH, _HALF, _ONE = (wp.constant(wp.float64(c)) for c in (0.0, 0.1, 0.5, 1.0))
_GROWTH = wp.constant(wp.float64(10.0))  # ratio of a correction to the last one above which a point is rejected
_BETTER = wp.constant(wp.float64(0.9))  # ratio to the smallest norm below which a point counts as progress
_PATIENCE = wp.constant(20)  # points without progress after which the changes are discarded
_LEAST = wp.constant(wp.float64(1e-6))  # share of a plain step below which the iteration has failed
_largest, _sum = largest_of_lanes(real), sum_of_lanes(wp.float64)


@dataclasses.dataclass(frozen=True)
class Objective:
    """An energy that an iteration minimises.

    Attributes:
        residual: Negative gradient of the energy, shape (worlds * n,).
        nodes: Number of entries of a point of one world on which the energy depends; they come first.
    """

    residual: wp.array
    nodes: int


def slope_of(energy: Objective | None) -> tuple[wp.array | None, int]:
    """Residual of an objective, and number of its entries, as kernels take them; None and 0 without an energy."""
    return (None, 0) if energy is None else (energy.residual, energy.nodes)


def judge(it: Iteration, enough: Criterion, energy: Objective | None) -> None:
    """Accept or reject the point ``history.z`` with the correction ``history.f``, and stop islands that have converged.

    Args:
        it: The iteration.
        enough: Criterion for when an island has converged, or has failed.
        energy: The energy that the iteration minimises, if any.
    """
    chunks, slots, p = it.chunks, it.slots, it.progress
    inputs = [it.count, it.islands, it.history, slope_of(energy)[1]]
    launch_lanes(measure_kernel, (it.units, chunks), LANES, inputs, [p], it.device)
    inputs = [it.islands, chunks, slots, int(energy is not None), enough]
    launch(judge_kernel, it.units, inputs, [p], it.device)
    launch(gather_kernel, it.worlds, [it.islands, 1], [p], it.device)


@wp.func
def larger(a: real, b: real):
    """The larger one of two numbers, or NaN."""
    return wp.where(b <= a or wp.isnan(a), a, b)


@wp.func
def square_of(a: NODE):
    """|a|^2 of the first three components."""
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]


@wp.func
def work_of(s: NODE, r: NODE):
    """s . r of the first three components."""
    total = wp.float64(0.0)
    for c in range(3):
        total += wp.float64(s[c]) * wp.float64(r[c])
    return total


@wp.func
def most_of(squares: real):
    """Root of the largest value of all threads."""
    return wp.sqrt(wp.float64(_largest(squares)))


@wp.kernel(enable_backward=False)
def measure_kernel(
    # model
    count: int,
    islands: Islands,
    # work
    history: AndersonHistory,
    nodes: int,
    # out
    progress_out: IterationState,
):
    """Write the squared norm of the correction, largest entries of correction, move and point, and work of the move."""
    w, c, lane = wp.tid()
    if progress_out.active[w] == 0:
        return
    chunks = progress_out.square.shape[0] / progress_out.active.shape[0]
    world = w / islands.count
    square = wp.float64(0.0)
    work = wp.float64(0.0)
    correction = real(0.0)
    move = real(0.0)
    point = real(0.0)
    for part in range(islands.count):
        if root_of(islands, world, part) == w:
            for r in range(islands.first[part], islands.first[part + 1]):
                run = islands.run[r]
                for i in range(run[0] + c * wp.block_dim() + lane, run[1], chunks * wp.block_dim()):
                    k = world * count + i
                    z = history.z[k]
                    s = z - history.last_z[k]
                    d = square_of(history.f[k])
                    unit = history.unit[i] * history.unit[i]
                    square += wp.float64(history.weight[i] * d)
                    correction = larger(correction, unit * d)
                    move = larger(move, unit * square_of(s))
                    point = larger(point, unit * square_of(z))
                    if i < nodes:
                        work += work_of(s, history.last_r[k])
    total = _sum(square)
    works = _sum(work)
    most = wp.vec3d(most_of(correction), most_of(move), most_of(point))
    if lane == 0:
        progress_out.square[w * chunks + c] = total
        progress_out.largest[w * chunks + c] = most
        progress_out.work[w * chunks + c] = works


@wp.func
def reject_point(progress: IterationState, w: int, iterations: int, norm: wp.float64, newton: int):
    """Return to the last accepted point: discard the changes if there are any, else halve the plain step."""
    if newton == 1:
        progress.near[w] = _TENTH * progress.correction[w]
    elif progress.known[w] == 0:
        progress.share[w] = _HALF * progress.share[w]
    progress.known[w] = 0
    taken = REJECTED
    if iterations == 1 or progress.share[w] < _LEAST:
        progress.size[w] = norm
        progress.active[w] = 0
        taken = IDLE
    return taken


@wp.func
def keep(progress: IterationState, w: int, iterations: int, slots: int, norm: wp.float64):
    """Record the change that led to a point, or discard all changes and return 1 if there was no progress for long."""
    stuck = int(0)
    if norm < _BETTER * progress.best[w] or iterations == 1:
        progress.best[w] = norm
        progress.stalled[w] = 0
    else:
        progress.stalled[w] = progress.stalled[w] + 1
    if progress.stalled[w] > _PATIENCE:
        progress.stalled[w] = 0
        progress.best[w] = norm
        progress.known[w] = 0
        stuck = int(1)
    elif progress.fresh[w] == 0:
        progress.slot[w] = (progress.slot[w] + 1) % slots
        progress.known[w] = wp.min(progress.known[w] + 1, slots)
    progress.fresh[w] = 0
    return stuck


@wp.func
def accept_point(
    islands: Islands, progress: IterationState, w: int, iterations: int, slots: int, norm: wp.float64,
    largest: wp.vec3d, enough: Criterion,
):  # fmt: skip
    """Accept a point: the island has converged, or waits for a Newton step, or iterates on from this point."""
    note(progress, w, norm, largest[1])
    outdated = progress.fresh[w] == 2
    if progress.fresh[w] > 0:
        progress.begun[w] = norm
    edge = islands.length[w]
    unit = wp.where(enough.by_edge == 1, edge, largest[2])
    least = estimate(progress, w, iterations, islands.symmetric[w], unit, edge, largest[0], enough)
    progress.norm[w] = norm
    progress.share[w] = _ONE
    stuck = keep(progress, w, iterations, slots, norm)
    exhausted = stuck == 1 and is_rounding(progress, w, largest[0])
    steps = progress.newton_steps[w]
    taken = TAKEN
    if not outdated and (exhausted or (progress.size[w] <= progress.enough[w] and steps >= least)):
        progress.converged[w] = 1
        progress.active[w] = 0
        taken = CONVERGED
    elif (
        iterations < enough.limit
        and steps < islands.symmetric[w] * enough.newton_steps
        and largest[0] <= progress.near[w]
    ):
        progress.waiting[w] = 1
        wp.atomic_add(progress.any_waiting, 0, 1)
        progress.active[w] = 0
        progress.correction[w] = largest[0]
        taken = WAITS
    return taken


@wp.kernel(enable_backward=False)
def judge_kernel(
    # model
    islands: Islands,
    chunks: int,
    slots: int,
    minimises: int,
    enough: Criterion,
    # out
    progress_out: IterationState,
):
    """Decide whether the point is accepted, and whether the iteration goes on."""
    w = wp.tid()
    if progress_out.active[w] == 0:
        progress_out.taken[w] = IDLE
        return
    square = wp.float64(0.0)
    largest = wp.vec3d()
    work = wp.float64(0.0)
    for c in range(chunks):
        work += progress_out.work[w * chunks + c]
        square += progress_out.square[w * chunks + c]
        largest = wp.max(largest, progress_out.largest[w * chunks + c])
    norm = wp.sqrt(square)
    iterations = progress_out.iterations[w] + 1
    progress_out.iterations[w] = iterations
    if iterations == 1:
        progress_out.norm[w] = norm
        near = wp.where(islands.thin[w] == 1, enough.near_thin, enough.near)
        progress_out.near[w] = near * islands.length[w]
    newton = progress_out.newton[w]
    progress_out.newton[w] = 0
    accelerated = progress_out.known[w] + newton > 0
    uphill = minimises * islands.symmetric[w] == 1 and work <= _ZERO
    taken = IDLE
    if not wp.isfinite(norm) or (accelerated and (uphill or norm > _GROWTH * progress_out.norm[w])):
        taken = reject_point(progress_out, w, iterations, norm, newton)
    else:
        taken = accept_point(islands, progress_out, w, iterations, slots, norm, largest, enough)
    if iterations >= enough.limit and taken != CONVERGED:
        progress_out.active[w] = 0
        taken = IDLE
    progress_out.taken[w] = taken
    if progress_out.active[w] == 0:
        wp.atomic_sub(progress_out.any, 0, 1)


@wp.func
def look(islands: Islands, progress: IterationState, w: int):
    """Write `running`, `found` and `ended` of a world, which follow from its islands."""
    running = int(0)
    waiting = int(0)
    found = int(1)
    some = int(0)
    for c in range(islands.count):
        u = w * islands.count + c
        if root_of(islands, w, c) == u:
            running = wp.max(running, progress.active[u])
            waiting = wp.max(waiting, progress.waiting[u])
            found = found * progress.converged[u]
            some = wp.max(some, progress.converged[u] * islands.moves[u])
    progress.running[w] = running
    progress.found[w] = found
    progress.ended[w] = some * (1 - running) * (1 - waiting)


@wp.func
def retire(progress: IterationState, u: int, converged: int, iterations: int):
    """End the iteration of an island, with the result and the number of iterations of an earlier one."""
    wp.atomic_sub(progress.any, 0, progress.active[u])
    progress.active[u] = 0
    progress.converged[u] = converged
    progress.iterations[u] = iterations


@wp.kernel(enable_backward=False)
def hold_kernel(
    # model
    count: int,
    nodes: int,
    islands: Islands,
    # work
    history: AndersonHistory,
    # out
    progress_out: IterationState,
):
    """At the first point, write the largest correction of each island without contact forces.

    The first `nodes` points of a world are nodes.
    """
    u, lane = wp.tid()
    if progress_out.active[u] == 0 or progress_out.iterations[u] > 0:
        return
    w = u / islands.count
    of_points = real(0.0)
    of_all = real(0.0)
    rigid = bool(True)
    for part in range(islands.count):
        if root_of(islands, w, part) == u:
            for r in range(islands.first[part], islands.first[part + 1]):
                run = islands.run[r]
                rigid = rigid and run[0] >= nodes
                for i in range(run[0] + lane, run[1], wp.block_dim()):
                    d = square_of(history.f[w * count + i])
                    of_points = wp.max(of_points, history.unit[i] * history.unit[i] * d)
                    of_all = wp.max(of_all, d)
    soft = most_of(of_points)
    hard = most_of(of_all)
    if lane == 0:
        progress_out.held[u] = wp.where(rigid, hard, _ZERO)
        progress_out.free[u] = wp.where(rigid, _ZERO, soft)


@wp.kernel(enable_backward=False)
def gather_kernel(
    # model
    islands: Islands,
    counted: int,
    # out
    progress_out: IterationState,
):
    """Write `running`, `found` and `ended` of all worlds, and count their iterations if `counted`."""
    w = wp.tid()
    progress_out.passes[w] = counted * (progress_out.passes[w] + progress_out.running[w])
    look(islands, progress_out, w)
