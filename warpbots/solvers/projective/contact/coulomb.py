"""Coulomb's law at contacts between nodes and what they touch, solved for and not approximated.

A contact is a weighted sum of displacements u = sum a_k u_k of up to four nodes: one that touches an obstacle, a vertex
and a face, two edges. With its distance phi and normal n where the step ends, and q = u - n (n . u) + phi n, the force
lambda of the contact [N] obeys the law if, for any w > 0,

    lambda = l(q + c lambda - w lambda),   l(f) = (constrain(f) - f) / w,

with Coulomb's law `constrain` of `warpbots.contact` for displacements in the place of velocities (Qiao et al. 2021,
section 5; Ly et al. 2020, "Projective dynamics with dry frictional contact").

The compliance c of the contact itself is 0 for flesh on an obstacle. Where several contacts hold the same matter, as
between soft surfaces and under bones, they could share a force in many ways, and c, a hundredth of the compliance of
a node, says in which.

Forces are unknowns of the iteration of a step, beside displacements. After every global step they are found anew
(`gauss_seidel`). Contacts move one another through the compliance C = A^-1 of the global matrix: a change of the force
on node j moves node i by C_ij. A column of C is computed when its node touches, and kept as long as there is room
(`compliance`). Through joints of bones contacts move one another as well, by `reach` and `reply`, and as bodies turn
freely, by `free_rotation`.

The adjoint is the same iteration transposed. With B_k = dl/du_k and L = dl/dlambda of every contact it solves

    H a = u* + sum B_k^T nu + (d/du_k sum_j a_j lambda . a)^T,   nu = sum a_k a + L^T nu.
"""

import warp as wp

from warpbots.contact import CODES, constrain
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.free_rotation import TurningArrays, body_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays, ask

__all__ = [
    "MeetingArrays",
    "ReachArrays",
    "TouchArrays",
    "compliant",
    "gather_kernel",
    "law",
    "link",
    "need_kernel",
    "own_kernel",
    "push_kernel",
]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)
_constrain = constrain(3)
_SLIP, _SEPARATE = wp.constant(CODES["slip"]), wp.constant(CODES["separate"])  # sticky comes before slip


@wp.struct
class TouchArrays:
    """What may touch, the same in all worlds.

    nodes: Nodes of one world, and vertices of shells after them.
    first: Entry of the first contact in a point of the iteration of one world.
    stride: Entries of such a point: nodes and shells, joints, contacts.
    contacts: Contacts of one world that there is room for: of nodes, then of spots with obstacles, then of pairs.
    solids: Contacts with obstacles among them.
    point: Nodes of what touches obstacles: such a node, or the corners of a spot, -1 for none, shape (points,).
    share: Their weights [1], likewise.
    node: Nodes and vertices of shells that may touch, shape (n,).
    skin: What they add to the compliance of a contact that shares its force with others [m/N], shape (n,).
    row: Their rows in the factored matrix, -1 for those bound to bones, shape (n,).
    place: Number of a node among them, -1 for one that is fixed or inside, shape (nodes,).
    spot: First corner of a spot at such a node, one more for the end, shape (n + 1,).
    corner: These corners, four times the number of a spot and the number of its corner.
    """

    nodes: int
    first: int
    stride: int
    contacts: int
    solids: int
    point: wp.array[wp.vec4i]
    share: wp.array[_vec4]
    node: wp.array[int]
    skin: wp.array[real]
    row: wp.array[int]
    place: wp.array[int]
    spot: wp.array[int]
    corner: wp.array[int]


