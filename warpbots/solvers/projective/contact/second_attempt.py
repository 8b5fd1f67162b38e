"""Second attempt of a step whose iteration did not converge with contacts between surfaces.

In the first attempt all points of the iteration lie on straight paths from the start of the step, and contacts are only
found where such a path passes through a surface. In long steps, in which bodies turn or slide around one another, the
straight path to the end may pass through a body although the motion does not, and the planes at which it passes lead
the iteration away from the end.

The second attempt begins at the start of the step and makes contacts before a point passes through them, as incremental
potential contact does (Li et al. 2020). Each of its first moves is a plain correction that ends where the first pair of
surfaces would come too near, and planes are updated at every such point. Later moves are those of the first attempt,
but contacts are sought on the path from the last point that is free of collisions. So the motion to the end of the step
is a chain of straight paths without collisions, and only the start and the end of the step enter its result.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.pair_arrays import NONE, PairArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands, component_of, root_of
from warpbots.solvers.projective.iterate.anderson import restart
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.iterate.convergence import look

__all__ = [
    "SecondAttempt", "begin_again_kernel", "clear_kernel", "first_attempt_kernel", "follow_kernel", "note_free",
    "path_kernel",
]  # fmt: skip

_vec = vector(3)
_SHORTENED = wp.constant(20)
"""Moves of a second attempt that end at the first collision."""


@wp.struct
class SecondAttempt:
    """Second attempts of all worlds; `Islands.again` marks the components that take one.

    begun: 1 if a second attempt has just begun in any world, shape (1,).
    left: Moves of a component that are still to be shortened, shape (worlds * components,).
    free: Fraction of the last path of a component that is free of collisions, shape (worlds * components,).
    u: Displacements at the last point that is free of collisions; 0 in first attempts, shape (worlds * stride,).
    x: Positions at this point [m], shape (worlds * points,).
    way: Displacements from there, shape (worlds * stride,).
    """

    begun: wp.array[int]
    left: wp.array[int]
    free: wp.array[real]
    u: wp.array[NODE]
    x: wp.array[_vec]
    way: wp.array[NODE]


@wp.func
def note_free(pairs: PairArrays, islands: Islands, free: wp.array[real], w: int, one: int, other: int, t: real):
    """Note that the paths of two points are free of collisions up to the fraction t."""
    for k in range(2):
        component = pairs.component[wp.where(k == 0, one, other)]
        if component >= 0:
            wp.atomic_min(free, w * islands.count + component, t)


@wp.kernel(enable_backward=False)
def first_attempt_kernel(
    # model
    stride: int,
    # state
    where: wp.array[int],
    # out
    islands_out: Islands,
    attempt_out: SecondAttempt,
):
    """Begin the first attempt in chosen worlds."""
    w, i = wp.tid()
    if where[w] == 0:
        return
    attempt_out.u[w * stride + i] = NODE()
    if i < islands_out.count:
        islands_out.again[w * islands_out.count + i] = 0
        attempt_out.left[w * islands_out.count + i] = 0


@wp.kernel(enable_backward=False)
def path_kernel(
    # model
    pairs: PairArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    check: wp.array[int],
    islands: Islands,
    # out
    attempt_out: SecondAttempt,
):
    """Write the start of the path that a search follows, and the displacements from there."""
    w, i = wp.tid()
    if check[w] == 0:
        return
    if i < pairs.nodes:
        k = w * pairs.stride + i
        attempt_out.x[w * pairs.nodes + i] = x[w * pairs.nodes + i] + at(attempt_out.u, k)
        attempt_out.way[k] = u[k] - attempt_out.u[k]
    if i < islands.count:
        attempt_out.free[w * islands.count + i] = real(1.0)


@wp.func
def free_of_island(islands: Islands, attempt: SecondAttempt, u: int):
    """Fraction of the path of an island that is free of collisions."""
    least = real(1.0)
    first = u - u % islands.count
    for c in range(islands.count):
        if first + islands.root[first + c] == u:
            least = wp.min(least, attempt.free[first + c])
    return least


@wp.kernel(enable_backward=False)
def follow_kernel(
    # model
    pairs: PairArrays,
    # work
    check: wp.array[int],
    asked: wp.array[int],
    islands: Islands,
    progress: IterationState,
    # out
    attempt_out: SecondAttempt,
    u_out: wp.array[NODE],
):
    """Move the last free point along the path that was searched, and end the present move there if it is shortened."""
    w, i = wp.tid()
    if check[w] == 0:
        return
    component = component_of(islands, w, i)
    c = w * islands.count + component
    if islands.again[c] == 0 or asked[c] < 1:
        return
    root = root_of(islands, w, component)
    k = w * pairs.stride + i
    attempt_out.u[k] = attempt_out.u[k] + free_of_island(islands, attempt_out, root) * attempt_out.way[k]
    if attempt_out.left[c] > 0 and progress.converged[root] == 0:
        u_out[k] = attempt_out.u[k]


@wp.func
def has_failed_at_contacts(islands: Islands, progress: IterationState, u: int):
    """Whether the iteration of an island with pairs in contact has failed, in its first attempt."""
    ended = progress.active[u] + progress.waiting[u] + progress.converged[u] == 0
    return ended and islands.moves[u] == 1 and islands.touching[u] > 0 and islands.again[u] == 0


@wp.func
def ask_again(
    islands: Islands, progress: IterationState, attempt: SecondAttempt, w: int, asked: wp.array[int],
    check: wp.array[int], any: wp.array[int],
):  # fmt: skip
    """Request a search after each move that is shortened; such moves are not accelerated."""
    for c in range(islands.count):
        k = w * islands.count + c
        u = root_of(islands, w, c)
        if attempt.left[k] > 0 and progress.active[u] == 1:
            attempt.left[k] = attempt.left[k] - 1
            asked[k] = 1
            check[w] = 1
            any[0] = 1
            restart(progress, u)


@wp.kernel(enable_backward=False)
def begin_again_kernel(
    # model
    spent: int,
    # out
    asked_out: wp.array[int],
    check_out: wp.array[int],
    any_out: wp.array[int],
    rounds_out: wp.array[int],
    early_out: wp.array[int],
    lost_out: wp.array[int],
    intersection_out: wp.array[wp.int64],
    islands_out: Islands,
    progress_out: IterationState,
    attempt_out: SecondAttempt,
):
    """Begin a second attempt in islands whose first one has failed; it counts `spent` iterations as taken.

    Request a search in islands whose moves are shortened.
    """
    w = wp.tid()
    some = int(0)
    for island in range(islands_out.count):
        u = w * islands_out.count + island
        if islands_out.root[u] == island and has_failed_at_contacts(islands_out, progress_out, u):
            some = 1
            for c in range(islands_out.count):
                k = w * islands_out.count + c
                if islands_out.root[k] == island:
                    islands_out.again[k] = 1
                    attempt_out.left[k] = _SHORTENED + 1
                    rounds_out[k] = 1
                    early_out[k] = 0
                    lost_out[k] = 0
            progress_out.active[u] = 1
            progress_out.iterations[u] = spent
            progress_out.share[u] = wp.float64(1.0)
            restart(progress_out, u)
            wp.atomic_add(progress_out.any, 0, 1)
    if some == 1:
        attempt_out.begun[0] = 1
        intersection_out[w] = wp.int64(0)
        look(islands_out, progress_out, w)
    ask_again(islands_out, progress_out, attempt_out, w, asked_out, check_out, any_out)


@wp.kernel(enable_backward=False)
def clear_kernel(
    # model
    entries: int,
    # work
    islands: Islands,
    attempt: SecondAttempt,
    # out
    pairs_out: PairArrays,
    u_out: wp.array[NODE],
):
    """Go back to the start of the step, without forces and without pairs in contact, where a second attempt begins."""
    w, i = wp.tid()
    first = entries - pairs_out.capacity
    used = int(1)
    if i >= first:
        used = int(i - first < pairs_out.count[w])
    if used == 1 and attempt.left[w * islands.count + component_of(islands, w, i)] == _SHORTENED:
        u_out[w * pairs_out.stride + i] = NODE()
        if i >= first:
            pairs_out.kind[w * pairs_out.capacity + i - first] = NONE
            pairs_out.redundant[w * pairs_out.capacity + i - first] = 0
