"""Second attempt of a step whose iteration did not converge with contacts.

In the first attempt all points of the iteration lie on straight paths from the start of the step, and contacts are only
found where such a path passes through a surface. In long steps, in which bodies turn or slide around one another, the
straight path to the end may pass through a body although the motion does not, and the planes at which it passes lead
the iteration away from the end.

The second attempt begins at the start of the step and makes contacts before a point passes through them, as incremental
potential contact does (Li et al. 2020). Each of its first moves is a plain correction that ends where the first pair of
surfaces would come too near or the first node would enter a solid, and planes are updated at every such point. Later
moves are those of the first attempt, but contacts are sought on the path from the last point that is free of
collisions, and paths of nodes through solids begin there. So the motion to the end of the step is a chain of straight
paths without collisions, and only the start and the end of the step enter its result.
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

    begun: 1 for a component whose second attempt has just begun, shape (worlds * components,).
    any: 1 if a second attempt has just begun in any world, shape (1,).
    left: Moves of a component that are still to be shortened, shape (worlds * components,).
    free: Fraction of the last path of a component that is free of collisions, shape (worlds * components,).
    u: Displacements at the last point that is free of collisions; 0 in first attempts, shape (worlds * stride,).
    x: Positions at this point [m], shape (worlds * points,).
    way: Displacements from there, shape (worlds * stride,).
    """

    begun: wp.array[int]
    any: wp.array[int]
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
    points: int,
    stride: int,
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
    if i < points:
        k = w * stride + i
        attempt_out.x[w * points + i] = x[w * points + i] + at(attempt_out.u, k)
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
    stride: int,
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
    k = w * stride + i
    attempt_out.u[k] = attempt_out.u[k] + free_of_island(islands, attempt_out, root) * attempt_out.way[k]
    if attempt_out.left[c] > 0 and progress.converged[root] == 0:
        u_out[k] = attempt_out.u[k]


@wp.func
def has_failed_at_contacts(islands: Islands, progress: IterationState, u: int, pressed: int):
    """Whether the first attempt of an island has failed, with pairs in contact or in a world that is `pressed`."""
    ended = progress.active[u] + progress.waiting[u] + progress.converged[u] == 0
    return ended and islands.moves[u] == 1 and islands.touching[u] + pressed > 0 and islands.again[u] == 0


@wp.func
def ask_for(progress: IterationState, w: int, k: int, u: int, asked: wp.array[int], check: wp.array[int]):
    """Request a search of component k in island u; the move that leads to it is not accelerated."""
    asked[k] = 1
    check[w] = 1
    restart(progress, u)


@wp.kernel(enable_backward=False)
def begin_again_kernel(
    # model
    spent: int,
    # work
    pressed: wp.array[int],
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
    """Request a search after each move that is shortened, and begin a second attempt where the first one has failed.

    A second attempt counts `spent` iterations as taken. A world is `pressed` (1) if it has active contacts.
    """
    w = wp.tid()
    some = int(0)
    for c in range(islands_out.count):
        k = w * islands_out.count + c
        u = root_of(islands_out, w, c)
        attempt_out.begun[k] = 0
        if attempt_out.left[k] > 0 and progress_out.active[u] == 1:
            attempt_out.left[k] = attempt_out.left[k] - 1
            ask_for(progress_out, w, k, u, asked_out, check_out)
            any_out[0] = 1
    for island in range(islands_out.count):
        u = w * islands_out.count + island
        if islands_out.root[u] == island and has_failed_at_contacts(islands_out, progress_out, u, pressed[w]):
            some = 1
            for c in range(islands_out.count):
                k = w * islands_out.count + c
                if islands_out.root[k] == island:
                    islands_out.again[k] = 1
                    attempt_out.begun[k] = 1
                    attempt_out.left[k] = _SHORTENED
                    rounds_out[k] = 1
                    early_out[k] = 0
                    lost_out[k] = 0
                    ask_for(progress_out, w, k, u, asked_out, check_out)
            progress_out.active[u] = 1
            progress_out.iterations[u] = spent
            progress_out.share[u] = wp.float64(1.0)
            wp.atomic_add(progress_out.any, 0, 1)
    if some == 1:
        any_out[0] = 1
        attempt_out.any[0] = 1
        intersection_out[w] = wp.int64(0)
        look(islands_out, progress_out, w)


@wp.kernel(enable_backward=False)
def clear_kernel(
    # model
    stride: int,
    # work
    count: wp.array[int],
    islands: Islands,
    begun: wp.array[int],
    # out
    kind_out: wp.array[int],
    redundant_out: wp.array[int],
    u_out: wp.array[NODE],
):
    """Go back to the start of the step, without forces and without pairs in contact, where a second attempt begins."""
    w, i = wp.tid()
    pair = i - islands.entries
    if pair >= count[w] or begun[w * islands.count + component_of(islands, w, i)] == 0:
        return
    u_out[w * stride + i] = NODE()
    if pair >= 0:
        kind_out[w * islands.pairs + pair] = NONE
        redundant_out[w * islands.pairs + pair] = 0
