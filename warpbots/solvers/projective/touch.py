"""Contact of nodes with obstacles: Signorini's condition and Coulomb's law, solved for and not approximated.

A contact is a node of a surface and a solid. With the displacement u of the node in a step, the distance phi and the
normal n of the solid where the step ends, and q = u - n (n . u) + phi n, the force lambda of the contact [N] obeys the
law if, for any w > 0,

    lambda = l(q - w lambda),   l(f) = (constrain(f) - f) / w,

with Coulomb's law `constrain` of `warpbots.contact` for displacements in the place of velocities (Qiao et al. 2021,
section 5; Ly et al. 2020, "Projective dynamics with dry frictional contact").

Forces are unknowns of the iteration of a step, beside displacements. After every global step they are found anew,
contact after contact, each seeing what the others do through the compliance C = A^-1 of the global matrix: a change of
the force on node j moves node i by C_ij. A column of C is computed when its node touches for the first time, and kept.

The adjoint is the same iteration transposed. With B = dl/du and L = dl/dlambda of every contact it solves

    H a = u* + sum B^T nu,   nu = a + L^T nu.
"""

import warp as wp

from warpbots.contact import CODES, constrain
from warpbots.contact.solid import Solids, solid_distance
from warpbots.math import NODE, matrix, real, vector
from warpbots.solvers.projective.factor import FactorArrays
from warpbots.solvers.projective.nodes import packed
from warpbots.solvers.projective.tets import at

__all__ = [
    "ComplianceArrays",
    "MeetingArrays",
    "TouchArrays",
    "adj_parameters_kernel",
    "adj_sweep_kernel",
    "begin_kernel",
    "comply_kernel",
    "differentiate_kernel",
    "meet_kernel",
    "push_kernel",
    "sweep_kernel",
    "weigh_kernel",
]

_vec, _mat = vector(3), matrix(3)
_constrain = constrain(3)
_SWEEPS = wp.constant(30)
_SETTLED = wp.constant(real(0.01))  # share of the first change in a step below which contacts are not swept again
_SLIP, _SEPARATE = wp.constant(CODES["slip"]), wp.constant(CODES["separate"])  # sticky comes before slip


@wp.struct
class TouchArrays:
    """Contacts; what may differ from world to world has all worlds in one row.

    nodes: Nodes of one world.
    stride: Entries of a point of the iteration of one world: its nodes, then its contacts.
    solids: Number of solids.
    solid: The solids.
    obstacle: Obstacle of a solid, shape (solids,).
    obstacles: Number of obstacles.
    condition: Code of the condition of an obstacle, shape (obstacles,).
    extra: Coefficient of what sticks less that of what slides [1], shape (obstacles,).
    friction: Coulomb coefficient [1], shape (worlds * obstacles,).
    node: Nodes that may touch, shape (n,); contact c is of node c / solids and solid c % solids.
    row: Their rows in the factored matrix, shape (n,).
    """

    nodes: int
    stride: int
    solids: int
    solid: Solids
    obstacle: wp.array[int]
    obstacles: int
    condition: wp.array[int]
    extra: wp.array[real]
    friction: wp.array[real]
    node: wp.array[int]
    row: wp.array[int]


@wp.struct
class MeetingArrays:
    """Contacts as they are at a point of the iteration, all worlds in one row.

    listed: 1 for a contact that counts, shape (worlds * contacts,).
    distance: Distance phi at the end of the step [m], likewise.
    normal: Outward normal n there, likewise.
    curvature: Its derivative [1/m], likewise.
    touched: 1 for a contact that was closed when the step began, likewise.
    order: Contacts that count, one after the other, likewise.
    gap: Their q [m], in order; in the adjoint their a.
    by_displacement: B of each [N/m], in order.
    by_force: L of each [1], in order.
    """

    listed: wp.array[int]
    distance: wp.array[real]
    normal: wp.array[_vec]
    curvature: wp.array[_mat]
    touched: wp.array[int]
    order: wp.array[int]
    gap: wp.array[_vec]
    by_displacement: wp.array[_mat]
    by_force: wp.array[_mat]


@wp.struct
class ComplianceArrays:
    """Columns of the inverse of the global matrix, for nodes that may touch.

    known: 1 for a column that was computed, shape (n,).
    value: Displacement of the second node per force on the first [m/N], shape (n * n,).
    work: A column on its way, shape (rows,).
    """

    known: wp.array[int]
    value: wp.array[real]
    work: wp.array[real]


