"""Forces of many contacts of which all but a few stick: those are eliminated, the others solved for together.

A contact that sticks has no displacement beyond its skin, in any direction, and the compliance C of matter is the same
for three directions. So the changes d of the forces of contacts that stick (T) obey, beside the others (S),

    (C_TT + c) d_T + C_TS d_S + J_T y = -q_T - c lambda_T,   y = R_T^T d_T + R_S^T d_S,

with displacements y of joints and rotations of unconstrained bodies, the displacement J of each contact per y, and the
reply R of y to each force. One Cholesky factor of the size of T serves three directions, all joints and all of S. It
leaves one equation for each entry of y, and for S a system of the form of `few_contacts`:

    u_S = (C_SS - C_ST X_S) d_S + C_ST X_q + (J_S - C_ST X_J) y,   X = (C_TT + c)^-1 [-q_T - c lambda_T, C_TS, J_T].

A contact is taken to stick if its last force is within the cone of friction, or zero. If its new force leaves the cone,
the contact joins S, and the equations are solved again; so the end obeys the law at every contact. Where more contacts
slide or open than S has room for, or where S has no solution, all contacts are swept. A factor is kept until an entry
of its matrix changes; results do not depend on what has been kept.

Sweeps need hundreds of passes here, as all contacts share the few displacements y (`docs/design/projective-bones.md`).
"""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, real, vector
from warpbots.numerics.simd import add_multiple_of, solve_rows
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    entry_of,
    places_in,
)
from warpbots.solvers.projective.contact.few_contacts import (
    ForceSystem,
    change_of,
    find_adjoint_changes,
    find_changes,
)
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.contact.sticking_elimination import (
    StickingArrays,
    coupled,
    eliminate_sticking,
    first_entry,
    list_members,
    reply_of,
    width_of,
)
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = ["adj_solve_sticking_kernel", "solve_sticking_kernel"]

_vec = vector(3)
_ROUNDS = wp.constant(8)
_FRICTION = wp.constant(CODES["friction"])
_INSIDE = wp.constant(real(1.0 - 1e-5))  # part of the cone: the force of a contact that slides is at its border
_SAME = wp.constant(real(1e-5))  # by which a derivative that is a multiple of the identity may differ from it


@wp.func
def write_sticking_forces(
    topology: ContactTopology, contacts: ContactArrays, sticking: StickingArrays, z: wp.array[NODE],
    f: wp.array[NODE], w: int, swept: int, n: int, m: int, adjoint: bool,
):  # fmt: skip
    """Write X for q and the forces, and y without forces of S."""
    right = 4 * w * sticking.side
    for i in range(n):
        e = entry_of(topology.contacts, swept, w, sticking.member[w * sticking.side + i])
        c = contacts.order[e]
        k = w * topology.contacts + c
        lam = vec3(at(z, w * topology.stride + topology.first + c) + at(f, w * topology.stride + topology.first + c))
        skin = scalar(contacts.skin[k])
        missing = -vec3(contacts.gap[e]) - skin * lam
        if adjoint:
            missing = vec3(contacts.gap[e]) - skin / scalar(contacts.own[k]) * lam
        for a in range(3):
            sticking.right[right + 4 * i + a] = missing[a]
    solve_rows(sticking.factor, w * sticking.side * sticking.side, sticking.side, sticking.right, right, 4, n)
    y = 2 * w * sticking.joints
    for j in range(2 * m):
        sticking.y[y + j] = scalar(0.0)
    for i in range(n):
        for a in range(3):
            reply = reply_of(sticking, w, i, m) + a * m
            add_multiple_of(sticking.y, y + m, sticking.reply, reply, sticking.right[right + 4 * i + a], m)


@wp.func
def write_remaining_q(
    topology: ContactTopology, contacts: ContactArrays, mutual: wp.array[real], side: int, sticking: StickingArrays,
    system: ForceSystem, scaling: real, w: int, swept: int, n: int, few: int, m: int, adjoint: bool,
):  # fmt: skip
    """Write y without forces of S, and q of S beyond the contacts that stick and the joints.

    In the adjoint, forces are minus the products B^T times nu that move a contact.
    """
    right = 4 * w * sticking.side
    y = 2 * w * sticking.joints
    joint = first_entry(sticking, sticking.joint, w)
    columns = 2 * m + 3 * few
    for i in range(m):
        for j in range(m):
            inverse = sticking.joint[joint + i * columns + m + j]
            sticking.y[y + i] = sticking.y[y + i] + inverse * sticking.y[y + m + j]
    for s in range(few):
        number = sticking.member[w * sticking.side + n + s]
        way = first_entry(sticking, sticking.way, w) + s * 3 * m
        moved = vec3()
        for i in range(n):
            share = coupled(mutual, side, swept, scaling, w, number, sticking.member[w * sticking.side + i])
            moved += share * change_at(sticking.right, right + 4 * i)
        for a in range(3):
            for j in range(m):
                moved[a] += sticking.way[way + a * m + j] * sticking.y[y + j]
        q = vec3(contacts.gap[system.entry[w * system.side + s]])
        system.q[w * system.side + s] = q + wp.where(adjoint, -moved, moved)


