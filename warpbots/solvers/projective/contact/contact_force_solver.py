"""Solves for the forces of all contacts of a world by the Gauss-Seidel method, one contact after the other."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.borne_contacts import adj_solve_borne, find_ranges, solve_borne
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    borne_entry,
    joint_in,
    places_in,
    places_of,
)
from warpbots.solvers.projective.contact.coulomb_law import compliant, gap_vector, law
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, body_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays, lift, lifted
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = [
    "adj_gauss_seidel_kernel",
    "adj_list_kernel",
    "count_kernel",
    "gauss_seidel_kernel",
    "list_kernel",
    "mutual_kernel",
]

_vec = vector(3)
_SWEEPS = wp.constant(100)
_INNER = wp.constant(20)  # iterations for the force of a contact whose response depends on the direction
_SETTLED = wp.constant(real(0.001))  # change relative to the first sweep, below which sweeps end
_NEARLY = wp.constant(real(0.01))  # the same for the adjoint, whose iteration corrects the rest


@wp.func
def entry_of(contacts: int, swept: int, w: int, number: int):
    """Entry of an active contact in the list of its world, contacts that move only with bones last."""
    i = w * contacts + number
    if number >= swept:
        i = borne_entry(contacts, w, number - swept)
    return i


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
            j = w * topology.stride + topology.first + c
            f_out[j] = NODE()
            if contacts_out.listed[first + c] == 1:
                i = next_entry(topology.contacts, count, w, contacts_out.borne[first + c])
                contacts_out.gap[i] = moved(topology, contacts_out, z, f_out, w, first + c) + at(seed, j)
                contacts_out.order[i] = c
                count[contacts_out.borne[first + c]] += 1
    press(contacts_out, w, part, count)


@wp.kernel(enable_backward=False)
def mutual_kernel(
    # model
    topology: ContactTopology,
    lanes: int,
    # work
    contacts: ContactArrays,
    # out
    compliance_out: ComplianceArrays,
):
    """Write the compliances between contacts that matter couples, if there is room for them."""
    w, i, lane = wp.tid()
    count = contacts.count[w][0]
    if i >= count or count > compliance_out.side:
        return
    first = w * topology.contacts
    row = (w * compliance_out.side + i) * compliance_out.side
    c = first + contacts.order[first + i]
    for j in range(lane, count, lanes):
        d = first + contacts.order[first + j]
        compliance_out.mutual[row + j] = compliant(topology, contacts, compliance_out, c, d)


@wp.func
def spread(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, coupling: JointCoupling,
    rotation: RotationArrays, normals: NormalArrays, scaling: real, w: int, count: int, i: int, change: _vec,
    lane: int, lanes: int,
):  # fmt: skip
    """Move contacts, joints and unconstrained bodies by a `change` of the force of the contact at entry i."""
    first = w * topology.contacts
    scaled = change / scaling
    k = first + contacts.order[i]
    if contacts.borne[k] == 0:
        row = (w * compliance.side + i - first) * compliance.side
        for j in range(lane, count, lanes):
            share = real(0.0)
            if count <= compliance.side:
                share = compliance.mutual[row + j]
            else:
                share = compliant(topology, contacts, compliance, k, first + contacts.order[first + j])
            contacts.gap[first + j] = contacts.gap[first + j] + share * scaled
    if coupling.freedom > 0:
        span = coupling.span[k]
        for p in range(lane, places_in(span), lanes):
            j = w * coupling.freedom + joint_in(span, p)
            reply = wp.dot(coupling.response[k * coupling.width + p], change)
            coupling.displacement[j] = coupling.displacement[j] + reply
    if rotation.count > 0 and lane == 0:
        for p in range(4):
            node = contacts.node[k][p]
            b = body_of(rotation, node)
            if b >= 0:
                n = w * rotation.count + b
                arm = contacts.weight[k][p] * rotation.arm[w * rotation.nodes + node]
                rotation.angle[n] = rotation.angle[n] + rotation.gain[n] * wp.vec3d(wp.cross(arm, change))
    if normals.count > 0 and lane == 0:
        for p in range(4):
            lift(normals, w, contacts.node[k][p], contacts.weight[k][p] * change)


@wp.func
def carried(
    contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays, normals: NormalArrays, w: int, k: int
):
    """Displacement of contact k by joints, free rotations and free normals."""
    total = _vec()
    if coupling.freedom > 0:
        span = coupling.span[k]
        for p in range(places_in(span)):
            j = w * coupling.freedom + joint_in(span, p)
            total += coupling.displacement[j] * coupling.jacobian[k * coupling.width + p]
    if rotation.count > 0:
        for p in range(4):
            node = contacts.node[k][p]
            b = body_of(rotation, node)
            if b >= 0:
                arm = contacts.weight[k][p] * rotation.arm[w * rotation.nodes + node]
                total += wp.cross(_vec(rotation.angle[w * rotation.count + b]), arm)
    if normals.count > 0:
        for p in range(4):
            total += contacts.weight[k][p] * lifted(normals, w, contacts.node[k][p])
    return total


@wp.func
def rest(coupling: JointCoupling, rotation: RotationArrays, normals: NormalArrays, w: int, lane: int, lanes: int):
    """Set displacements of joints, rotations of bodies and displacements along free normals to zero."""
    for j in range(lane, coupling.freedom, lanes):
        coupling.displacement[w * coupling.freedom + j] = real(0.0)
    for b in range(lane, rotation.count, lanes):
        rotation.angle[w * rotation.count + b] = wp.vec3d()
    for k in range(lane, normals.count, lanes):
        normals.lift[w * normals.count + k] = real(0.0)


@wp.func
def settle(contacts: ContactArrays, k: int, q: _vec, lam: _vec):
    """Change of the force of a contact after which the contact obeys the law, if all other forces stay constant."""
    change = _vec()
    for _ in range(_INNER):
        l = law(
            q + contacts.response[k] @ change, contacts.normal[k], lam + change, contacts.own[k], contacts.skin[k],
            contacts.condition[k], contacts.friction[k], contacts.extra[k], contacts.closed[k],
        )  # fmt: skip
        step = l - (lam + change)
        change += step
        if wp.length(step) <= _SETTLED * wp.length(change):
            break
    return change


@wp.kernel(enable_backward=False)
def gauss_seidel_kernel(
    # model
    topology: ContactTopology,
    lanes: int,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    # out
    coupling_out: JointCoupling,
    rotation_out: RotationArrays,
    normals_out: NormalArrays,
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """Solve for forces that obey the law, contact after contact, and write the changes of the forces.

    Every thread of a world computes the change of each force, and moves its share of the contacts by this change.
    Contacts that move only with bones are solved together, and again if other contacts have moved joints since then.
    """
    w, lane = wp.tid()
    swept = contacts_out.count[w][0]
    borne = contacts_out.count[w][1]
    if active[w] == 0 or swept + borne == 0:
        return
    first = w * topology.contacts
    start = w * topology.stride + topology.first
    rest(coupling_out, rotation_out, normals_out, w, lane, lanes)
    if lane == 0 and coupling_out.freedom > 0:
        find_ranges(topology, contacts_out, coupling_out, w, borne)
    sync()
    largest = real(0.0)
    solved = int(0)
    stirred = coupling_out.freedom > 0
    for sweep in range(_SWEEPS):
        size = real(0.0)
        if stirred:
            solved, size = solve_borne(topology, contacts_out, coupling_out, z, f_out, w, borne, lane, lanes)
        stirred = bool(False)
        single = swept + borne - solved
        if single == 0:
            break
        for number in range(single):
            i = entry_of(topology.contacts, swept, w, number)
            c = contacts_out.order[i]
            k = first + c
            lam = at(z, start + c) + at(f_out, start + c)
            carry = carried(contacts_out, coupling_out, rotation_out, normals_out, w, k)
            change = settle(contacts_out, k, contacts_out.gap[i] + carry, lam)
            sync()
            if wp.dot(change, change) > real(0.0):
                size = wp.max(size, contacts_out.own[k] * wp.length(change))
                stirred = stirred or places_of(coupling_out, k) > 0
                if lane == 0:
                    f_out[start + c] = f_out[start + c] + packed(change)
                spread(
                    topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, scaling[w], w, swept,
                    i, change, lane, lanes,
                )  # fmt: skip
            sync()
        if sweep == 0:
            largest = size
        if size <= _SETTLED * largest:
            break


@wp.func
def settle_adjoint(contacts: ContactArrays, k: int, residual: _vec):
    """Change of nu of a contact after which the residual of its adjoint equation is zero, other nu being constant."""
    K = wp.transpose(contacts.by_force[k]) + contacts.response[k] @ wp.transpose(contacts.by_displacement[k])
    return wp.inverse(wp.identity(n=3, dtype=real) - K) @ residual


@wp.kernel(enable_backward=False)
def adj_gauss_seidel_kernel(
    # model
    topology: ContactTopology,
    lanes: int,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    # out
    coupling_out: JointCoupling,
    rotation_out: RotationArrays,
    normals_out: NormalArrays,
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """Solve nu = sum a_k a + L^T nu for nu of all contacts, one after the other, and write the changes of nu."""
    w, lane = wp.tid()
    swept = contacts_out.count[w][0]
    borne = contacts_out.count[w][1]
    if active[w] == 0 or swept + borne == 0:
        return
    first = w * topology.contacts
    start = w * topology.stride + topology.first
    rest(coupling_out, rotation_out, normals_out, w, lane, lanes)
    if lane == 0 and coupling_out.freedom > 0:
        find_ranges(topology, contacts_out, coupling_out, w, borne)
    sync()
    largest = real(0.0)
    solved = int(0)
    stirred = coupling_out.freedom > 0
    for sweep in range(_SWEEPS):
        size = real(0.0)
        if stirred:
            solved, size = adj_solve_borne(topology, contacts_out, coupling_out, z, f_out, w, borne, lane, lanes)
        stirred = bool(False)
        single = swept + borne - solved
        if single == 0:
            break
        for number in range(single):
            i = entry_of(topology.contacts, swept, w, number)
            c = contacts_out.order[i]
            k = first + c
            nu = at(z, start + c) + at(f_out, start + c)
            carry = carried(contacts_out, coupling_out, rotation_out, normals_out, w, k)
            gap = contacts_out.gap[i] + carry
            change = settle_adjoint(contacts_out, k, gap + wp.transpose(contacts_out.by_force[k]) @ nu - nu)
            force = wp.transpose(contacts_out.by_displacement[k]) @ change
            size = wp.max(size, wp.length(change))
            stirred = stirred or places_of(coupling_out, k) > 0
            sync()
            if lane == 0:
                f_out[start + c] = f_out[start + c] + packed(change)
            spread(
                topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, scaling[w], w, swept, i,
                force, lane, lanes,
            )  # fmt: skip
            sync()
        if sweep == 0:
            largest = size
        if size <= _NEARLY * largest:
            break
