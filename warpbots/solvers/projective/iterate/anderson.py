"""Anderson's acceleration of fixed-point iterations z <- z + f(z), one for each island.

The last iterations show how the correction f changed with z. The next point minimises the norm of f under the
assumption that f is linear with these changes (Walker & Ni 2011, "Anderson acceleration for fixed-point iterations";
Peng et al. 2018, "Anderson acceleration for geometry optimization and physics simulation"):

    z <- z + f - sum_j theta_j (dz_j + df_j),   theta = argmin |f - sum_j theta_j df_j|_W.

For a linear problem this is GMRES with as many vectors. The adjoint of an iteration is linear and uses the same
kernels. A point whose correction is much larger than the correction before is rejected: the iteration returns to the
last accepted point, discards the changes, and takes the plain step from there, or half the plain step.
"""

import warp as wp

from warpbots.numerics import NODE, launch, launch_lanes, real, sum_of_lanes
from warpbots.solvers.projective.islands import Islands, island_of, root_of
from warpbots.solvers.projective.iterate.anderson_arrays import (
    IDLE,
    LANES,
    REJECTED,
    TAKEN,
    WAITS,
    AndersonHistory,
    Iteration,
    IterationState,
)
from warpbots.solvers.projective.iterate.convergence import Objective, gather_kernel, judge, slope_of
from warpbots.solvers.projective.iterate.error_estimate import Criterion, clear_estimate

__all__ = ["accelerate", "begin", "mix", "restart", "restart_beyond"]

_ZERO = wp.constant(wp.float64(0.0))
_DEPENDENT = wp.constant(wp.float64(1e-12))  # part of the square of a change that must be orthogonal to later changes
_sum = sum_of_lanes(wp.vec2d)


def begin(it: Iteration, where: wp.array) -> None:
    """Restart the worlds in which `where`, shape (worlds,), is 1 at the point in ``history.z``; other worlds rest."""
    it.progress.any.zero_()
    it.progress.any_waiting.zero_()
    it.progress.held.zero_()
    it.progress.free.zero_()
    launch(begin_kernel, it.units, [it.islands, it.count, where], [it.progress], it.device)
    launch(gather_kernel, it.worlds, [it.islands, 0], [it.progress], it.device)


def accelerate(it: Iteration, enough: Criterion, energy: Objective | None = None) -> None:
    """Replace ``history.z`` by the next point, given its correction ``history.f``.

    Args:
        it: The iteration.
        enough: Criterion for when an island has converged, has failed, or waits for a Newton step (see `newton`).
        energy: The energy that the iteration minimises; None if it only looks for a fixed point.
    """
    judge(it, enough, energy)
    inputs = [it.islands, it.progress, *slope_of(energy)]
    launch(change_kernel, (it.worlds, it.count), inputs, [it.history], it.device)
    mix(it)


def mix(it: Iteration) -> None:
    """Take the accelerated step in islands whose point was accepted; other islands go back."""
    units, chunks, slots, h, p = it.units, it.chunks, it.slots, it.history, it.progress
    launch_lanes(product_kernel, (units, slots, chunks), LANES, [it.count, slots, it.islands, h], [p], it.device)
    launch(gram_kernel, (units, slots), [chunks, slots], [p], it.device)
    launch(weigh_kernel, units, [slots], [p], it.device)
    launch(mix_kernel, (it.worlds, it.count), [it.islands, slots, p], [h], it.device)


@wp.func
def restart(progress: IterationState, w: int):
    """Discard all changes: from this point on, a different problem is solved."""
    progress.fresh[w] = 1
    progress.known[w] = 0
    clear_estimate(progress, w)


@wp.func
def restart_beyond(progress: IterationState, w: int):
    """Like `restart`, but the iteration does not end at this point: its correction belongs to the old problem."""
    restart(progress, w)
    progress.fresh[w] = 2


@wp.kernel(enable_backward=False)
def begin_kernel(
    # model
    islands: Islands,
    entries: int,
    # state
    where: wp.array[int],
    # out
    progress_out: IterationState,
):
    """Activate the islands of chosen worlds, and discard their changes."""
    w = wp.tid()
    world = w / islands.count
    active = where[world] * islands.moves[w]
    if root_of(islands, world, w % islands.count) != w:
        active = 0
    progress_out.active[w] = active
    progress_out.used[world] = entries
    progress_out.converged[w] = where[world] * (1 - islands.moves[w])  # components at rest need no iteration
    progress_out.iterations[w] = 0
    progress_out.waiting[w] = 0
    progress_out.newton_steps[w] = 0
    progress_out.newton[w] = 0
    restart(progress_out, w)
    wp.atomic_add(progress_out.any, 0, active)


@wp.func
def recorded(taken: int):
    """Whether the result `taken` means that the change that led to a point is recorded for later steps."""
    if taken == WAITS:
        return True
    return taken == TAKEN


@wp.kernel(enable_backward=False)
def change_kernel(
    # model
    islands: Islands,
    # work
    progress: IterationState,
    residual: wp.array[NODE],
    nodes: int,
    # out
    history_out: AndersonHistory,
):
    """Store a point that was accepted, and its change."""
    w, i = wp.tid()
    if i >= progress.used[w]:
        return
    u = island_of(islands, w, i)
    if not recorded(progress.taken[u]):
        return
    count = history_out.weight.shape[0]
    k = w * count + i
    if progress.known[u] > 0:
        n = progress.slot[u] * history_out.z.shape[0] + k
        history_out.dz[n] = history_out.z[k] - history_out.last_z[k]
        history_out.df[n] = history_out.f[k] - history_out.last_f[k]
    history_out.last_z[k] = history_out.z[k]
    history_out.last_f[k] = history_out.f[k]
    if i < nodes:
        history_out.last_r[k] = residual[k]