@wp.func
def write_changes(sticking: StickingArrays, system: ForceSystem, w: int, n: int, few: int, m: int):
    """Write d_T into `right`; `ForceSystem.change` has d_S."""
    width = width_of(few, m)
    start = first_entry(sticking, sticking.solution, w)
    columns = 2 * m + 3 * few
    joint = first_entry(sticking, sticking.joint, w)
    right = 4 * w * sticking.side
    change = w * 3 * system.side
    y = 2 * w * sticking.joints
    for j in range(m):
        at_row = joint + j * columns + 2 * m
        for b in range(3):
            for s in range(few):
                reply = sticking.joint[at_row + b * few + s] * system.change[change + 3 * s + b]
                sticking.y[y + j] = sticking.y[y + j] + reply
    for i in range(n):
        row = start + i * width
        for a in range(3):
            d = sticking.right[right + 4 * i + a]
            for s in range(few):
                d -= sticking.solution[row + s] * system.change[change + 3 * s + a]
            for j in range(m):
                d -= sticking.solution[row + few + a * m + j] * sticking.y[y + j]
            sticking.right[right + 4 * i + a] = d


@wp.func
def change_at(right: wp.array[scalar], row: int):
    """The first three entries of a row of `right` as a vector."""
    return vec3(right[row], right[row + 1], right[row + 2])


@wp.func
def write_remaining(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, sticking: StickingArrays,
    system: ForceSystem, scaling: real, z: wp.array[NODE], f: wp.array[NODE], w: int, swept: int, n: int, few: int,
    m: int, adjoint: bool,
):  # fmt: skip
    """Write q of the contacts that are not eliminated."""
    write_sticking_forces(topology, contacts, sticking, z, f, w, swept, n, m, adjoint)
    write_remaining_q(
        topology, contacts, compliance.mutual, compliance.side, sticking, system, scaling, w, swept, n, few, m,
        adjoint,
    )  # fmt: skip


@wp.func
def is_held(n: _vec, lam: _vec, mu: real):
    """Whether a force is within the cone of friction."""
    depth = wp.dot(lam, n)
    return depth > real(0.0) and wp.length(lam - depth * n) <= mu * depth


@wp.func
def are_tied(topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, swept: int):
    """Whether joints move contacts that matter couples; else contacts that move only with bones are solved apart."""
    tied = bool(False)
    if coupling.freedom > 0:
        for number in range(swept):
            k = w * topology.contacts + contacts.order[w * topology.contacts + number]
            tied = tied or places_in(coupling.span[k]) > 0
    return tied


@wp.func
def extent_of(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays, w: int,
    count: wp.vec2i,
):  # fmt: skip
    """Entries of y, contacts that are solved for together, and the mark of a world whose contacts are solved for."""
    m = 3 * rotation.count
    total = count[0]
    solved = 1 + wp.min(count[1], 1)
    if are_tied(topology, contacts, coupling, w, count[0]):
        m += coupling.freedom
        total += count[1]
        solved = 1
    return m, total, solved


@wp.func
def has_room(sticking: StickingArrays, solved: int, count: int, joints: int):
    """Whether the contacts of a world are eliminated if they stick."""
    return solved == 0 and joints <= sticking.joints and count <= sticking.side


