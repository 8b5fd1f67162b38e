"""Coulomb's law at contacts, solved exactly.

The displacement of a contact is a weighted sum u = sum a_k u_k over up to four nodes: of a node at an obstacle, of a
vertex and a face, or of two edges; the displacement of the surface of an obstacle that moves is subtracted from it.
With its distance phi and normal n at the end of the step, and q = u - n (n . u) + phi n, the force lambda of the
contact [N] obeys the law if, for any w > 0,

    lambda = l(q + c lambda - w lambda),   l(f) = (constrain(f) - f) / w,

with Coulomb's law `constrain` of `warpbots.contact` for displacements instead of velocities (Qiao et al. 2021,
section 5; Ly et al. 2020, "Projective dynamics with dry frictional contact").

The compliance c of the contact itself is 0 for a soft body on an obstacle. If several contacts hold the same matter, as
between soft surfaces and at bones, the distribution of the force among these contacts is not unique; c, a hundredth of
the compliance of a node, makes the distribution unique.

Forces are unknowns of the iteration of a step, like displacements. The contact forces are solved for again after every
global step (`contact_force_solver`). Contacts are coupled through the compliance C = A^-1 of the global matrix: a
change of the force on node j moves node i by C_ij. A column of C is computed when its node comes into contact, and is
kept as long as there is room (`compliance`). Joints of bones (`JointCoupling`) and rotations of unconstrained bodies
(`free_rotation`) couple contacts, too.

The adjoint is the same iteration transposed. With B_k = dl/du_k and L = dl/dlambda of every contact, the second
derivative H and the gradients u* and lambda* with respect to displacements and forces, it solves for a at the nodes and
nu at the contacts:

    H a = u* + sum B_k^T nu + (d/du_k sum_j a_j lambda . a)^T,   nu = lambda* + sum a_k a + L^T nu.
"""

import warp as wp

from warpbots.contact import CODES, constrain
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    places_of,
)
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, body_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays, number_of
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays, ask

__all__ = [
    "acts", "columns_of", "compliant", "gap_vector", "gather_kernel", "law", "link", "need_kernel", "own_kernel",
    "push_kernel", "skin_of",
]  # fmt: skip

_vec, _vec4, _mat = vector(3), vector(4), matrix(3)
_constrain = constrain(3)
_SLIP, _SEPARATE = wp.constant(CODES["slip"]), wp.constant(CODES["separate"])  # sticky comes before slip


@wp.func
def law(q: _vec, n: _vec, lam: _vec, w: real, c: real, condition: int, mu: real, extra: real, closed: int):
    """Force l(q + c lambda - w lambda) that holds a node at the surface.

    On a sticky or slippery surface a contact that was closed when the step began stays closed. A contact that closes
    during the step slides: a jump of the tangential force would keep steps from converging.
    """
    f = q - (w - c) * lam
    depth = -wp.dot(f, n)
    l = _vec()
    law = condition
    if condition <= _SLIP and closed == 0:
        law = _SEPARATE
    if depth > real(0.0) or law <= _SLIP:
        l = (_constrain(f, n, depth, law, mu, extra) - f) / w
    return l


@wp.func
def gap_vector(u: _vec, n: _vec, phi: real):
    """q = u - n (n . u) + phi n: the tangential displacement of a contact, and its distance along the normal [m]."""
    return u - wp.dot(n, u) * n + phi * n


@wp.func
def acts(phi: real, lam: _vec, condition: int, closed: int):
    """1 for an active contact: one that is closed, has a force, or may not open."""
    bound = condition <= _SLIP and closed == 1
    return int(bound or phi < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.func
def place_of(topology: ContactTopology, node: int):
    """Index of the node `node` in `ContactTopology.node`, the points that may be in contact and move; -1 for none."""
    place = int(-1)
    if node >= 0:
        place = topology.place[node]
    return place


@wp.func
def skin_of(topology: ContactTopology, node: wp.vec4i):
    """Compliance of a contact itself that its points give it [m/N]."""
    skin = real(0.0)
    for p in range(4):
        i = place_of(topology, node[p])
        if i >= 0:
            skin += topology.skin[i]
    return skin


@wp.func
def columns_of(topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, c: int):
    """Columns of the compliance of the nodes of contact c, -1 for nodes without one."""
    columns = wp.vec4i(-1, -1, -1, -1)
    for p in range(4):
        i = place_of(topology, contacts.node[c][p])
        if i >= 0:
            columns[p] = compliance.column[i]
    return columns


@wp.func
def compliant(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, columns: wp.vec4i, weight: _vec4,
    d: int,
):  # fmt: skip
    """Displacement of contact d per force of another contact with these columns and weights [m/N]: sum a_i C_ij b_j."""
    total = real(0.0)
    for q in range(4):
        j = place_of(topology, contacts.node[d][q])
        if j >= 0:
            share = real(0.0)
            for p in range(4):
                if columns[p] >= 0:
                    share += weight[p] * compliance.value[columns[p], j]
            total += contacts.weight[d][q] * share
    return total


@wp.func
def link(topology: ContactTopology, contacts: ContactArrays, w: int, c: int, node: wp.vec4i):
    """Append the corners of the pair of contact c to the linked lists of its nodes."""
    first = 4 * w * topology.contacts
    for q in range(4):
        i = place_of(topology, node[q])
        if i >= 0:
            i += w * topology.node.shape[0]
            corner = 4 * c + q
            last = contacts.tail[i]
            if last < 0:
                contacts.head[i] = corner
            else:
                contacts.next[first + last] = corner
            contacts.tail[i] = corner
            contacts.next[first + corner] = -1


@wp.kernel(enable_backward=False)
def push_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    z: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write the forces a_k lambda of contacts on their nodes."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if active[w] == 0 or contacts_out.listed[k] == 0:
        return
    lam = at(z, w * topology.stride + topology.first + c)
    for q in range(4):
        contacts_out.pull[4 * k + q] = contacts_out.weight[k][q] * lam


@wp.kernel(enable_backward=False)
def gather_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    # work
    contacts: ContactArrays,
    # out
    residual_out: wp.array[NODE],
):
    """Add the forces of contacts on a node to the residual of the node, in the order of the contacts."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    first = w * topology.contacts
    points = wp.max(topology.point.shape[0], 1)
    solids = topology.solids / points
    j = w * topology.stride + topology.node[i]
    total = residual_out[j]
    for c in range(i * solids, (i + 1) * solids):
        if contacts.listed[first + c] == 1:
            total += packed(contacts.pull[4 * (first + c)])
    if solids > 0:
        for k in range(topology.sample[i], topology.sample[i + 1]):
            sample = (topology.node.shape[0] + topology.corner[k] / 4) * solids
            for c in range(sample, sample + solids):
                if contacts.listed[first + c] == 1:
                    total += packed(contacts.pull[4 * (first + c) + topology.corner[k] % 4])
    corner = contacts.head[w * topology.node.shape[0] + i]
    while corner >= 0:
        if contacts.listed[first + corner / 4] == 1:
            total += packed(contacts.pull[4 * first + corner])
        corner = contacts.next[4 * first + corner]
    residual_out[j] = total


@wp.kernel(enable_backward=False)
def need_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    # work
    contacts: ContactArrays,
    # out
    compliance_out: ComplianceArrays,
):
    """Request columns of the compliance for nodes of active contacts, except nodes that move with bones."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if active[w] == 0 or contacts.listed[k] == 0:
        return
    for p in range(4):
        i = place_of(topology, contacts.node[k][p])
        if i >= 0 and topology.row[i] >= 0:
            ask(compliance_out, i)