@wp.func
def of_age(progress: IterationState, w: int, age: int, slots: int):
    """Slot of the change that is `age` iterations old."""
    return (progress.slot[w] - age + slots) % slots


@wp.kernel(enable_backward=False)
def product_kernel(
    # model
    count: int,
    slots: int,
    islands: Islands,
    # work
    history: AndersonHistory,
    # out
    progress_out: IterationState,
):
    """Write partial products for chunks: of changes of the correction with the last change and with the correction."""
    w, age, c, lane = wp.tid()
    if not recorded(progress_out.taken[w]) or age >= progress_out.known[w]:
        return
    chunks = progress_out.square.shape[0] / progress_out.active.shape[0]
    row = history.z.shape[0]
    j = of_age(progress_out, w, age, slots)
    world = w / islands.count
    a = j * row + world * count
    b = progress_out.slot[w] * row + world * count
    along = wp.float64(0.0)
    onto = wp.float64(0.0)
    for part in range(islands.count):
        if root_of(islands, world, part) == w:
            for r in range(islands.first[part], islands.first[part + 1]):
                run = islands.run[r]
                for i in range(run[0] + c * wp.block_dim() + lane, run[1], chunks * wp.block_dim()):
                    d = history.weight[i] * history.df[a + i]
                    e = history.df[b + i]
                    f = history.f[world * count + i]
                    along += wp.float64(d[0] * e[0] + d[1] * e[1] + d[2] * e[2])
                    onto += wp.float64(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
    total = _sum(wp.vec2d(along, onto))
    if lane == 0:
        n = 2 * ((w * slots + j) * chunks + c)
        progress_out.product[n] = total[0]
        progress_out.product[n + 1] = total[1]


@wp.kernel(enable_backward=False)
def gram_kernel(
    # model
    chunks: int,
    slots: int,
    # out
    progress_out: IterationState,
):
    """Write products as sums over their chunks."""
    w, age = wp.tid()
    if not recorded(progress_out.taken[w]) or age >= progress_out.known[w]:
        return
    g = w * slots * slots
    j = of_age(progress_out, w, age, slots)
    along = wp.float64(0.0)
    onto = wp.float64(0.0)
    for c in range(chunks):
        n = 2 * ((w * slots + j) * chunks + c)
        along += progress_out.product[n]
        onto += progress_out.product[n + 1]
    s = progress_out.slot[w]
    progress_out.gram[g + s * slots + j] = along
    progress_out.gram[g + j * slots + s] = along
    progress_out.theta[w * slots + j] = onto


@wp.kernel(enable_backward=False)
def weigh_kernel(
    # model
    slots: int,
    # out
    progress_out: IterationState,
):
    """Solve for theta by Cholesky's factorisation; changes that depend linearly on later ones are left out."""
    w = wp.tid()
    if progress_out.taken[w] != TAKEN:
        return
    known = progress_out.known[w]
    g = w * slots * slots
    for k in range(known):  # factor L of G = L L^T and the solution of L y = theta
        i = of_age(progress_out, w, k, slots)
        for l in range(k + 1):
            j = of_age(progress_out, w, l, slots)
            a = progress_out.gram[g + i * slots + j]
            for m in range(l):
                a -= progress_out.factor[g + k * slots + m] * progress_out.factor[g + l * slots + m]
            if l < k:
                d = progress_out.factor[g + l * slots + l]
                progress_out.factor[g + k * slots + l] = wp.where(d > _ZERO, a / d, _ZERO)
            elif a > _DEPENDENT * progress_out.gram[g + i * slots + i]:
                progress_out.factor[g + k * slots + k] = wp.sqrt(a)
            else:
                progress_out.factor[g + k * slots + k] = _ZERO
        y = progress_out.theta[w * slots + i]
        for m in range(k):
            y -= (
                progress_out.factor[g + k * slots + m]
                * progress_out.theta[w * slots + of_age(progress_out, w, m, slots)]
            )
        d = progress_out.factor[g + k * slots + k]
        progress_out.theta[w * slots + i] = wp.where(d > _ZERO, y / d, _ZERO)
    for n in range(known):  # the solution of L^T theta = y
        k = known - 1 - n
        i = of_age(progress_out, w, k, slots)
        y = progress_out.theta[w * slots + i]
        for m in range(k + 1, known):
            y -= (
                progress_out.factor[g + m * slots + k]
                * progress_out.theta[w * slots + of_age(progress_out, w, m, slots)]
            )
        d = progress_out.factor[g + k * slots + k]
        progress_out.theta[w * slots + i] = wp.where(d > _ZERO, y / d, _ZERO)


@wp.kernel(enable_backward=False)
def mix_kernel(
    # model
    islands: Islands,
    slots: int,
    # work
    progress: IterationState,
    # out
    history_out: AndersonHistory,
):
    """Write the next point: z + f - sum theta (dz + df), or the plain step from the last accepted point."""
    w, i = wp.tid()
    if i >= progress.used[w]:
        return
    u = island_of(islands, w, i)
    taken = progress.taken[u]
    if taken == IDLE or taken == WAITS:  # noqa: SIM109
        return
    k = w * history_out.weight.shape[0] + i
    if taken == REJECTED:
        history_out.z[k] = history_out.last_z[k] + real(progress.share[u]) * history_out.last_f[k]
        return
    z = history_out.z[k] + history_out.f[k]
    if taken == TAKEN:
        for age in range(progress.known[u]):
            j = of_age(progress, u, age, slots)
            n = j * history_out.z.shape[0] + k
            theta = real(progress.theta[u * slots + j])
            z = z - theta * (history_out.dz[n] + history_out.df[n])
    history_out.z[k] = z