@wp.kernel(enable_backward=False)
def solve_sticking_kernel(
    # model
    topology: ContactTopology,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    coupling: JointCoupling,
    rotation: RotationArrays,
    contacts: ContactArrays,
    # out
    sticking_out: StickingArrays,
    system_out: ForceSystem,
    f_out: wp.array[NODE],
):
    """Solve for the forces of contacts most of which stick, and write their changes."""
    w = wp.tid()
    count = contacts.count[w]
    if active[w] == 0 or count[0] == 0:
        return
    m, total, solved = extent_of(topology, contacts, coupling, rotation, w, count)
    if not has_room(sticking_out, system_out.solved[w], total, m):
        return
    entry = w * topology.stride + topology.first
    for number in range(total):
        c = contacts.order[entry_of(topology.contacts, count[0], w, number)]
        k = w * topology.contacts + c
        lam = at(z, entry + c) + at(f_out, entry + c)
        fresh = wp.dot(lam, lam) == real(0.0)
        held = fresh or is_held(contacts.normal[k], lam, _INSIDE * contacts.friction[k])
        rough = contacts.condition[k] == _FRICTION and contacts.friction[k] > real(0.0)
        sticking_out.sticks[w * sticking_out.side + number] = int(rough and held)
    for _round in range(_ROUNDS):
        n = list_members(sticking_out, w, total)
        few = total - n
        if eliminate_sticking(
            topology, contacts, compliance, coupling, rotation, sticking_out, system_out, scaling[w], w, count[0], n,
            few, m,
        ) == 0:  # fmt: skip
            return
        write_remaining(
            topology, contacts, compliance, sticking_out, system_out, scaling[w], z, f_out, w, count[0], n, few, m,
            False,
        )  # fmt: skip
        if find_changes(topology, contacts, system_out, z, f_out, w, few) == 0:
            return
        write_changes(sticking_out, system_out, w, n, few, m)
        right = 4 * w * sticking_out.side
        left = int(0)
        for i in range(n):
            number = sticking_out.member[w * sticking_out.side + i]
            c = contacts.order[entry_of(topology.contacts, count[0], w, number)]
            k = w * topology.contacts + c
            lam = at(z, entry + c) + at(f_out, entry + c) + _vec(change_at(sticking_out.right, right + 4 * i))
            if not is_held(contacts.normal[k], lam, contacts.friction[k]):
                sticking_out.sticks[w * sticking_out.side + number] = 0
                left += 1
        if left == 0:
            for i in range(n):
                number = sticking_out.member[w * sticking_out.side + i]
                j = entry + contacts.order[entry_of(topology.contacts, count[0], w, number)]
                f_out[j] = f_out[j] + packed(_vec(change_at(sticking_out.right, right + 4 * i)))
            for s in range(few):
                j = entry + contacts.order[system_out.entry[w * system_out.side + s]]
                f_out[j] = f_out[j] + packed(_vec(change_of(system_out, w, s)))
            system_out.solved[w] = solved
            return


@wp.func
def is_multiple(A: mat33):
    """Whether a matrix is a multiple of the identity."""
    mean = wp.trace(A) / scalar(3.0)
    most = scalar(0.0)
    for a in range(3):
        for b in range(3):
            most = wp.max(most, wp.abs(A[a, b] - wp.where(a == b, mean, scalar(0.0))))
    return most <= scalar(_SAME) * wp.abs(mean)


@wp.kernel(enable_backward=False)
def adj_solve_sticking_kernel(
    # model
    topology: ContactTopology,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    coupling: JointCoupling,
    rotation: RotationArrays,
    contacts: ContactArrays,
    # out
    sticking_out: StickingArrays,
    system_out: ForceSystem,
    f_out: wp.array[NODE],
):
    """Solve nu = sum a_k a + L^T nu for nu of contacts most of which stick, and write the changes of nu.

    Where a contact sticks, dl/dq is -1/w and L is 1 - c/w. With the changes w d of nu for these, and -B^T times the
    changes of nu in place of d for the others, the equations are those of the forces, with the right-hand side
    sum a_k a - c/w nu.
    """
    w = wp.tid()
    count = contacts.count[w]
    if active[w] == 0 or count[0] == 0:
        return
    m, total, solved = extent_of(topology, contacts, coupling, rotation, w, count)
    if not has_room(sticking_out, system_out.solved[w], total, m):
        return
    entry = w * topology.stride + topology.first
    n = sticking_out.kept[w]
    if sticking_out.ready[w] == 0:
        for number in range(total):
            k = w * topology.contacts + contacts.order[entry_of(topology.contacts, count[0], w, number)]
            B = mat33(contacts.by_displacement[k])
            sticks = B[0, 0] < scalar(0.0) and is_multiple(B) and is_multiple(mat33(contacts.by_force[k]))
            sticking_out.sticks[w * sticking_out.side + number] = int(sticks)
        n = list_members(sticking_out, w, total)
        if eliminate_sticking(
            topology, contacts, compliance, coupling, rotation, sticking_out, system_out, scaling[w], w, count[0], n,
            total - n, m,
        ) == 0:  # fmt: skip
            return
        sticking_out.ready[w] = 1
    few = total - n
    write_remaining(
        topology, contacts, compliance, sticking_out, system_out, scaling[w], z, f_out, w, count[0], n, few, m, True
    )
    if find_adjoint_changes(topology, contacts, system_out, z, f_out, w, few) == 0:
        return
    for s in range(few):
        j = contacts.order[system_out.entry[w * system_out.side + s]]
        change = change_of(system_out, w, s)
        f_out[entry + j] = f_out[entry + j] + packed(_vec(change))
        push = -wp.transpose(mat33(contacts.by_displacement[w * topology.contacts + j])) @ change
        for a in range(3):
            system_out.change[3 * (w * system_out.side + s) + a] = push[a]
    write_changes(sticking_out, system_out, w, n, few, m)
    right = 4 * w * sticking_out.side
    for i in range(n):
        number = sticking_out.member[w * sticking_out.side + i]
        c = contacts.order[entry_of(topology.contacts, count[0], w, number)]
        own = contacts.own[w * topology.contacts + c]
        scaled = own * _vec(change_at(sticking_out.right, right + 4 * i))
        f_out[entry + c] = f_out[entry + c] + packed(scaled)
    system_out.solved[w] = solved
