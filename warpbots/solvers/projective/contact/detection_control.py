"""Control of collision detection: when a step asks for it, and how it goes on after the result."""

import warp as wp

from warpbots.numerics import NODE, real
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, note_change
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson import restart
from warpbots.solvers.projective.iterate.anderson_arrays import TAKEN, Progress
from warpbots.solvers.projective.iterate.convergence import look

__all__ = [
    "ask_kernel",
    "begin_pairs_kernel",
    "keep_path_kernel",
    "resolve_kernel",
    "stray_kernel",
]

_SEARCHES = wp.constant(60)  # searches for contacts in one step
_EARLY = wp.constant(8)  # of them before a step has converged for the present contacts
_PART = wp.constant(wp.float64(0.1))  # of the first correction with these contacts that is left then


@wp.kernel(enable_backward=False)
def begin_pairs_kernel(
    # state
    where: wp.array[int],
    # out
    pairs_out: PairArrays,
    check_out: wp.array[int],
    any_out: wp.array[int],
    searches_out: wp.array[int],
    early_out: wp.array[int],
    added_out: wp.array[int],
    near_out: wp.array[int],
    intersection_out: wp.array[wp.int64],
    lost_out: wp.array[int],
):
    """No pair of chosen worlds is a contact yet, and all have to be searched."""
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
        early_out[w * components + c] = 0
    added_out[w] = 0
    near_out[w] = 0
    intersection_out[w] = wp.int64(0)
    lost_out[w] = 0


@wp.func
def ends(was: wp.array[int], progress: Progress, w: int):
    """Whether the step of a world has converged with the last iteration."""
    return was[w] == 1 and progress.running[w] == 0 and progress.found[w] == 1


@wp.func
def is_near_its_end(islands: Islands, progress: Progress, u: int):
    """Whether the correction of an island with pairs is small beside the first one with its present contacts."""
    near = progress.taken[u] == TAKEN and progress.norm[u] <= _PART * progress.begun[u]
    return near and islands.touching[u] > 0


@wp.func
def has_changed(islands: Islands, w: int, island: int):
    """Whether a component of an island has other contacts than before."""
    changed = bool(False)
    for c in range(islands.count):
        u = w * islands.count + c
        if islands.root[u] == island and islands.changed[u] == 1:
            changed = True
    return changed


@wp.func
def fail(islands: Islands, progress: Progress, w: int):
    """No island of a world goes on, and its step has not been found."""
    for c in range(islands.count):
        u = w * islands.count + c
        wp.atomic_sub(progress.any, 0, progress.active[u])
        wp.atomic_sub(progress.any_waiting, 0, progress.waiting[u])
        progress.active[u] = 0
        progress.waiting[u] = 0
        progress.converged[u] = 0


@wp.func
def resume(progress: Progress, u: int):
    """An island goes on with other contacts."""
    if progress.waiting[u] == 1:
        progress.waiting[u] = 0
        wp.atomic_sub(progress.any_waiting, 0, 1)
    if progress.active[u] == 0:
        progress.active[u] = 1
        wp.atomic_add(progress.any, 0, 1)
    progress.converged[u] = 0
    restart(progress, u)


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
    early_out: wp.array[int],
    intersection_out: wp.array[wp.int64],
    lost_out: wp.array[int],
    outgrown_out: wp.array[int],
    islands_out: Islands,
    progress_out: Progress,
):
    """After a search: a step that had converged goes on if there are new contacts, else it has ended.

    It also goes on where surfaces intersect and contacts can be held at new planes; if that has been tried, it has
    failed. In an iterate, only the entries `before` those of pairs and those of present pairs are used.

    A search before it has converged adds contacts and updates planes early, until one finds nothing to change. Islands
    whose contacts stay as they were go on, or rest, as if there had been none.
    """
    w = wp.tid()
    if check_out[w] == 0:
        return
    check_out[w] = 0
    any_out[0] = 0
    progress_out.used[w] = before + wp.min(pairs.count[w], capacity)
    ended = progress_out.found[w]
    intersects = intersection_out[w] > wp.int64(0)
    again = added[w] > 0 or intersects
    hopeless = intersects and lost_out[w] == 1
    failed = ended == 1 and again and (hopeless or searches_out[w] >= _SEARCHES)
    if islands_out.strayed[w] == 1:
        failed = True
    if pairs.count[w] > capacity:
        failed = True
        if capacity < most:
            wp.atomic_max(outgrown_out, 0, pairs.count[w])
    if ended == 1:
        wp.atomic_sub(progress_out.any, 0, 1)
    if failed:
        fail(islands_out, progress_out, w)
    elif intersects and ended == 1:
        faces = wp.int64(pairs.face.shape[0])
        edge = pairs.edge[int((intersection_out[w] - wp.int64(1)) / faces)]
        face = pairs.face[int((intersection_out[w] - wp.int64(1)) % faces)]
        note_change(pairs, islands_out, w, wp.vec4i(edge[0], edge[1], face[0], face[1]))
    if not failed and (ended == 1 or searches_out[w] > 0):
        if ended == 1:
            lost_out[w] = int(intersects)
        intersection_out[w] = wp.int64(0)
        for c in range(islands_out.count):
            u = w * islands_out.count + c
            if ended == 0 and is_near_its_end(islands_out, progress_out, u):
                early_out[u] = wp.where(has_changed(islands_out, w, c), early_out[u] + 1, _EARLY)
        for c in range(islands_out.count):
            if islands_out.root[w * islands_out.count + c] == c and has_changed(islands_out, w, c):
                resume(progress_out, w * islands_out.count + c)
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
    """Keep the displacements of the first search."""
    w, k = wp.tid()
    if check[w] == 1 and searches[w] == 0:
        path_out[w * pairs.vertex.shape[0] + k] = z[w * pairs.stride + pairs.vertex[k]]


@wp.kernel(enable_backward=False)
def stray_kernel(
    # model
    pairs: PairArrays,
    # work
    was: wp.array[int],
    progress: Progress,
    z: wp.array[NODE],
    path: wp.array[NODE],
    # out
    near_out: wp.array[int],
):
    """Count nodes that moved further than half the margin from their end in the first search.

    If no pair could come nearer than clearance and margin along the paths of the first search, and no node has left its
    own by more than half the margin, no pair is nearer than the clearance.
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
    check_out: wp.array[int],
    any_out: wp.array[int],
    added_out: wp.array[int],
    progress_out: Progress,
):
    """A step that converged with the last iteration is searched for contacts, unless nothing can be near.

    One with contacts is also searched where its correction has become small beside that with which these began: the
    end for contacts that are not the last ones is of no use.
    """
    w = wp.tid()
    added_out[w] = 0
    if was[w] == 0:
        return
    if ends(was, progress_out, w) and near[w] > 0:
        check_out[w] = 1
        any_out[0] = 1
        wp.atomic_add(progress_out.any, 0, 1)
    elif progress_out.running[w] == 1:
        for c in range(islands.count):
            u = w * islands.count + c
            if early[u] < _EARLY and is_near_its_end(islands, progress_out, u):
                check_out[w] = 1
                any_out[0] = 1