@wp.func
def rotated(rotation: RotationArrays, contacts: ContactArrays, w: int, k: int):
    """Displacement of contact k per force of contact k by free rotations [m/N]: sum of [b]^T G [b] over its bodies."""
    total = wp.mat33d()
    for p in range(4):
        body = body_of(rotation, contacts.node[k][p])
        arm = _vec()
        for q in range(4):
            if body >= 0 and body_of(rotation, contacts.node[k][q]) == body:
                if q < p:
                    body = int(-1)  # it has been counted
                else:
                    arm += contacts.weight[k][q] * rotation.arm[w * rotation.nodes + contacts.node[k][q]]
        if body >= 0:
            B = wp.skew(wp.vec3d(arm))
            total += wp.transpose(B) * rotation.gain[w * rotation.count + body] * B
    return _mat(total)


@wp.func
def moves_with_bones(topology: ContactTopology, contacts: ContactArrays, k: int):
    """Whether contact k moves only with bones."""
    alone = bool(True)
    for p in range(4):
        i = place_of(topology, contacts.node[k][p])
        if i >= 0 and topology.row[i] >= 0:
            alone = False
    return alone


@wp.func
def lifting(normals: NormalArrays, contacts: ContactArrays, w: int, k: int):
    """Displacement of contact k per force of contact k along free normals [m/N]."""
    total = _mat()
    for p in range(4):
        i = number_of(normals, contacts.node[k][p])
        if i >= 0:
            a = contacts.weight[k][p]
            n = normals.normal[w * normals.count + i]
            total += a * a * normals.gain[w * normals.count + i] * wp.outer(n, n)
    return total


@wp.func
def largest_row(K: _mat):
    """The largest row sum of absolute values, an upper bound of all eigenvalues."""
    most = real(0.0)
    for r in range(3):
        most = wp.max(most, wp.abs(K[r, 0]) + wp.abs(K[r, 1]) + wp.abs(K[r, 2]))
    return most


@wp.kernel(enable_backward=False)
def own_kernel(
    # model
    topology: ContactTopology,
    # work
    compliance: ComplianceArrays,
    coupling: JointCoupling,
    rotation: RotationArrays,
    normals: NormalArrays,
    scaling: wp.array[real],
    active: wp.array[int],
    # out
    contacts_out: ContactArrays,
):
    """Write the displacement of each contact per its own force: by soft bodies, joints, free rotations and normals."""
    w, c = wp.tid()
    k = w * topology.contacts + c
    if active[w] == 0 or contacts_out.listed[k] == 0:
        return
    skin = real(0.0)
    if c >= topology.solids or contacts_out.shared[k] == 1:
        skin = skin_of(topology, contacts_out.node[k])
    contacts_out.skin[k] = skin
    contacts_out.borne[k] = int(skin > real(0.0) and moves_with_bones(topology, contacts_out, k))
    columns = columns_of(topology, contacts_out, compliance, k)
    soft = compliant(topology, contacts_out, compliance, columns, contacts_out.weight[k], k) / scaling[w]
    K = soft * wp.identity(n=3, dtype=real)
    for j in range(places_of(coupling, k)):
        m = k * coupling.width + j
        K += wp.outer(coupling.jacobian[m], coupling.response[m])
    if rotation.count > 0:
        K += rotated(rotation, contacts_out, w, k)
    if normals.count > 0:
        K += lifting(normals, contacts_out, w, k)
    contacts_out.response[k] = K
    contacts_out.inverse[k] = wp.inverse(K + skin * wp.identity(n=3, dtype=real))
    contacts_out.own[k] = skin + largest_row(K)
