"""Control of collision detection: when a step requests a search, and how the step continues after the search."""

import warp as wp

from warpbots.numerics import NODE, real
from warpbots.solvers.projective.contact.pair_arrays import PairArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands, root_of
from warpbots.solvers.projective.iterate.anderson import restart
from warpbots.solvers.projective.iterate.anderson_arrays import TAKEN, IterationState
from warpbots.solvers.projective.iterate.convergence import look

__all__ = [
    "ask_kernel",
    "begin_pairs_kernel",
    "keep_path_kernel",
    "resolve_kernel",
    "stray_kernel",
]

_SEARCHES = wp.constant(60)  # searches for contacts in one step
_CROSSED = wp.constant(2)  # value of `changed` for an island with surfaces that intersect
_EARLY = wp.constant(8)  # searches before a step has converged for the present contacts
_PART = wp.constant(wp.float64(0.1))  # correction at such a search, relative to the first one with these contacts


@wp.kernel(enable_backward=False)
def begin_pairs_kernel(
    # state
    where: wp.array[int],
    # out
    pairs_out: PairArrays,
    check_out: wp.array[int],
    any_out: wp.array[int],
    searches_out: wp.array[int],
    asked_out: wp.array[int],
    rounds_out: wp.array[int],
    early_out: wp.array[int],
    added_out: wp.array[int],
    near_out: wp.array[int],
    intersection_out: wp.array[wp.int64],
    lost_out: wp.array[int],
):
    """Remove all contacts of pairs in chosen worlds, and request a search of all their components."""
    w = wp.tid()
    check_out[w] = where[w]
    if w == 0:
        any_out[0] = 1
    if where[w] == 0:
        return
    pairs_out.count[w] = 0
    searches_out[w] = 0
    components = early_out.shape[0] / where.shape[0]
    for c in range(components):
        u = w * components + c
        asked_out[u] = 1
        rounds_out[u] = 0
        early_out[u] = 0
        lost_out[u] = 0
    added_out[w] = 0
    near_out[w] = 0
    intersection_out[w] = wp.int64(0)


@wp.func
def ends(was: wp.array[int], progress: IterationState, w: int):
    """Whether no island of a world goes on after the last iteration, and at least one island has converged."""
    return was[w] == 1 and progress.ended[w] == 1


@wp.func
def is_near_its_end(islands: Islands, progress: IterationState, u: int):
    """Whether an island has pairs, and its correction is small relative to the first one with the same contacts."""
    near = progress.taken[u] == TAKEN and progress.norm[u] <= _PART * progress.begun[u]
    return near and islands.touching[u] > 0


@wp.func
def most_of_island(islands: Islands, values: wp.array[int], w: int, island: int):
    """The largest entry of `values` for the components of an island."""
    most = int(0)
    for c in range(islands.count):
        if islands.root[w * islands.count + c] == island:
            most = wp.max(most, values[w * islands.count + c])
    return most


@wp.func
def write_island(islands: Islands, values: wp.array[int], w: int, island: int, value: int):
    """Write `value` to the entries of `values` for all components of an island."""
    for c in range(islands.count):
        if islands.root[w * islands.count + c] == island:
            values[w * islands.count + c] = value


@wp.func
def fail(islands: Islands, progress: IterationState, w: int):
    """Stop all islands of a world, and mark their step as failed."""
    for c in range(islands.count):
        u = w * islands.count + c
        wp.atomic_sub(progress.any, 0, progress.active[u])
        wp.atomic_sub(progress.any_waiting, 0, progress.waiting[u])
        progress.active[u] = 0
        progress.waiting[u] = 0
        progress.converged[u] = 0
        islands.again[u] = 1  # a second attempt would fail, too


@wp.func
def resume(progress: IterationState, u: int):
    """Continue the iteration of an island with changed contacts."""
    if progress.waiting[u] == 1:
        progress.waiting[u] = 0
        wp.atomic_sub(progress.any_waiting, 0, 1)
    if progress.active[u] == 0:
        progress.active[u] = 1
        wp.atomic_add(progress.any, 0, 1)
    progress.converged[u] = 0
    restart(progress, u)


@wp.func
def note_intersection(pairs: PairArrays, islands: Islands, w: int, intersection: wp.array[wp.int64]):
    """Mark the islands of the edge and the face that intersect, if the search has found such a pair."""
    if intersection[w] > wp.int64(0):
        faces = wp.int64(pairs.face.shape[0])
        edge = pairs.edge[int((intersection[w] - wp.int64(1)) / faces)]
        face = pairs.face[int((intersection[w] - wp.int64(1)) % faces)]
        for k in range(2):
            component = pairs.component[wp.where(k == 0, edge[0], face[0])]
            if component >= 0:
                write_island(islands, islands.changed, w, islands.root[w * islands.count + component], _CROSSED)


@wp.func
def end_search(
    pairs: PairArrays, islands: Islands, progress: IterationState, w: int, rounds: wp.array[int],
    intersection: wp.array[wp.int64], lost: wp.array[int],
):  # fmt: skip
    """After a search in which all islands had ended, continue the islands whose contacts have changed.

    Islands whose surfaces intersect also continue once, as contacts can be held at new planes. If their surfaces still
    intersect, or if there were too many searches, their step fails.
    """
    note_intersection(pairs, islands, w, intersection)
    some = int(0)
    for c in range(islands.count):
        u = w * islands.count + c
        changed = most_of_island(islands, islands.changed, w, c)
        if islands.root[u] == c and progress.converged[u] * islands.moves[u] == 1 and changed > 0:
            round = most_of_island(islands, rounds, w, c)
            crossed = int(changed == _CROSSED)
            if round >= _SEARCHES or crossed * most_of_island(islands, lost, w, c) == 1:
                progress.converged[u] = 0
            else:
                some = 1
                write_island(islands, rounds, w, c, round + 1)
                write_island(islands, lost, w, c, crossed)
                resume(progress, u)
    if some == 1:
        intersection[w] = wp.int64(0)


