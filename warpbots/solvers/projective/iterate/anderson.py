"""Anderson's acceleration of fixed-point iterations z <- z + f(z), one for each world.

The last iterations show how the correction f changed with z. The next point is where a linear f with these changes
would be smallest (Walker & Ni 2011, "Anderson acceleration for fixed-point iterations"; Peng et al. 2018, "Anderson
acceleration for geometry optimization and physics simulation"):

    z <- z + f - sum_j theta_j (dz_j + df_j),   theta = argmin |f - sum_j theta_j df_j|_W.

For a linear problem this is GMRES with as many vectors, so that the adjoint of an iteration, which is linear, uses the
same kernels. A point whose correction is much larger than the last one is rejected: the iteration goes back, discards
the changes and takes the plain step from there, or half of it.
"""

import warp as wp

from warpbots.numerics import launch, launch_lanes, real
from warpbots.solvers.projective.iterate.anderson_arrays import LANES, History, Iteration, Progress

__all__ = ["accelerate", "begin", "restart"]

_GROWTH = wp.constant(wp.float64(10.0))  # of a correction relative to the last one, above which a point is rejected
_BETTER = wp.constant(wp.float64(0.9))  # of the smallest norm, below which a point is progress
_PATIENCE = wp.constant(20)  # points without progress after which the changes are discarded
_ZERO, _ONE, _HALF = (wp.constant(wp.float64(c)) for c in (0.0, 1.0, 0.5))
_DEPENDENT = wp.constant(wp.float64(1e-12))  # part of its square that a change needs orthogonal to later ones
_IDLE, _REJECTED, _TAKEN, _LAST = (wp.constant(k) for k in range(-1, 3))  # results for a point
_LEAST = wp.constant(wp.float64(1e-6))  # share of a plain step below which the iteration has failed


def begin(it: Iteration) -> None:
    """Restart all worlds at the point in ``history.z``."""
    launch(begin_kernel, it.worlds, [it.count], [it.progress], it.device)


def accelerate(it: Iteration, tolerance: float, relative: bool, limit: int) -> None:
    """Replace ``history.z`` by the next point, given its correction ``history.f``.

    Args:
        it: The iteration.
        tolerance: Size of the largest entry of a correction at which a world has converged [m].
        relative: Whether `tolerance` is relative to the size of the first correction instead.
        limit: Number of iterations after which a world has failed.
    """
    worlds, chunks, slots, h, p = it.worlds, it.chunks, it.slots, it.history, it.progress
    launch_lanes(measure_kernel, (worlds, chunks), LANES, [it.count, h], [p], it.device)
    launch(judge_kernel, worlds, [chunks, slots, wp.float64(tolerance), int(relative), limit], [p], it.device)
    launch(change_kernel, (worlds, it.count), [p], [h], it.device)
    launch_lanes(product_kernel, (worlds, slots, chunks), LANES, [it.count, slots, h], [p], it.device)
    launch(gram_kernel, (worlds, slots), [chunks, slots], [p], it.device)
    launch(weigh_kernel, worlds, [slots], [p], it.device)
    launch(mix_kernel, (worlds, it.count), [slots, p], [h], it.device)


@wp.func
def restart(progress: Progress, w: int):
    """Discard all changes: another problem is solved from here."""
    progress.fresh[w] = 1
    progress.known[w] = 0
    progress.share[w] = _ONE
    progress.stalled[w] = 0
    progress.best[w] = wp.float64(1e300)


@wp.kernel(enable_backward=False)
def begin_kernel(
    # model
    count: int,
    # out
    progress_out: Progress,
):
    """Every world is active and has no changes."""
    w = wp.tid()
    progress_out.active[w] = 1
    progress_out.used[w] = count
    progress_out.converged[w] = 0
    progress_out.iterations[w] = 0
    restart(progress_out, w)
    if w == 0:
        progress_out.any[0] = progress_out.active.shape[0]


@wp.func
def larger(a: real, b: real):
    """The larger one of two numbers, or NaN."""
    return wp.where(b <= a or wp.isnan(a), a, b)


@wp.kernel(enable_backward=False)
def measure_kernel(
    # model
    count: int,
    # work
    history: History,
    # out
    progress_out: Progress,
):
    """Squared norm of the correction, and its largest entry, of every part of every world."""
    w, c, lane = wp.tid()
    if progress_out.active[w] == 0:
        return
    chunks = progress_out.square.shape[0] / progress_out.active.shape[0]
    square = wp.float64(0.0)
    largest = real(0.0)
    for i in range(c * wp.block_dim() + lane, progress_out.used[w], chunks * wp.block_dim()):
        f = history.f[w * count + i]
        d = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
        square += wp.float64(history.weight[i] * d)
        largest = larger(largest, d * history.unit[i] * history.unit[i])
    total = wp.tile_sum(wp.tile(square))[0]
    most = wp.tile_reduce(larger, wp.tile(largest))[0]
    if lane == 0:
        progress_out.square[w * chunks + c] = total
        progress_out.largest[w * chunks + c] = wp.sqrt(wp.float64(most))


