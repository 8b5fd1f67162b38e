"""Anderson's acceleration of fixed-point iterations z <- z + f(z), one for each world.

From the last steps it knows how the correction f changed with z, and goes where a linear f with these changes would be
smallest (Walker & Ni 2011, "Anderson acceleration for fixed-point iterations"; Peng et al. 2018, "Anderson acceleration
for geometry optimization and physics simulation"):

    z <- z + f - sum_j theta_j (dz_j + df_j),   theta = argmin |f - sum_j theta_j df_j|_W.

On a linear problem that is what GMRES does with as many vectors, so that the adjoint of an iteration, which is one,
goes through the same kernels. A point whose correction is much larger than the last one is not taken: the iteration
goes back, forgets what it knew and takes the plain step from there, or half of it.
"""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE, launch, launch_lanes, parallel, real, real_numpy

__all__ = ["LANES", "Iteration", "Progress", "accelerate", "begin", "chunks_of", "iteration", "restart"]

LANES = 256  # threads that add up a part of a sum on a GPU; a CPU has one
_EACH = 8  # numbers that each of them adds, in sums of no more than
_CHUNKS = 32  # parts
_GROWTH = wp.constant(wp.float64(10.0))  # of a correction above the last one, from which a point is not taken
_BETTER = wp.constant(wp.float64(0.9))  # of the smallest norm, below which a point is progress
_PATIENCE = wp.constant(20)  # points without progress after which the iteration forgets what it knew
_ZERO, _ONE, _HALF = (wp.constant(wp.float64(c)) for c in (0.0, 1.0, 0.5))
_DEPENDENT = wp.constant(wp.float64(1e-12))  # share of its square that a change has to have across those before it
_IDLE, _REJECTED, _TAKEN, _LAST = (wp.constant(k) for k in range(-1, 3))  # what becomes of a point
_LEAST = wp.constant(wp.float64(1e-6))  # share of a plain step below which the iteration has failed


@wp.struct
class Progress:
    """Where the iterations of all worlds are.

    active: 1 while a world iterates, shape (worlds,).
    any: Number of worlds that do, shape (1,).
    found: 1 where an iteration converged, shape (worlds,).
    used: Entries of a point that mean something, shape (worlds,).
    iterations: Number of corrections so far, shape (worlds,).
    size: Size of the last correction [m], or relative to the first; not finite where it ended by that, shape (worlds,).
    first: Size of the first one, shape (worlds,).
    norm: Weighted norm of the last correction of a point that was taken, shape (worlds,).
    best: Smallest norm so far, or since the iteration was last given a new start, shape (worlds,).
    stalled: Points since then, shape (worlds,).
    share: What of the correction a plain step takes, shape (worlds,).
    taken: What becomes of the point, one of the codes below, shape (worlds,).
    fresh: 1 until a point has been taken since the iteration began, shape (worlds,).
    known: Number of changes that are known, shape (worlds,).
    slot: Where the last change is, shape (worlds,).
    gram: Products of changes of the correction, shape (worlds * slots * slots,).
    factor: Their factor of Cholesky, newest first, likewise.
    theta: Weights of the changes, shape (worlds * slots,).
    square: Parts of the squared norm, shape (worlds * chunks,).
    largest: Largest entry of each part [m], shape (worlds * chunks,).
    product: Parts of the products with the last change and with the correction, shape (worlds * slots * chunks * 2,).
    """

    active: wp.array[int]
    any: wp.array[int]
    found: wp.array[int]
    used: wp.array[int]
    iterations: wp.array[int]
    size: wp.array[wp.float64]
    first: wp.array[wp.float64]
    norm: wp.array[wp.float64]
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
    largest: wp.array[wp.float64]
    product: wp.array[wp.float64]


@wp.struct
class History:
    """Points and corrections, all worlds in one row.

    z: The point, shape (worlds * n,).
    f: Its correction; that of entries of no meaning stays 0.
    weight: Weight of each entry in products, shape (n,).
    unit: What an entry is multiplied by to be a length, shape (n,).
    last_z: The last point that was taken.
    last_f: Its correction.
    dz: Changes of the point, shape (slots * worlds * n,).
    df: Changes of the correction.
    """

    z: wp.array[NODE]
    f: wp.array[NODE]
    weight: wp.array[real]
    unit: wp.array[real]
    last_z: wp.array[NODE]
    last_f: wp.array[NODE]
    dz: wp.array[NODE]
    df: wp.array[NODE]