@wp.struct
class MeetingArrays:
    """Contacts as they are at a point of the iteration, all worlds in one row; shape (worlds * contacts,) but some.

    pressed: 1 for a world that iterates and has contacts that count, shape (worlds,).
    any: Number of such worlds, shape (1,).
    listed: 1 for a contact that counts.
    touched: 1 for a contact with an obstacle that was closed when the step began.
    shared: 1 for a contact with an obstacle that may share its force with others: at a bone, or in a corner.
    node: Nodes of a contact, -1 for none.
    weight: Their weights a_k [1].
    distance: Distance phi at the end of the step [m].
    normal: Outward normal n there.
    curvature: Its derivative for an obstacle [1/m].
    condition: Code of the condition.
    friction: Coulomb coefficient [1].
    extra: Coefficient of what sticks less that of what slides [1].
    skin: Compliance c of the contact itself [m/N].
    response: How a contact moves with a force of its own [m/N], without its skin.
    own: How far it does with its skin at the most, or further [m/N]: the w of its law.
    order: Contacts that count, one after the other.
    count: Number of them, shape (worlds,).
    parts: Parts of the contacts of a world, each of which one thread puts in order.
    part: Number of contacts that count in a part, shape (worlds * parts,).
    gap: Their q [m], in order; in the adjoint their sum a_k a.
    by_displacement: dl/dq, or B of a contact with an obstacle [N/m].
    by_node: B_k of each node [N/m], shape (worlds * contacts * 4,).
    by_force: L [1].
    pull: Force on each node, or what the adjoint has in its place, shape (worlds * contacts * 4,).
    head: First corner of a pair at a node that may touch, -1 for none, shape (worlds * n,).
    tail: The last one, likewise.
    next: The corner after one, -1 for none, shape (worlds * contacts * 4,).
    """

    pressed: wp.array[int]
    any: wp.array[int]
    listed: wp.array[int]
    touched: wp.array[int]
    shared: wp.array[int]
    node: wp.array[wp.vec4i]
    weight: wp.array[_vec4]
    distance: wp.array[real]
    normal: wp.array[_vec]
    curvature: wp.array[_mat]
    condition: wp.array[int]
    friction: wp.array[real]
    extra: wp.array[real]
    skin: wp.array[real]
    response: wp.array[_mat]
    own: wp.array[real]
    order: wp.array[int]
    count: wp.array[int]
    parts: int
    part: wp.array[int]
    gap: wp.array[_vec]
    by_displacement: wp.array[_mat]
    by_node: wp.array[_mat]
    by_force: wp.array[_mat]
    pull: wp.array[_vec]
    head: wp.array[int]
    tail: wp.array[int]
    next: wp.array[int]


@wp.struct
class ReachArrays:
    """How contacts and joints of bones move one another, all worlds in one row.

    freedom: Number of velocities of joints, 0 without bones.
    reach: Displacement of a contact per displacement of each joint [m, m/rad], shape (worlds * contacts * freedom,).
    reply: Displacement of each joint per force of a contact [1/N, rad/N], likewise.
    motion: Displacement of the joints in a sweep, shape (worlds * freedom,).
    """

    freedom: int
    reach: wp.array[_vec]
    reply: wp.array[_vec]
    motion: wp.array[real]


@wp.func
def law(q: _vec, n: _vec, lam: _vec, w: real, c: real, condition: int, mu: real, extra: real, touched: int):
    """l(q + c lambda - w lambda): what holds a node at the surface, and back on it.

    A sticky or slippery surface never lets go of what has been on it since the step began. What comes to it in the step
    slides: a force along the surface that sets in with a jump would leave steps without an end.
    """
    f = q - (w - c) * lam
    depth = -wp.dot(f, n)
    l = _vec()
    law = condition
    if condition <= _SLIP and touched == 0:
        law = _SEPARATE
    if depth > real(0.0) or law <= _SLIP:
        l = (_constrain(f, n, depth, law, mu, extra) - f) / w
    return l


@wp.func
def place_of(touch: TouchArrays, node: int):
    """Number of a node of a contact among those that may touch and move, -1 for none."""
    place = int(-1)
    if node >= 0:
        place = touch.place[node]
    return place


@wp.func
def compliant(touch: TouchArrays, meeting: MeetingArrays, compliance: ComplianceArrays, c: int, d: int):
    """How far the contact d moves per force of the contact c [m/N]: sum a_i C_ij b_j."""
    total = real(0.0)
    for p in range(4):
        i = place_of(touch, meeting.node[c][p])
        column = int(-1)
        if i >= 0:
            column = compliance.column[i]
        if column >= 0:
            for q in range(4):
                j = place_of(touch, meeting.node[d][q])
                if j >= 0:
                    total += meeting.weight[c][p] * meeting.weight[d][q] * compliance.value[column, j]
    return total


@wp.func
def link(touch: TouchArrays, meeting: MeetingArrays, w: int, c: int, node: wp.vec4i):
    """Put the corners of a pair at the end of the lists of their nodes."""
    first = 4 * w * touch.contacts
    for q in range(4):
        i = place_of(touch, node[q])
        if i >= 0:
            i += w * touch.node.shape[0]
            corner = 4 * c + q
            last = meeting.tail[i]
            if last < 0:
                meeting.head[i] = corner
            else:
                meeting.next[first + last] = corner
            meeting.tail[i] = corner
            meeting.next[first + corner] = -1