@wp.func
def law(q: _vec, n: _vec, lam: _vec, w: real, condition: int, mu: real, extra: real, touched: int):
    """l(q - w lambda): what holds a node at the surface, and back on it.

    A sticky or slippery surface never lets go of what has been on it since the step began. What comes to it in the step
    slides: a force along the surface that sets in with a jump would leave steps without an end.
    """
    f = q - w * lam
    depth = -wp.dot(f, n)
    l = _vec()
    law = condition
    if condition <= _SLIP and touched == 0:
        law = _SEPARATE
    if depth > real(0.0) or law <= _SLIP:
        l = (_constrain(f, n, depth, law, mu, extra) - f) / w
    return l


@wp.func
def law_of_end(
    T: _vec, u: _vec, n: _vec, phi: real, lam: _vec, w: real, condition: int, mu: real, extra: real, touched: int
):  # fmt: skip
    """T . l at the end u of a step."""
    return wp.dot(T, law(u - wp.dot(n, u) * n + phi * n, n, lam, w, condition, mu, extra, touched))


@wp.func
def distance_to(touch: TouchArrays, s: int, x: _vec):
    """Distance, normal and curvature of a solid."""
    R = touch.solid.rotation[s]
    y = wp.vec3d(wp.float64(x[0]), wp.float64(x[1]), wp.float64(x[2])) - touch.solid.position[s]
    d, n, C = solid_distance(touch.solid, s, wp.transpose(R) @ y)
    n = R @ n
    C = R @ C @ wp.transpose(R)
    K = _mat()
    for i in range(3):
        for j in range(3):
            K[i, j] = real(C[i, j])
    return real(d), _vec(real(n[0]), real(n[1]), real(n[2])), K


@wp.func
def displacement_of(touch: TouchArrays, z: wp.array[NODE], f: wp.array[NODE], w: int, c: int):
    """Displacement of the node of a contact after a correction."""
    i = w * touch.stride + touch.node[c / touch.solids]
    return at(z, i) + at(f, i)


@wp.kernel(enable_backward=False)
def begin_kernel(touch: TouchArrays, near: real, x: wp.array[_vec], meeting_out: MeetingArrays, z_out: wp.array[NODE]):
    """Which contacts are closed when a step begins; there are no forces yet."""
    w, c = wp.tid()
    contacts = touch.node.shape[0] * touch.solids
    d, _n, _C = distance_to(touch, c % touch.solids, x[w * touch.nodes + touch.node[c / touch.solids]])
    meeting_out.touched[w * contacts + c] = wp.where(d <= near, 1, 0)
    z_out[w * touch.stride + touch.nodes + c] = NODE()


@wp.kernel(enable_backward=False)
def push_kernel(touch: TouchArrays, active: wp.array[int], force: wp.array[NODE], lacking_out: wp.array[NODE]):
    """Add forces of contacts to the imbalance of forces at their nodes."""
    w, k = wp.tid()
    if active[w] == 0:
        return
    i = w * touch.stride + touch.node[k]
    total = at(lacking_out, i)
    for s in range(touch.solids):
        total += at(force, w * touch.stride + touch.nodes + k * touch.solids + s)
    lacking_out[i] = packed(total)


