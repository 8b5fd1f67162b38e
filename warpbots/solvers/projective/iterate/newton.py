"""Newton steps at the end of an iteration that converges slowly.

Anderson's acceleration learns slow modes from changes of the correction; for very slow modes, these changes are smaller
than the rounding of the correction. The second derivative H has no such limit: near the solution an island waits for a
Newton step d = H^-1 r, which is the error up to terms of second order. The ratio of d to the correction f for the same
residual r gives the error of later points from their corrections. If MINRES ends without a solution, the size of its
last iterate is a lower bound of the error (its iterates grow, Fong & Saunders 2012), and is used for this ratio.

An early Newton step, which begins at a correction above `Criterion.telling`, estimates no error, and terms of second
order remain after it. So its system is solved less accurately (inexact Newton, Eisenstat & Walker 1996, "Choosing the
forcing terms in an inexact Newton method").
"""

import warp as wp

from warpbots.numerics import largest_of_lanes, launch, launch_lanes, real
from warpbots.solvers.projective.islands import Islands, island_of, root_of
from warpbots.solvers.projective.iterate.anderson import mix
from warpbots.solvers.projective.iterate.anderson_arrays import (
    IDLE,
    LANES,
    TAKEN,
    AndersonHistory,
    Iteration,
    IterationState,
)
from warpbots.solvers.projective.iterate.convergence import look
from warpbots.solvers.projective.iterate.error_estimate import HUGE
from warpbots.solvers.projective.iterate.krylov_arrays import Krylov, KrylovArrays

__all__ = ["forcing_kernel", "take_newton_steps"]

_largest = largest_of_lanes(real)


def take_newton_steps(it: Iteration, krylov: Krylov, newton_steps: int) -> None:
    """Take the steps in ``history.f`` in islands in which `krylov` has converged; other islands go on without a step.

    Args:
        it: The iteration.
        krylov: The arrays of MINRES that has solved for the steps.
        newton_steps: Number of Newton steps that an island may take.
    """
    inputs = [it.count, newton_steps, it.islands, it.history, krylov.arrays]
    launch_lanes(measure_kernel, it.units, LANES, inputs, [it.progress], it.device)
    launch(move_kernel, (it.worlds, krylov.count), [it.islands, it.progress], [it.history], it.device)
    launch(resume_kernel, it.worlds, [it.islands], [it.progress], it.device)
    mix(it)


@wp.kernel(enable_backward=False)
def forcing_kernel(
    # model
    islands: Islands,
    telling: wp.float64,
    early: wp.float64,
    late: wp.float64,
    # work
    progress: IterationState,
    # out
    forcing_out: wp.array[wp.float64],
):
    """Write the relative residual at which the linear solve of each island ends: `early` above a correction `telling`.

    `telling` is a correction in mean edges.
    """
    w = wp.tid()
    forcing_out[w] = wp.where(progress.correction[w] > telling * islands.length[w], early, late)


@wp.kernel(enable_backward=False)
def measure_kernel(
    # model
    count: int,
    newton_steps: int,
    islands: Islands,
    # work
    history: AndersonHistory,
    krylov: KrylovArrays,
    # out
    progress_out: IterationState,
):
    """Write the size of the Newton step of each waiting island, and its ratio to the correction if MINRES iterated."""
    w, lane = wp.tid()
    if progress_out.waiting[w] == 0:
        return
    square = real(0.0)
    world = w / islands.count
    for part in range(islands.count):
        if root_of(islands, world, part) == w:
            for r in range(islands.first[part], islands.first[part + 1]):
                run = islands.run[r]
                for i in range(run[0] + lane, run[1], wp.block_dim()):
                    f = history.f[world * count + i]
                    d = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
                    square = wp.max(square, history.unit[i] * history.unit[i] * d)
    size = wp.sqrt(wp.float64(_largest(square)))
    if lane > 0:
        return
    sought = krylov.iterations[w] > 0  # without a solution, a lower bound: iterates of MINRES grow
    if sought and wp.isfinite(size):
        progress_out.error_ratio[w] = wp.max(progress_out.error_ratio[w], size / progress_out.correction[w])
    if krylov.converged[w] == 1:
        progress_out.newton_size[w] = size
        progress_out.newton_steps[w] = progress_out.newton_steps[w] + 1
        progress_out.newton[w] = 1
    else:
        progress_out.newton_size[w] = HUGE
        progress_out.newton_steps[w] = newton_steps


@wp.kernel(enable_backward=False)
def move_kernel(
    # model
    islands: Islands,
    # work
    progress: IterationState,
    # out
    history_out: AndersonHistory,
):
    """z <- z + d; without a solution d, restore the correction that d had replaced."""
    w, i = wp.tid()
    u = island_of(islands, w, i)
    if progress.waiting[u] == 0:
        return
    k = w * history_out.weight.shape[0] + i
    if progress.newton[u] == 1:
        history_out.z[k] = history_out.z[k] + history_out.f[k]
    else:
        history_out.f[k] = history_out.last_f[k]


@wp.kernel(enable_backward=False)
def resume_kernel(
    # model
    islands: Islands,
    # out
    progress_out: IterationState,
):
    """Let all waiting islands iterate again."""
    w = wp.tid()
    for c in range(islands.count):
        u = w * islands.count + c
        progress_out.taken[u] = IDLE
        if progress_out.waiting[u] == 1:
            if progress_out.newton[u] == 0:
                progress_out.taken[u] = TAKEN
            progress_out.waiting[u] = 0
            progress_out.active[u] = 1
            wp.atomic_add(progress_out.any, 0, 1)
            wp.atomic_sub(progress_out.any_waiting, 0, 1)
    look(islands, progress_out, w)