@wp.kernel(enable_backward=False)
def resolve_kernel(
    # model
    capacity: int,
    most: int,
    before: int,
    pairs: PairArrays,
    # work
    added: wp.array[int],
    # out
    check_out: wp.array[int],
    any_out: wp.array[int],
    searches_out: wp.array[int],
    rounds_out: wp.array[int],
    early_out: wp.array[int],
    intersection_out: wp.array[wp.int64],
    lost_out: wp.array[int],
    outgrown_out: wp.array[int],
    islands_out: Islands,
    progress_out: IterationState,
):
    """After a search, continue islands with new contacts; if no island has new contacts, the step has ended.

    Of an iterate, only the first `before` entries, which precede the pairs, and the entries of present pairs are used.

    Searches before convergence add contacts and update planes early, until a search changes nothing. Islands with
    unchanged contacts continue, or rest, as if there had been no search.
    """
    w = wp.tid()
    if check_out[w] == 0:
        return
    check_out[w] = 0
    any_out[0] = 0
    progress_out.used[w] = before + wp.min(pairs.count[w], capacity)
    ended = progress_out.ended[w]
    overflow = pairs.count[w] > capacity
    if overflow and capacity < most:
        wp.atomic_max(outgrown_out, 0, pairs.count[w])
    if ended == 1:
        wp.atomic_sub(progress_out.any, 0, 1)
    if overflow or islands_out.strayed[w] == 1:
        fail(islands_out, progress_out, w)
    elif ended == 1:
        end_search(pairs, islands_out, progress_out, w, rounds_out, intersection_out, lost_out)
    elif searches_out[w] > 0:
        for c in range(islands_out.count):
            u = w * islands_out.count + c
            changed = most_of_island(islands_out, islands_out.changed, w, c)
            if is_near_its_end(islands_out, progress_out, u):
                early_out[u] = wp.where(changed > 0, early_out[u] + 1, _EARLY)
            if islands_out.root[u] == c and changed > 0:
                resume(progress_out, u)
    if searches_out[w] == 0:
        for c in range(islands_out.count):
            rounds_out[w * islands_out.count + c] = 1
    if ended == 1 or searches_out[w] == 0:
        searches_out[w] = searches_out[w] + 1
    for c in range(islands_out.count):
        islands_out.changed[w * islands_out.count + c] = 0
    look(islands_out, progress_out, w)


@wp.kernel(enable_backward=False)
def keep_path_kernel(
    # model
    pairs: PairArrays,
    # work
    check: wp.array[int],
    searches: wp.array[int],
    z: wp.array[NODE],
    # out
    path_out: wp.array[NODE],
):
    """Store the displacements of surface vertices at which the first search took place."""
    w, k = wp.tid()
    if check[w] == 1 and searches[w] == 0:
        path_out[w * pairs.vertex.shape[0] + k] = z[w * pairs.stride + pairs.vertex[k]]


@wp.kernel(enable_backward=False)
def stray_kernel(
    # model
    pairs: PairArrays,
    # work
    was: wp.array[int],
    progress: IterationState,
    z: wp.array[NODE],
    path: wp.array[NODE],
    # out
    near_out: wp.array[int],
):
    """Count surface vertices that have moved by more than half their margin from their end in the first search.

    If no pair could come nearer than clearance and margin along the paths of the first search, and no vertex is further
    than half the margin from its path, no pair is nearer than the clearance.
    """
    w, k = wp.tid()
    if ends(was, progress, w):
        d = at(z, w * pairs.stride + pairs.vertex[k]) - at(path, w * pairs.vertex.shape[0] + k)
        if not (wp.length(d) <= real(0.5) * pairs.margin[pairs.vertex[k]]):
            wp.atomic_add(near_out, w, 1)


@wp.kernel(enable_backward=False)
def ask_kernel(
    # model
    islands: Islands,
    # work
    was: wp.array[int],
    near: wp.array[int],
    early: wp.array[int],
    # out
    asked_out: wp.array[int],
    check_out: wp.array[int],
    any_out: wp.array[int],
    added_out: wp.array[int],
    progress_out: IterationState,
):
    """Request a search in worlds whose step converged with the last iteration, unless no pair can be near.

    A step with contacts is also searched once its correction is small relative to the first correction with these
    contacts: converging with contacts that will change is useless.
    """
    w = wp.tid()
    added_out[w] = 0
    if was[w] == 0:
        return
    ended = ends(was, progress_out, w)
    if ended and near[w] > 0:
        check_out[w] = 1
        any_out[0] = 1
        wp.atomic_add(progress_out.any, 0, 1)
    for c in range(islands.count):
        u = root_of(islands, w, c)
        asked = int(0)
        if progress_out.active[u] + progress_out.waiting[u] + progress_out.converged[u] == 0:
            asked = -1
        elif ended:
            asked = 1
        elif progress_out.running[w] == 1 and early[u] < _EARLY and is_near_its_end(islands, progress_out, u):
            asked = 1
            check_out[w] = 1
            any_out[0] = 1
        asked_out[w * islands.count + c] = asked
