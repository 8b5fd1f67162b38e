"""The adjoint of contacts between surfaces that move: derivatives of their law at the end of a step."""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.pair_arrays import PairArrays, obstacle_of
from warpbots.solvers.projective.contact.pairs import motion_of, pair_at, pair_law, pair_work
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = ["adj_pairs_kernel", "differentiate_pairs_kernel", "pull_pairs_kernel"]

_vec = vector(3)
_FRICTION = wp.constant(CODES["friction"])


@wp.kernel(enable_backward=False)
def differentiate_pairs_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    x: wp.array[_vec],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write a row of B_k, L and dl/dq of every active pair, at the displacements and forces `z`."""
    w, p, r = wp.tid()
    k = w * topology.contacts + first + p
    if contacts_out.listed[k] == 0:
        return
    m = w * pairs.capacity + p
    lam = at(z, w * topology.stride + topology.first + first + p)
    T = _vec(real(int(r == 0)), real(int(r == 1)), real(int(r == 2)))
    pair = pair_at(pairs, contacts_out, x, z, lam, w, m, k)
    _T, by_pair, by_motion = wp.grad(pair_law)(T, pair, motion_of(pairs, z, w, m))
    by_displacement = -by_pair.lam / (pair.own - pair.skin)
    for j in range(3):
        contacts_out.by_node[4 * k][r, j] = by_pair.a[j] + by_motion.a[j]
        contacts_out.by_node[4 * k + 1][r, j] = by_pair.b[j] + by_motion.b[j]
        contacts_out.by_node[4 * k + 2][r, j] = by_pair.c[j] + by_motion.c[j]
        contacts_out.by_node[4 * k + 3][r, j] = by_pair.d[j] + by_motion.d[j]
        contacts_out.by_force[k][r, j] = by_pair.lam[j]
        contacts_out.by_displacement[k][r, j] = by_displacement[j]


@wp.func
def pull_pair(
    topology: ContactTopology, pairs: PairArrays, first: int, x: wp.array[_vec], u: wp.array[NODE], z: wp.array[NODE],
    w: int, p: int, contacts: ContactArrays,
):  # fmt: skip
    """B_k^T nu of a pair, plus the derivative of the work of its contact force in the adjoint displacements."""
    k = w * topology.contacts + first + p
    m = w * pairs.capacity + p
    j = w * topology.stride + topology.first + first + p
    nu = at(z, j)
    pair = pair_at(pairs, contacts, x, u, at(u, j), w, m, k)
    by_pair, _motion = wp.grad(pair_work)(pair, motion_of(pairs, z, w, m))
    contacts.pull[4 * k] = wp.transpose(contacts.by_node[4 * k]) @ nu + by_pair.a
    contacts.pull[4 * k + 1] = wp.transpose(contacts.by_node[4 * k + 1]) @ nu + by_pair.b
    contacts.pull[4 * k + 2] = wp.transpose(contacts.by_node[4 * k + 2]) @ nu + by_pair.c
    contacts.pull[4 * k + 3] = wp.transpose(contacts.by_node[4 * k + 3]) @ nu + by_pair.d


@wp.kernel(enable_backward=False)
def pull_pairs_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write the counterpart of the contact force in the adjoint for every active pair."""
    w, p = wp.tid()
    if active[w] == 1 and contacts_out.listed[w * topology.contacts + first + p] == 1:
        pull_pair(topology, pairs, first, x, u, z, w, p, contacts_out)


@wp.kernel(enable_backward=False)
def adj_pairs_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    contacts: ContactArrays,
    adjoint: wp.array[NODE],
    # out
    x_adj_out: wp.array[_vec],
    u_adj_out: wp.array[NODE],
    friction_adj_out: wp.array[real],
    obstacle_friction_adj_out: wp.array[real],
):
    """Add the gradients with respect to start positions, displacements of fixed nodes, and friction."""
    w, p = wp.tid()
    k = w * topology.contacts + first + p
    if contacts.listed[k] == 0:
        return
    m = w * pairs.capacity + p
    i = pairs.node[m]
    n = w * topology.nodes
    s = w * topology.stride
    j = s + topology.first + first + p
    pair = pair_at(pairs, contacts, x, u, at(u, j), w, m, k)
    _T, by_law, by_motion = wp.grad(pair_law)(at(adjoint, j), pair, motion_of(pairs, u, w, m))
    by_work, _motion = wp.grad(pair_work)(pair, motion_of(pairs, adjoint, w, m))
    wp.atomic_add(x_adj_out, n + i[0], by_law.a + by_work.a)
    wp.atomic_add(x_adj_out, n + i[1], by_law.b + by_work.b)
    wp.atomic_add(x_adj_out, n + i[2], by_law.c + by_work.c)
    wp.atomic_add(x_adj_out, n + i[3], by_law.d + by_work.d)
    wp.atomic_add(u_adj_out, s + i[0], packed(by_law.a + by_motion.a + by_work.a))
    wp.atomic_add(u_adj_out, s + i[1], packed(by_law.b + by_motion.b + by_work.b))
    wp.atomic_add(u_adj_out, s + i[2], packed(by_law.c + by_motion.c + by_work.c))
    wp.atomic_add(u_adj_out, s + i[3], packed(by_law.d + by_motion.d + by_work.d))
    o = obstacle_of(pairs, i)
    if o >= 0:
        if obstacle_friction_adj_out and pairs.condition[o] == _FRICTION:
            wp.atomic_add(obstacle_friction_adj_out, w * pairs.condition.shape[0] + o, by_law.friction)
    elif friction_adj_out:
        wp.atomic_add(friction_adj_out, w * pairs.movers + pairs.body[i[0]], real(0.5) * by_law.friction)
        wp.atomic_add(friction_adj_out, w * pairs.movers + pairs.body[i[3]], real(0.5) * by_law.friction)