@wp.kernel(enable_backward=False)
def push_kernel(touch: TouchArrays, active: wp.array[int], z: wp.array[NODE], meeting_out: MeetingArrays):
    """Forces of contacts on their nodes: a_k lambda."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if active[w] == 0 or meeting_out.listed[k] == 0:
        return
    lam = at(z, w * touch.stride + touch.first + c)
    for q in range(4):
        meeting_out.pull[4 * k + q] = meeting_out.weight[k][q] * lam


@wp.kernel(enable_backward=False)
def gather_kernel(touch: TouchArrays, active: wp.array[int], meeting: MeetingArrays, lacking_out: wp.array[NODE]):
    """Add to the imbalance of forces at a node what its contacts push, in their order."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    first = w * touch.contacts
    points = wp.max(touch.point.shape[0], 1)
    solids = touch.solids / points
    j = w * touch.stride + touch.node[i]
    total = lacking_out[j]
    for c in range(i * solids, (i + 1) * solids):
        if meeting.listed[first + c] == 1:
            total += packed(meeting.pull[4 * (first + c)])
    if solids > 0:
        for k in range(touch.spot[i], touch.spot[i + 1]):
            spot = (touch.node.shape[0] + touch.corner[k] / 4) * solids
            for c in range(spot, spot + solids):
                if meeting.listed[first + c] == 1:
                    total += packed(meeting.pull[4 * (first + c) + touch.corner[k] % 4])
    corner = meeting.head[w * touch.node.shape[0] + i]
    while corner >= 0:
        if meeting.listed[first + corner / 4] == 1:
            total += packed(meeting.pull[4 * first + corner])
        corner = meeting.next[4 * first + corner]
    lacking_out[j] = total


@wp.kernel(enable_backward=False)
def need_kernel(touch: TouchArrays, active: wp.array[int], meeting: MeetingArrays, compliance_out: ComplianceArrays):
    """Ask for columns of the compliance for nodes of contacts that count; those that move with bones have none."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if active[w] == 0 or meeting.listed[k] == 0:
        return
    for p in range(4):
        i = place_of(touch, meeting.node[k][p])
        if i >= 0 and touch.row[i] >= 0:
            ask(compliance_out, i)


@wp.func
def turned(turning: TurningArrays, meeting: MeetingArrays, w: int, k: int):
    """How a contact moves with a force of its own as bodies turn [m/N]: the sum of [b]^T G [b] of its bodies."""
    total = wp.mat33d()
    for p in range(4):
        body = body_of(turning, meeting.node[k][p])
        arm = _vec()
        for q in range(4):
            if body >= 0 and body_of(turning, meeting.node[k][q]) == body:
                if q < p:
                    body = int(-1)  # it has been counted
                else:
                    arm += meeting.weight[k][q] * turning.arm[w * turning.nodes + meeting.node[k][q]]
        if body >= 0:
            B = wp.skew(wp.vec3d(arm))
            total += wp.transpose(B) * turning.gain[w * turning.count + body] * B
    return _mat(total)


@wp.func
def largest_row(K: _mat):
    """The largest sum of sizes in a row, which no eigenvalue is above."""
    most = real(0.0)
    for r in range(3):
        most = wp.max(most, wp.abs(K[r, 0]) + wp.abs(K[r, 1]) + wp.abs(K[r, 2]))
    return most


@wp.kernel(enable_backward=False)
def own_kernel(
    touch: TouchArrays, compliance: ComplianceArrays, reach: ReachArrays, turning: TurningArrays,
    scaling: wp.array[real], active: wp.array[int], meeting_out: MeetingArrays,
):  # fmt: skip
    """How each contact moves with a force of its own: through the flesh, joints, and bodies that turn."""
    w, c = wp.tid()
    k = w * touch.contacts + c
    if active[w] == 0 or meeting_out.listed[k] == 0:
        return
    skin = real(0.0)
    for p in range(4):
        i = place_of(touch, meeting_out.node[k][p])
        if i >= 0 and (c >= touch.solids or meeting_out.shared[k] == 1):
            skin += touch.skin[i]
    meeting_out.skin[k] = skin
    K = compliant(touch, meeting_out, compliance, k, k) / scaling[w] * wp.identity(n=3, dtype=real)
    for j in range(reach.freedom):
        m = k * reach.freedom + j
        K += wp.outer(reach.reach[m], reach.reply[m])
    if turning.count > 0:
        K += turned(turning, meeting_out, w, k)
    meeting_out.response[k] = K
    meeting_out.own[k] = skin + largest_row(K)
