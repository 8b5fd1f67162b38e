"""Solves for the forces of all contacts of a world by the Gauss-Seidel method, one contact after the other."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.numerics.simd import add_multiples
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.borne_contacts import adj_solve_borne, find_ranges, solve_borne
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    entry_of,
    joint_in,
    places_in,
    places_of,
)
from warpbots.solvers.projective.contact.coulomb_law import columns_of, compliant, law
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, body_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays, lift, lifted
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = [
    "adj_gauss_seidel_kernel",
    "gauss_seidel_kernel",
    "mutual_kernel",
]

_vec = vector(3)
_SWEEPS = wp.constant(100)
_INNER = wp.constant(20)  # iterations for the force of a contact whose response depends on the direction
_SETTLED = wp.constant(real(0.001))  # change relative to the first sweep, below which sweeps end
_NEARLY = wp.constant(real(0.01))  # the same for the adjoint, whose iteration corrects the rest


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
    """Write the compliances between contacts that matter couples, which are symmetric, if there is room for them."""
    w, i, lane = wp.tid()
    count = contacts.count[w][0]
    if i >= count or count > compliance_out.side:
        return
    first = w * topology.contacts
    square = w * compliance_out.side * compliance_out.side
    c = first + contacts.order[first + i]
    columns = columns_of(topology, contacts, compliance_out, c)
    for j in range(i + lane, count, lanes):
        d = first + contacts.order[first + j]
        share = compliant(topology, contacts, compliance_out, columns, contacts.weight[c], d)
        compliance_out.mutual[square + i * compliance_out.side + j] = share
        compliance_out.mutual[square + j * compliance_out.side + i] = share


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
        if count <= compliance.side:
            row = (w * compliance.side + i - first) * compliance.side
            add_multiples(contacts.gap, first, compliance.mutual, row, scaled, count, lane, lanes)
        else:
            columns = columns_of(topology, contacts, compliance, k)
            for j in range(lane, count, lanes):
                d = first + contacts.order[first + j]
                share = compliant(topology, contacts, compliance, columns, contacts.weight[k], d)
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
def missing(contacts: ContactArrays, k: int, q: _vec, lam: _vec, change: _vec):
    """What the law asks for in addition to a `change` of the force of a contact."""
    l = law(
        q + contacts.response[k] @ change, contacts.normal[k], lam + change, contacts.own[k], contacts.skin[k],
        contacts.condition[k], contacts.friction[k], contacts.extra[k], contacts.closed[k],
    )  # fmt: skip
    return l - (lam + change)


@wp.func
def is_settled(step: _vec, change: _vec):
    """Whether the last part of a change of a force is small."""
    return wp.dot(step, step) <= _SETTLED * _SETTLED * wp.dot(change, change)


@wp.func
def settle(contacts: ContactArrays, k: int, q: _vec, lam: _vec):
    """Change of the force of a contact after which the contact obeys the law, if all other forces stay constant.

    Most contacts stick; then the change is known in closed form.
    """
    change = -(contacts.inverse[k] @ (q + contacts.skin[k] * lam))
    if not is_settled(missing(contacts, k, q, lam, change), change):
        change = _vec()
        for _ in range(_INNER):
            step = missing(contacts, k, q, lam, change)
            change += step
            if is_settled(step, change):
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
            change = contacts_out.inverse[k] @ (gap + wp.transpose(contacts_out.by_force[k]) @ nu - nu)
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
