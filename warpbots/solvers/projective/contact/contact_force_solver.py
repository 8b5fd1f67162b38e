"""Solves for the forces of all contacts of a world by the Gauss-Seidel method, one contact after the other."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.borne_contacts import adj_solve_borne, solve_borne
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, JointCoupling
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
    count = int(0)
    if active[w] == 1:
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            count += contacts_out.listed[w * topology.contacts + c]
    contacts_out.part[w * contacts_out.parts + part] = count


@wp.func
def before(contacts: ContactArrays, w: int, part: int):
    """Number of active contacts in all parts before `part`."""
    count = int(0)
    for k in range(part):
        count += contacts.part[w * contacts.parts + k]
    return count


@wp.func
def press(contacts: ContactArrays, w: int, part: int, count: int):
    """In the last part of a world, write its number of active contacts, and whether there are any."""
    if part == contacts.parts - 1:
        contacts.count[w] = count
        contacts.pressed[w] = wp.min(count, 1)
        wp.atomic_add(contacts.any, 0, wp.min(count, 1))


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
    count = int(0)
    if active[w] == 1:
        count = before(contacts_out, w, part)
        first = w * topology.contacts
        entry = w * topology.stride + topology.first
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            f_out[entry + c] = NODE()
            if contacts_out.listed[first + c] == 1:
                u = moved(topology, contacts_out, z, f_out, w, first + c)
                q = gap_vector(u, contacts_out.normal[first + c], contacts_out.distance[first + c])
                contacts_out.gap[first + count] = q
                contacts_out.order[first + count] = c
                count += 1
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
    # out
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """List the active contacts with the sum a_k a of each over its nodes, for the adjoint a."""
    w, part = wp.tid()
    count = int(0)
    if active[w] == 1:
        count = before(contacts_out, w, part)
        first = w * topology.contacts
        start, end = part_of(topology, contacts_out, part)
        for c in range(start, end):
            f_out[w * topology.stride + topology.first + c] = NODE()
            if contacts_out.listed[first + c] == 1:
                contacts_out.gap[first + count] = moved(topology, contacts_out, z, f_out, w, first + c)
                contacts_out.order[first + count] = c
                count += 1
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
    """Write the mutual compliances of all active contacts of a world, if there is room for them."""
    w, i, lane = wp.tid()
    count = contacts.count[w]
    if i >= count or count > compliance_out.side:
        return
    first = w * topology.contacts
    row = (w * compliance_out.side + i) * compliance_out.side
    c = first + contacts.order[first + i]
    for j in range(lane, count, lanes):
        d = first + contacts.order[first + j]
        compliance_out.mutual[row + j] = compliant(topology, contacts, compliance_out, c, d)


@wp.func
def between(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, w: int, count: int, i: int, j: int
):  # fmt: skip
    """Displacement of active contact number j per force of active contact number i [m/N]; read if it is stored."""
    share = real(0.0)
    if count <= compliance.side:
        share = compliance.mutual[(w * compliance.side + i) * compliance.side + j]
    else:
        first = w * topology.contacts
        c = first + contacts.order[first + i]
        share = compliant(topology, contacts, compliance, c, first + contacts.order[first + j])
    return share


@wp.func
def spread(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, coupling: JointCoupling,
    rotation: RotationArrays, normals: NormalArrays, scaling: real, w: int, count: int, i: int, change: _vec,
    lane: int, lanes: int,
):  # fmt: skip
    """Move contacts, joints and unconstrained bodies by a `change` of the force of active contact number i."""
    first = w * topology.contacts
    scaled = change / scaling
    for j in range(lane, count, lanes):
        share = between(topology, contacts, compliance, w, count, i, j)
        contacts.gap[first + j] = contacts.gap[first + j] + share * scaled
    k = (first + contacts.order[first + i]) * coupling.freedom
    for j in range(lane, coupling.freedom, lanes):
        coupling.displacement[w * coupling.freedom + j] += wp.dot(coupling.response[k + j], change)
    if rotation.count > 0 and lane == 0:
        c = first + contacts.order[first + i]
        for p in range(4):
            node = contacts.node[c][p]
            b = body_of(rotation, node)
            if b >= 0:
                n = w * rotation.count + b
                arm = contacts.weight[c][p] * rotation.arm[w * rotation.nodes + node]
                rotation.angle[n] = rotation.angle[n] + rotation.gain[n] * wp.vec3d(wp.cross(arm, change))
    if normals.count > 0 and lane == 0:
        c = first + contacts.order[first + i]
        for p in range(4):
            lift(normals, w, contacts.node[c][p], contacts.weight[c][p] * change)


@wp.func
def carried(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays,
    normals: NormalArrays, w: int, i: int,
):  # fmt: skip
    """Displacement of active contact number i by joints, free rotations and free normals."""
    first = w * topology.contacts
    k = (first + contacts.order[first + i]) * coupling.freedom
    total = _vec()
    for j in range(coupling.freedom):
        total += coupling.displacement[w * coupling.freedom + j] * coupling.jacobian[k + j]
    if rotation.count > 0:
        c = first + contacts.order[first + i]
        for p in range(4):
            node = contacts.node[c][p]
            b = body_of(rotation, node)
            if b >= 0:
                arm = contacts.weight[c][p] * rotation.arm[w * rotation.nodes + node]
                total += wp.cross(_vec(rotation.angle[w * rotation.count + b]), arm)
    if normals.count > 0:
        c = first + contacts.order[first + i]
        for p in range(4):
            total += contacts.weight[c][p] * lifted(normals, w, contacts.node[c][p])
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
    """
    w, lane = wp.tid()
    count = contacts_out.count[w]
    if active[w] == 0 or count == 0:
        return
    first = w * topology.contacts
    start = w * topology.stride + topology.first
    rest(coupling_out, rotation_out, normals_out, w, lane, lanes)
    sync()
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        solved = int(0)
        if coupling_out.freedom > 0:
            solved, size = solve_borne(topology, contacts_out, coupling_out, z, f_out, w, count, lane, lanes)
        if solved == count:
            break
        for i in range(count):
            c = contacts_out.order[first + i]
            k = first + c
            if solved > 0 and contacts_out.borne[k] == 1:
                continue
            lam = at(z, start + c) + at(f_out, start + c)
            carry = carried(topology, contacts_out, coupling_out, rotation_out, normals_out, w, i)
            change = settle(contacts_out, k, contacts_out.gap[first + i] + carry, lam)
            sync()
            if wp.dot(change, change) > real(0.0):
                size = wp.max(size, contacts_out.own[k] * wp.length(change))
                if lane == 0:
                    f_out[start + c] = f_out[start + c] + packed(change)
                spread(
                    topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, scaling[w], w, count,
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
    count = contacts_out.count[w]
    if active[w] == 0 or count == 0:
        return
    first = w * topology.contacts
    start = w * topology.stride + topology.first
    rest(coupling_out, rotation_out, normals_out, w, lane, lanes)
    sync()
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        solved = int(0)
        if coupling_out.freedom > 0:
            solved, size = adj_solve_borne(topology, contacts_out, coupling_out, z, f_out, w, count, lane, lanes)
        if solved == count:
            break
        for i in range(count):
            c = contacts_out.order[first + i]
            k = first + c
            if solved > 0 and contacts_out.borne[k] == 1:
                continue
            nu = at(z, start + c) + at(f_out, start + c)
            carry = carried(topology, contacts_out, coupling_out, rotation_out, normals_out, w, i)
            gap = contacts_out.gap[first + i] + carry
            change = settle_adjoint(contacts_out, k, gap + wp.transpose(contacts_out.by_force[k]) @ nu - nu)
            force = wp.transpose(contacts_out.by_displacement[k]) @ change
            size = wp.max(size, wp.length(change))
            sync()
            if lane == 0:
                f_out[start + c] = f_out[start + c] + packed(change)
            spread(
                topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, scaling[w], w, count, i,
                force, lane, lanes,
            )  # fmt: skip
            sync()
        if sweep == 0:
            largest = size
        if size <= _NEARLY * largest:
            break
