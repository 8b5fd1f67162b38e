"""Lists of the active contacts of each world, in the order in which their forces are solved for."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, borne_entry
from warpbots.solvers.projective.contact.coulomb_law import gap_vector
from warpbots.solvers.projective.elements.element import at

__all__ = ["adj_list_kernel", "count_kernel", "list_kernel"]

_vec = vector(3)


@wp.func
def moved(topology: ContactTopology, contacts: ContactArrays, z: wp.array[NODE], f: wp.array[NODE], w: int, c: int):
    """Displacement sum a_k u_k of a contact at the point z + f."""
    total = _vec()
    for p in range(4):
        i = contacts.node[c][p]
        if i >= 0:
            k = w * topology.stride + i
            total += contacts.weight[c][p] * (at(z, k) + at(f, k))
    return total


@wp.func
def part_of(topology: ContactTopology, contacts: ContactArrays, part: int):
    """Index of the first contact of a part of the contacts of a world, and the index after its last contact."""
    length = (topology.contacts + contacts.parts - 1) / contacts.parts
    return part * length, wp.min((part + 1) * length, topology.contacts)


@wp.kernel(enable_backward=False)
def count_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    # out
    contacts_out: ContactArrays,
):
    """Count the active contacts of each part."""
    w, part = wp.tid()
    count = wp.vec2i()
    if active[w] == 1:
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            k = w * topology.contacts + c
            if contacts_out.listed[k] == 1:
                count[contacts_out.borne[k]] += 1
    contacts_out.part[w * contacts_out.parts + part] = count


@wp.func
def before(contacts: ContactArrays, w: int, part: int):
    """Numbers of active contacts in all parts before `part`."""
    count = wp.vec2i()
    for k in range(part):
        count += contacts.part[w * contacts.parts + k]
    return count


@wp.func
def next_entry(contacts: int, count: wp.vec2i, w: int, borne: int):
    """Entry of an active contact in the list of its world, after `count` others."""
    i = w * contacts + count[0]
    if borne == 1:
        i = borne_entry(contacts, w, count[1])
    return i


@wp.func
def press(contacts: ContactArrays, w: int, part: int, count: wp.vec2i):
    """In the last part of a world, write its numbers of active contacts, and whether there are any."""
    if part == contacts.parts - 1:
        some = wp.min(count[0] + count[1], 1)
        contacts.count[w] = count
        contacts.pressed[w] = some
        wp.atomic_add(contacts.any, 0, some)


@wp.kernel(enable_backward=False)
def list_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """List the active contacts with their q, and write corrections that set the forces of other contacts to zero."""
    w, part = wp.tid()
    count = wp.vec2i()
    if active[w] == 1:
        count = before(contacts_out, w, part)
        first = w * topology.contacts
        entry = w * topology.stride + topology.first
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            f_out[entry + c] = NODE()
            if contacts_out.listed[first + c] == 1:
                u = moved(topology, contacts_out, z, f_out, w, first + c)
                u -= contacts_out.surface[first + c]
                q = gap_vector(u, contacts_out.normal[first + c], contacts_out.distance[first + c])
                i = next_entry(topology.contacts, count, w, contacts_out.borne[first + c])
                contacts_out.gap[i] = q
                contacts_out.order[i] = c
                count[contacts_out.borne[first + c]] += 1
            else:
                f_out[entry + c] = -z[entry + c]
    press(contacts_out, w, part, count)


@wp.kernel(enable_backward=False)
def adj_list_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    z: wp.array[NODE],
    seed: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """List the active contacts with lambda* plus the sum a_k a of each over its nodes, for the adjoint a.

    `seed` has lambda*, the gradient of the loss itself with respect to contact forces.
    """
    w, part = wp.tid()
    count = wp.vec2i()
    if active[w] == 1:
        count = before(contacts_out, w, part)
        first = w * topology.contacts
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            k = first + c
            j = w * topology.stride + topology.first + c
            f_out[j] = NODE()
            if contacts_out.listed[k] == 1:
                i = next_entry(topology.contacts, count, w, contacts_out.borne[k])
                contacts_out.gap[i] = moved(topology, contacts_out, z, f_out, w, k) + at(seed, j)
                contacts_out.order[i] = c
                K = wp.transpose(contacts_out.by_force[k])
                K += contacts_out.response[k] @ wp.transpose(contacts_out.by_displacement[k])
                contacts_out.inverse[k] = wp.inverse(wp.identity(n=3, dtype=real) - K)
                count[contacts_out.borne[k]] += 1
    press(contacts_out, w, part, count)
