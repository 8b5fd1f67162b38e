"""Solves for the forces of all contacts of a world by the Gauss-Seidel method, one contact after the other.

On a CPU a few contacts, and many of which most stick, have been solved for together before (`few_contacts`,
`sticking_contacts`).
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.borne_contacts import adj_solve_borne, find_ranges, solve_borne
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    entry_of,
    places_of,
)
from warpbots.solvers.projective.contact.contact_response import carried, rest, spread
from warpbots.solvers.projective.contact.coulomb_law import columns_of, compliant, law
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays
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
    ready: wp.array[int],
    # out
    compliance_out: ComplianceArrays,
):
    """Write the compliances between contacts that matter couples, which are symmetric, if there is room for them.

    In an adjoint they stay the same, and are `ready` after the first time.
    """
    w, i, lane = wp.tid()
    count = contacts.count[w][0]
    if i >= count or count > compliance_out.side or ready[w] == 1:
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
    done: wp.array[int],
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
    swept = int(contacts_out.count[w][0])
    borne = contacts_out.count[w][1]
    if active[w] == 0 or done[w] == 1 or swept + borne == 0:
        return
    if done[w] == 2:
        swept = 0  # contacts that matter couples have been solved for, and no joint moves them
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
    done: wp.array[int],
    # out
    coupling_out: JointCoupling,
    rotation_out: RotationArrays,
    normals_out: NormalArrays,
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """Solve nu = sum a_k a + L^T nu for nu of all contacts, one after the other, and write the changes of nu."""
    w, lane = wp.tid()
    swept = int(contacts_out.count[w][0])
    borne = contacts_out.count[w][1]
    if active[w] == 0 or done[w] == 1 or swept + borne == 0:
        return
    if done[w] == 2:
        swept = 0  # contacts that matter couples have been solved for, and no joint moves them
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
