"""Results of detection become contacts, in an order that does not depend on threads."""

import warp as wp

from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import link
from warpbots.solvers.projective.contact.detection import same_plane
from warpbots.solvers.projective.contact.pair_arrays import FACE, HitArrays, PairArrays

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
def is_spare(hits: HitArrays, first: int, p: int, made: int):
    """Whether a vertex over the edge of two faces in nearly one plane has the other of them, among those `made`."""
    spare = int(0)
    if hits.kind[p] == FACE:
        vertex = hits.node[p][0]
        k = made - 1
        while k >= 0 and spare == 0:
            q = first + hits.order[first + k]
            if hits.node[q][0] != vertex:
                k = int(0)
            elif hits.kind[q] == FACE and same_plane(vertex, hits.normal[p], hits.node[q], hits.normal[q]):
                spare = int(1)
            k -= 1
    return spare


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
):
    """Make contacts of the pairs that detection has found, one after the other, and count them.

    If they are more than there is room for, so are the contacts.
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
        if lost[w] == 1 or overflow or is_spare(hits_out, first, p, made) == 0:
            hits_out.order[first + made] = p - first
            made += 1
            slot = hits_out.slot[p]
            if slot < 0:
                slot = count
                count += 1
                if slot < pairs_out.capacity:
                    link(topology, contacts_out, w, topology.solids + slot, hits_out.node[p])
            if slot < pairs_out.capacity:
                m = w * pairs_out.capacity + slot
                pairs_out.kind[m] = hits_out.kind[p]
                pairs_out.node[m] = hits_out.node[p]
                pairs_out.side[m] = hits_out.side[p]
                pairs_out.normal[m] = hits_out.normal[p]
                pairs_out.weight[m] = hits_out.weight[p]
                pairs_out.spare[m] = 0
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
):
    """List the corners of all pairs at their nodes."""
    w = wp.tid()
    for slot in range(wp.min(pairs.count[w], pairs.capacity)):
        link(topology, contacts_out, w, topology.solids + slot, pairs.node[w * pairs.capacity + slot])