@wp.kernel(enable_backward=False)
def meet_kernel(
    touch: TouchArrays, active: wp.array[int], x: wp.array[_vec], z: wp.array[NODE], f: wp.array[NODE],
    meeting_out: MeetingArrays,
):  # fmt: skip
    """Where solids are at the end of the step, and which contacts count: those with a force or about to have one."""
    w, c = wp.tid()
    if active[w] == 0:
        return
    k = w * touch.node.shape[0] * touch.solids + c
    s = c % touch.solids
    u = displacement_of(touch, z, f, w, c)
    d, n, C = distance_to(touch, s, x[w * touch.nodes + touch.node[c / touch.solids]] + u)
    meeting_out.distance[k] = d
    meeting_out.normal[k] = n
    meeting_out.curvature[k] = C
    lam = at(z, w * touch.stride + touch.nodes + c)
    condition = touch.condition[touch.obstacle[s]]
    bound = meeting_out.touched[k] == 1 and condition <= _SLIP
    meeting_out.listed[k] = int(bound or d < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.kernel(enable_backward=False)
def comply_kernel(
    touch: TouchArrays, factor: FactorArrays, worlds: int, meeting: MeetingArrays, compliance_out: ComplianceArrays
):  # fmt: skip
    """Columns of the compliance that are needed for the first time; by one thread."""
    n = touch.node.shape[0]
    rows = factor.node.shape[0]
    for k in range(n):
        needed = int(0)
        if compliance_out.known[k] == 0:
            for w in range(worlds):
                for s in range(touch.solids):
                    needed = wp.max(needed, meeting.listed[(w * n + k) * touch.solids + s])
        if needed == 1:
            for j in range(rows):
                compliance_out.work[j] = real(0.0)
            compliance_out.work[touch.row[k]] = real(1.0)
            for j in range(touch.row[k], rows):
                y = compliance_out.work[j]
                if y != real(0.0):
                    for p in range(factor.start[j], factor.start[j + 1]):
                        i = factor.row[p]
                        compliance_out.work[i] = compliance_out.work[i] - factor.value[p] * y
            for m in range(rows):
                j = rows - 1 - m
                y = factor.inverse[j] * compliance_out.work[j]
                for p in range(factor.start[j], factor.start[j + 1]):
                    y -= factor.value[p] * compliance_out.work[factor.row[p]]
                compliance_out.work[j] = y
            for i in range(n):
                compliance_out.value[k * n + i] = compliance_out.work[touch.row[i]]
            compliance_out.known[k] = 1


@wp.func
def list_contacts(touch: TouchArrays, meeting: MeetingArrays, w: int):
    """Write the contacts of a world that count in a row; their number."""
    contacts = touch.node.shape[0] * touch.solids
    count = int(0)
    for c in range(contacts):
        if meeting.listed[w * contacts + c] == 1:
            meeting.order[w * contacts + count] = c
            count += 1
    return count


@wp.func
def spread(
    touch: TouchArrays, meeting: MeetingArrays, compliance: ComplianceArrays, w: int, count: int, k: int, change: _vec
):  # fmt: skip
    """Move the nodes of all contacts that count by what a change of the force on the k-th node does."""
    n = touch.node.shape[0]
    first = w * n * touch.solids
    for j in range(count):
        other = meeting.order[first + j] / touch.solids
        meeting.gap[first + j] = meeting.gap[first + j] + compliance.value[k * n + other] * change


@wp.kernel(enable_backward=False)
def sweep_kernel(
    touch: TouchArrays, compliance: ComplianceArrays, scaling: wp.array[real], active: wp.array[int],
    z: wp.array[NODE], meeting_out: MeetingArrays, f_out: wp.array[NODE],
):  # fmt: skip
    """Find forces that obey the law, contact after contact, and write how they change."""
    w = wp.tid()
    if active[w] == 0:
        return
    n = touch.node.shape[0]
    first = w * n * touch.solids
    start = w * touch.stride + touch.nodes
    count = list_contacts(touch, meeting_out, w)
    for c in range(n * touch.solids):
        f_out[start + c] = NODE()
    for i in range(count):
        c = meeting_out.order[first + i]
        u = displacement_of(touch, z, f_out, w, c)
        m = meeting_out.normal[first + c]
        meeting_out.gap[first + i] = u - wp.dot(m, u) * m + meeting_out.distance[first + c] * m
    inverse = real(1.0) / scaling[w]
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        for i in range(count):
            c = meeting_out.order[first + i]
            k = c / touch.solids
            o = touch.obstacle[c % touch.solids]
            compliant = inverse * compliance.value[k * n + k]
            lam = at(z, start + c) + at(f_out, start + c)
            l = law(
                meeting_out.gap[first + i], meeting_out.normal[first + c], lam, compliant, touch.condition[o],
                touch.friction[w * touch.obstacles + o], touch.extra[o], meeting_out.touched[first + c],
            )  # fmt: skip
            change = l - lam
            f_out[start + c] = f_out[start + c] + packed(change)
            size = wp.max(size, compliant * wp.length(change))
            spread(touch, meeting_out, compliance, w, count, k, inverse * change)
        if sweep == 0:
            largest = size
        if size <= _SETTLED * largest:
            break


@wp.kernel(enable_backward=False)
def differentiate_kernel(
    touch: TouchArrays, compliance: ComplianceArrays, scaling: wp.array[real], z: wp.array[NODE],
    meeting_out: MeetingArrays,
):  # fmt: skip
    """B = dl/du and L = dl/dlambda of every contact that counts, where the displacements and forces are `z`."""
    w, c = wp.tid()
    n = touch.node.shape[0]
    k = w * n * touch.solids + c
    if meeting_out.listed[k] == 0:
        return
    node = c / touch.solids
    o = touch.obstacle[c % touch.solids]
    u = at(z, w * touch.stride + touch.node[node])
    lam = at(z, w * touch.stride + touch.nodes + c)
    B = _mat()
    L = _mat()
    for r in range(3):
        T = _vec()
        T[r] = real(1.0)
        _T, u_adj, n_adj, d_adj, lam_adj, _w, _c, _mu, _e, _t = wp.grad(law_of_end)(
            T, u, meeting_out.normal[k], meeting_out.distance[k], lam, compliance.value[node * n + node] / scaling[w],
            touch.condition[o], touch.friction[w * touch.obstacles + o], touch.extra[o], meeting_out.touched[k],
        )  # fmt: skip
        row = u_adj + meeting_out.curvature[k] @ n_adj + d_adj * meeting_out.normal[k]
        for i in range(3):
            B[r, i] = row[i]
            L[r, i] = lam_adj[i]
    meeting_out.by_displacement[k] = B
    meeting_out.by_force[k] = L


@wp.kernel(enable_backward=False)
def weigh_kernel(
    touch: TouchArrays, active: wp.array[int], meeting: MeetingArrays, z: wp.array[NODE], force_out: wp.array[NODE]
):  # fmt: skip
    """B^T nu of every contact: what the adjoint has in the place of its force."""
    w, c = wp.tid()
    if active[w] == 0:
        return
    k = w * touch.node.shape[0] * touch.solids + c
    i = w * touch.stride + touch.nodes + c
    g = _vec()
    if meeting.listed[k] == 1:
        g = wp.transpose(meeting.by_displacement[k]) @ at(z, i)
    force_out[i] = packed(g)


@wp.kernel(enable_backward=False)
def adj_sweep_kernel(
    touch: TouchArrays, compliance: ComplianceArrays, scaling: wp.array[real], active: wp.array[int],
    z: wp.array[NODE], meeting_out: MeetingArrays, f_out: wp.array[NODE],
):  # fmt: skip
    """Find nu = a + L^T nu of all contacts, one after the other, and write how they change."""
    w = wp.tid()
    if active[w] == 0:
        return
    n = touch.node.shape[0]
    first = w * n * touch.solids
    start = w * touch.stride + touch.nodes
    count = list_contacts(touch, meeting_out, w)
    for c in range(n * touch.solids):
        f_out[start + c] = NODE()
    for i in range(count):
        meeting_out.gap[first + i] = displacement_of(touch, z, f_out, w, meeting_out.order[first + i])
    inverse = real(1.0) / scaling[w]
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        for i in range(count):
            c = meeting_out.order[first + i]
            nu = at(z, start + c) + at(f_out, start + c)
            change = meeting_out.gap[first + i] + wp.transpose(meeting_out.by_force[first + c]) @ nu - nu
            f_out[start + c] = f_out[start + c] + packed(change)
            size = wp.max(size, wp.length(change))
            force = wp.transpose(meeting_out.by_displacement[first + c]) @ change
            spread(touch, meeting_out, compliance, w, count, c / touch.solids, inverse * force)
        if sweep == 0:
            largest = size
        if size <= _SETTLED * largest:
            break


@wp.kernel(enable_backward=False)
def adj_parameters_kernel(
    touch: TouchArrays, compliance: ComplianceArrays, scaling: wp.array[real], z: wp.array[NODE],
    meeting: MeetingArrays, adjoint: wp.array[NODE], x_adj_out: wp.array[_vec], friction_adj_out: wp.array[real],
):  # fmt: skip
    """Gradients to where a node started and to friction: (dl/dx)^T nu and (dl/dmu)^T nu."""
    w, c = wp.tid()
    n = touch.node.shape[0]
    k = w * n * touch.solids + c
    if meeting.listed[k] == 0:
        return
    node = c / touch.solids
    o = touch.obstacle[c % touch.solids]
    i = w * touch.stride + touch.nodes + c
    _T, _u, n_adj, d_adj, _l, _w, _c, mu_adj, _e, _t = wp.grad(law_of_end)(
        at(adjoint, i), at(z, w * touch.stride + touch.node[node]), meeting.normal[k], meeting.distance[k], at(z, i),
        compliance.value[node * n + node] / scaling[w], touch.condition[o], touch.friction[w * touch.obstacles + o],
        touch.extra[o], meeting.touched[k],
    )  # fmt: skip
    wp.atomic_add(
        x_adj_out, w * touch.nodes + touch.node[node], meeting.curvature[k] @ n_adj + d_adj * meeting.normal[k]
    )
    if friction_adj_out:
        wp.atomic_add(friction_adj_out, w * touch.obstacles + o, mu_adj)
