"""Makes contacts of the pairs that detection has found, in an order that does not depend on threads."""

import warp as wp

from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import link
from warpbots.solvers.projective.contact.detection import same_plane
from warpbots.solvers.projective.contact.pair_arrays import FACE, HitArrays, PairArrays, most_of, note_change
from warpbots.solvers.projective.islands import Islands, root_of, unite
from warpbots.solvers.projective.iterate.anderson import restart
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["link_kernel", "merge_kernel", "order_kernel"]


@wp.kernel(enable_backward=False)
def order_kernel(
    # model
    threads: int,
    # out
    hits_out: HitArrays,
):
    """Sort the pairs by their keys."""
    w, t = wp.tid()
    first = w * hits_out.room
    count = wp.min(hits_out.count[w], hits_out.room)
    for p in range(t, count, threads):
        rank = int(0)
        for q in range(count):
            rank += int(hits_out.key[first + q] < hits_out.key[first + p])
        hits_out.order[first + rank] = p


@wp.func
def is_redundant(hits: HitArrays, first: int, p: int, made: int):
    """Whether pair p is redundant: one of the `made` pairs has the same vertex and a face in nearly the same plane."""
    redundant = int(0)
    if hits.kind[p] == FACE:
        vertex = hits.node[p][0]
        k = made - 1
        while k >= 0 and redundant == 0:
            q = first + hits.order[first + k]
            if hits.node[q][0] != vertex:
                k = int(0)
            elif hits.kind[q] == FACE and same_plane(vertex, hits.normal[p], hits.node[q], hits.normal[q]):
                redundant = int(1)
            k -= 1
    return redundant


@wp.func
def connect(pairs: PairArrays, islands: Islands, w: int, slot: int, node: wp.vec4i):
    """Merge the islands that a pair connects; returns the island that is removed, -1 for none."""
    one = pairs.component[node[0]]
    other = pairs.component[node[3]]
    gone = int(-1)
    if one >= 0 and other >= 0:
        a = w * islands.count + one
        b = w * islands.count + other
        apart = islands.root[a] != islands.root[b]
        if islands.moves[a] != islands.moves[b] or (apart and islands.again[a] + islands.again[b] > 0):
            islands.strayed[w] = 1  # one of them rests, or their paths do not begin at the same time
        else:
            gone = unite(islands, w, one, other)
    one = wp.max(one, other)
    islands.pair[w * islands.pairs + slot] = one
    u = root_of(islands, w, one)
    islands.touching[u] = islands.touching[u] + 1
    return gone


@wp.func
def take_over(islands: Islands, progress: IterationState, gone: int, by: int):
    """Continue the iterations of the islands `gone` and `by` as the iteration of `by`."""
    for k in range(2):
        u = wp.where(k == 0, gone, by)
        if progress.active[u] == 1:
            wp.atomic_sub(progress.any, 0, 1)
        if progress.waiting[u] == 1:
            wp.atomic_sub(progress.any_waiting, 0, 1)
        progress.active[u] = 0
        progress.waiting[u] = 0
        progress.converged[u] = 0
        progress.newton[u] = 0
    wp.atomic_add(progress.any, 0, 1)
    progress.active[by] = 1
    progress.iterations[by] = wp.max(progress.iterations[by], progress.iterations[gone])
    progress.newton_steps[by] = wp.max(progress.newton_steps[by], progress.newton_steps[gone])
    progress.near[by] = wp.min(progress.near[by], progress.near[gone])
    restart(progress, by)


@wp.kernel(enable_backward=False)
def merge_kernel(
    # model
    topology: ContactTopology,
    # work
    lost: wp.array[int],
    check: wp.array[int],
    # out
    hits_out: HitArrays,
    pairs_out: PairArrays,
    contacts_out: ContactArrays,
    added_out: wp.array[int],
    islands_out: Islands,
    progress_out: IterationState,
):
    """Make contacts of the pairs that detection has found, one after the other, and count them.

    If detection found more pairs than it has room for, the number of contacts is set above the room for contacts, too.
    """
    w = wp.tid()
    if check[w] == 0:
        return
    first = w * hits_out.room
    overflow = hits_out.count[w] > hits_out.room
    count = pairs_out.count[w]
    made = int(0)
    for k in range(wp.min(hits_out.count[w], hits_out.room)):
        p = first + hits_out.order[first + k]
        node = hits_out.node[p]
        intersects = most_of(pairs_out, islands_out, lost, w, node[0], node[3]) == 1
        if intersects or overflow or is_redundant(hits_out, first, p, made) == 0:
            hits_out.order[first + made] = p - first
            made += 1
            slot = hits_out.slot[p]
            if slot < 0:
                slot = count
                count += 1
                if slot < pairs_out.capacity:
                    link(topology, contacts_out, w, topology.solids + slot, node)
                    contacts_out.changes[w * topology.contacts + topology.solids + slot] = 0
                    gone = connect(pairs_out, islands_out, w, slot, node)
                    if gone >= 0:
                        take_over(islands_out, progress_out, gone, root_of(islands_out, w, gone % islands_out.count))
            note_change(pairs_out, islands_out, w, node)
            if slot < pairs_out.capacity:
                m = w * pairs_out.capacity + slot
                pairs_out.kind[m] = hits_out.kind[p]
                pairs_out.node[m] = node
                pairs_out.side[m] = hits_out.side[p]
                pairs_out.normal[m] = hits_out.normal[p]
                pairs_out.weight[m] = hits_out.weight[p]
                pairs_out.redundant[m] = 0
    if overflow:
        count += pairs_out.capacity
    pairs_out.count[w] = count
    hits_out.count[w] = 0
    added_out[w] = added_out[w] + made


@wp.kernel(enable_backward=False)
def link_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    # out
    contacts_out: ContactArrays,
    islands_out: Islands,
):
    """List the corners of all pairs at their nodes, and merge the islands that pairs connect."""
    w = wp.tid()
    for slot in range(wp.min(pairs.count[w], pairs.capacity)):
        node = pairs.node[w * pairs.capacity + slot]
        link(topology, contacts_out, w, topology.solids + slot, node)
        connect(pairs, islands_out, w, slot, node)