@wp.kernel(enable_backward=False)
def judge_kernel(
    # model
    chunks: int,
    slots: int,
    # state
    tolerance: wp.float64,
    relative: int,
    limit: int,
    # out
    progress_out: Progress,
):
    """Whether the point is accepted, and whether the iteration goes on."""
    w = wp.tid()
    if progress_out.active[w] == 0:
        progress_out.taken[w] = _IDLE
        return
    square = wp.float64(0.0)
    size = wp.float64(0.0)
    for c in range(chunks):
        square += progress_out.square[w * chunks + c]
        part = progress_out.largest[w * chunks + c]
        if not (part <= size):
            size = part
    norm = wp.sqrt(square)
    iterations = progress_out.iterations[w] + 1
    progress_out.iterations[w] = iterations
    if iterations == 1:
        progress_out.first[w] = wp.where(relative == 1, wp.max(size, wp.float64(1e-300)), _ONE)
        progress_out.norm[w] = norm
    share = progress_out.share[w]
    taken = _TAKEN
    known = progress_out.known[w]
    if not wp.isfinite(norm) or (known > 0 and norm > _GROWTH * progress_out.norm[w]):
        taken = _REJECTED
        if known == 0:
            share = _HALF * share
        progress_out.known[w] = 0
        if iterations == 1 or share < _LEAST:
            progress_out.size[w] = norm
            progress_out.active[w] = 0
            taken = _IDLE
    else:
        progress_out.size[w] = size / progress_out.first[w]
        progress_out.norm[w] = norm
        share = _ONE
        if norm < _BETTER * progress_out.best[w] or iterations == 1:
            progress_out.best[w] = norm
            progress_out.stalled[w] = 0
        else:
            progress_out.stalled[w] = progress_out.stalled[w] + 1
        if progress_out.stalled[w] > _PATIENCE:
            progress_out.stalled[w] = 0
            progress_out.best[w] = norm
            progress_out.known[w] = 0
        elif progress_out.fresh[w] == 0:
            progress_out.slot[w] = (progress_out.slot[w] + 1) % slots
            progress_out.known[w] = wp.min(progress_out.known[w] + 1, slots)
        progress_out.fresh[w] = 0
        if progress_out.size[w] <= tolerance:
            progress_out.converged[w] = 1
            progress_out.active[w] = 0
            taken = _LAST
    if iterations == limit and taken != _LAST:
        progress_out.active[w] = 0
        taken = _IDLE
    progress_out.share[w] = share
    progress_out.taken[w] = taken
    if progress_out.active[w] == 0:
        wp.atomic_sub(progress_out.any, 0, 1)


@wp.kernel(enable_backward=False)
def change_kernel(
    # work
    progress: Progress,
    # out
    history_out: History,
):
    """Store a point that was accepted, and its change."""
    w, i = wp.tid()
    if progress.taken[w] != _TAKEN or i >= progress.used[w]:
        return
    count = history_out.weight.shape[0]
    k = w * count + i
    if progress.known[w] > 0:
        n = progress.slot[w] * history_out.z.shape[0] + k
        history_out.dz[n] = history_out.z[k] - history_out.last_z[k]
        history_out.df[n] = history_out.f[k] - history_out.last_f[k]
    history_out.last_z[k] = history_out.z[k]
    history_out.last_f[k] = history_out.f[k]


@wp.func
def of_age(progress: Progress, w: int, age: int, slots: int):
    """Slot of the change that is so many iterations old."""
    return (progress.slot[w] - age + slots) % slots


@wp.kernel(enable_backward=False)
def product_kernel(
    # model
    count: int,
    slots: int,
    # work
    history: History,
    # out
    progress_out: Progress,
):
    """Products of a change of the correction with the last one and with the correction, of every part."""
    w, age, c, lane = wp.tid()
    if progress_out.taken[w] != _TAKEN or age >= progress_out.known[w]:
        return
    chunks = progress_out.square.shape[0] / progress_out.active.shape[0]
    row = history.z.shape[0]
    j = of_age(progress_out, w, age, slots)
    a = j * row + w * count
    b = progress_out.slot[w] * row + w * count
    along = wp.float64(0.0)
    onto = wp.float64(0.0)
    for i in range(c * wp.block_dim() + lane, progress_out.used[w], chunks * wp.block_dim()):
        d = history.weight[i] * history.df[a + i]
        e = history.df[b + i]
        f = history.f[w * count + i]
        along += wp.float64(d[0] * e[0] + d[1] * e[1] + d[2] * e[2])
        onto += wp.float64(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
    total = wp.tile_sum(wp.tile(wp.vec2d(along, onto), preserve_type=True))[0]
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
    progress_out: Progress,
):
    """Products from their parts."""
    w, age = wp.tid()
    if progress_out.taken[w] != _TAKEN or age >= progress_out.known[w]:
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
    progress_out: Progress,
):
    """Solve for theta by Cholesky's factorisation; changes that depend linearly on later ones are left out."""
    w = wp.tid()
    if progress_out.taken[w] != _TAKEN:
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
    slots: int,
    # work
    progress: Progress,
    # out
    history_out: History,
):
    """The next point: z + f - sum theta (dz + df), or the plain step from the last accepted one."""
    w, i = wp.tid()
    taken = progress.taken[w]
    if taken == _IDLE or i >= progress.used[w]:
        return
    k = w * history_out.weight.shape[0] + i
    if taken == _REJECTED:
        history_out.z[k] = history_out.last_z[k] + real(progress.share[w]) * history_out.last_f[k]
        return
    z = history_out.z[k] + history_out.f[k]
    if taken == _TAKEN:
        for age in range(progress.known[w]):
            j = of_age(progress, w, age, slots)
            n = j * history_out.z.shape[0] + k
            theta = real(progress.theta[w * slots + j])
            z = z - theta * (history_out.dz[n] + history_out.df[n])
    history_out.z[k] = z