@dataclasses.dataclass(frozen=True)
class Iteration:
    """Arrays of an iteration.

    Attributes:
        worlds: Number of worlds.
        count: Entries of a point of one world.
        slots: Changes that are remembered.
        chunks: Parts into which sums are cut.
        history: Points and corrections.
        progress: Where it is.
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
        slots: Changes that are remembered.
        weight: Weight of each entry of a point in products, shape (count,).
        unit: What each is multiplied by to be a length, shape (count,).
        device: Device of the arrays.
    """
    count = len(weight)
    chunks = chunks_of(count, device)
    history, progress = History(), Progress()
    for name in ("z", "f", "last_z", "last_f"):
        setattr(history, name, wp.zeros(worlds * count, dtype=NODE, device=device))
    for name in ("dz", "df"):
        setattr(history, name, wp.zeros(slots * worlds * count, dtype=NODE, device=device))
    for name in ("active", "found", "used", "iterations", "taken", "fresh", "known", "slot", "stalled"):
        setattr(progress, name, wp.zeros(worlds, dtype=int, device=device))
    progress.any = wp.zeros(1, dtype=int, device=device)
    sizes = {
        "gram": slots * slots,
        "factor": slots * slots,
        "theta": slots,
        "square": chunks,
        "largest": chunks,
        "product": 2 * slots * chunks,
    }
    sizes |= dict.fromkeys(("size", "first", "norm", "best", "share"), 1)
    for name, size in sizes.items():
        setattr(progress, name, wp.zeros(worlds * size, dtype=wp.float64, device=device))
    for name, values in (("weight", weight), ("unit", unit)):
        setattr(history, name, wp.array(values.astype(real_numpy), dtype=real, device=device))
    return Iteration(worlds, count, slots, chunks, history, progress, device)


def chunks_of(count: int, device: wp.Device) -> int:
    """Parts into which sums over so many entries are cut: what one thread adds up of them is short, too."""
    return min(_CHUNKS, -(-count // (LANES * _EACH))) if parallel(device) else 1


def begin(it: Iteration) -> None:
    """Start anew in all worlds, at the point that is in ``history.z``."""
    launch(begin_kernel, it.worlds, [it.count], [it.progress], it.device)


def accelerate(it: Iteration, tolerance: float, relative: bool, limit: int) -> None:
    """Replace ``history.z`` by the next point, given its correction ``history.f``.

    Args:
        it: The iteration.
        tolerance: Size of the largest entry of a correction at which a world has converged [m].
        relative: Whether `tolerance` is in sizes of the first correction instead.
        limit: Number of corrections after which it has not.
    """
    worlds, chunks, slots, h, p = it.worlds, it.chunks, it.slots, it.history, it.progress
    launch_lanes(measure_kernel, (worlds, chunks), LANES, [h, it.count], [p], it.device)
    launch(judge_kernel, worlds, [chunks, wp.float64(tolerance), int(relative), limit, slots], [p], it.device)
    launch(change_kernel, (worlds, it.count), [p], [h], it.device)
    launch_lanes(product_kernel, (worlds, slots, chunks), LANES, [h, it.count, slots], [p], it.device)
    launch(gram_kernel, (worlds, slots), [chunks, slots], [p], it.device)
    launch(weigh_kernel, worlds, [slots], [p], it.device)
    launch(mix_kernel, (worlds, it.count), [p, slots], [h], it.device)


@wp.func
def restart(progress: Progress, w: int):
    """Forget what is known: the iteration is another one from here."""
    progress.fresh[w] = 1
    progress.known[w] = 0
    progress.share[w] = _ONE
    progress.stalled[w] = 0
    progress.best[w] = wp.float64(1e300)


@wp.kernel(enable_backward=False)
def begin_kernel(count: int, progress_out: Progress):
    """Every world is active and knows nothing."""
    w = wp.tid()
    progress_out.active[w] = 1
    progress_out.used[w] = count
    progress_out.found[w] = 0
    progress_out.iterations[w] = 0
    restart(progress_out, w)
    if w == 0:
        progress_out.any[0] = progress_out.active.shape[0]


@wp.func
def larger(a: real, b: real):
    """The larger one of two numbers, or what is not a number."""
    return wp.where(b <= a or wp.isnan(a), a, b)


@wp.kernel(enable_backward=False)
def measure_kernel(history: History, count: int, progress_out: Progress):
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
    chunks: int, tolerance: wp.float64, relative: int, limit: int, slots: int, progress_out: Progress
):  # fmt: skip
    """Whether the point is taken, and whether the iteration goes on."""
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
            progress_out.found[w] = 1
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
def change_kernel(progress: Progress, history_out: History):
    """Remember a point that was taken, and how it changed."""
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
    """Slot of the change that is so many steps old."""
    return (progress.slot[w] - age + slots) % slots


@wp.kernel(enable_backward=False)
def product_kernel(history: History, count: int, slots: int, progress_out: Progress):
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
def gram_kernel(chunks: int, slots: int, progress_out: Progress):
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
def weigh_kernel(slots: int, progress_out: Progress):
    """Solve for theta by the factor of Cholesky; a change that those after it have said already is left out."""
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
def mix_kernel(progress: Progress, slots: int, history_out: History):
    """The next point: z + f - sum theta (dz + df), or the plain step from the last one that was taken."""
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
