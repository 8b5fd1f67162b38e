"""Elimination of contacts that stick, before the forces of the others are solved for (`sticking_contacts`)."""

import warp as wp

from warpbots.numerics import real
from warpbots.numerics.simd import add_multiple_of, eliminate_rows, factorise_rows, gather_rows, solve_rows
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    entry_of,
    joint_in,
    places_in,
)
from warpbots.solvers.projective.contact.few_contacts import ForceSystem
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, body_of
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = [
    "JOINTS",
    "STICKING",
    "StickingArrays",
    "coupled",
    "eliminate_sticking",
    "first_entry",
    "list_members",
    "reply_of",
    "width_of",
]

STICKING = 256
"""Number of contacts of a world up to which those that stick are eliminated: a factor takes time with its cube."""
JOINTS = 32
"""Number of joint velocities and rotations of a world up to which contacts are eliminated: each has three columns."""


@wp.struct
class StickingArrays:
    """Contacts that stick, and what remains beyond them; all worlds in one row.

    side: Number of contacts of a world for which there is room; 0 if they are never eliminated.
    joints: Number of joint velocities, and of rotations of unconstrained bodies, for which there is room.
    sticks: 1 for a contact that is eliminated, in the order of `ContactArrays.order`, shape (worlds * side,).
    member: Numbers of the contacts that are eliminated in that order, then of the others, shape (worlds * side,).
    given: C_TT + c above and on the diagonal, row by row [m/N], shape (worlds * side^2,).
    factor: Its factor, shape (worlds * side^2,).
    kept: Number of rows of the factor, -1 for none, shape (worlds,).
    ready: 1 for a world whose contacts have been eliminated in this adjoint, where only q changes, shape (worlds,).
    solution: X for S and for joints, row by row, shape (worlds * side * width,).
    right: X for q and the forces in rows of four entries, then d_T [N], shape (worlds * side * 4,).
    reply: R of the contacts that are eliminated, then of S, for each direction a row of m entries, shape (worlds *
        (side + ForceSystem.side) * 3 joints,).
    row: A row of C_ST X, shape (worlds * width,).
    way: J of a contact of S, minus C_ST X_J, shape (worlds * ForceSystem.side * 3 joints,).
    joint: Equations for y, then their inverse, and y for unit forces of S, row by row, shape (worlds * joints * (2
        joints + 3 ForceSystem.side),).
    y: Displacements of joints, and the sum over the replies to d_T, shape (worlds * 2 joints,).
    """

    side: int
    joints: int
    sticks: wp.array[int]
    member: wp.array[int]
    given: wp.array[scalar]
    factor: wp.array[scalar]
    kept: wp.array[int]
    ready: wp.array[int]
    solution: wp.array[scalar]
    right: wp.array[scalar]
    reply: wp.array[scalar]
    row: wp.array[scalar]
    way: wp.array[scalar]
    joint: wp.array[scalar]
    y: wp.array[scalar]


@wp.func
def first_entry(sticking: StickingArrays, values: wp.array[scalar], w: int):
    """First entry of a world in one of the arrays, all of whose worlds have the same room."""
    return w * values.shape[0] / sticking.kept.shape[0]


@wp.func
def write_coupling(
    contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays, w: int, k: int, m: int,
    J: wp.array[scalar], j: int, R: wp.array[scalar], r: int,
):  # fmt: skip
    """Write J and R of contact k from the entries j and r on: for each direction a row of m entries."""
    for n in range(3 * m):
        J[j + n] = scalar(0.0)
        R[r + n] = scalar(0.0)
    if coupling.freedom > 0:
        span = coupling.span[k]
        for p in range(places_in(span)):
            n = joint_in(span, p)
            for a in range(3):
                J[j + a * m + n] = scalar(coupling.jacobian[k * coupling.width + p][a])
                R[r + a * m + n] = scalar(coupling.response[k * coupling.width + p][a])
    if rotation.count > 0:
        for p in range(4):
            node = contacts.node[k][p]
            b = body_of(rotation, node)
            if b >= 0:
                arm = wp.vec3d(contacts.weight[k][p] * rotation.arm[w * rotation.nodes + node])
                for e in range(3):
                    axis = vec3()
                    axis[e] = scalar(1.0)
                    way = wp.cross(axis, arm)
                    reply = wp.cross(rotation.gain[w * rotation.count + b] * axis, arm)
                    for a in range(3):
                        n = a * m + m - 3 * (rotation.count - b) + e
                        J[j + n] = J[j + n] + way[a]
                        R[r + n] = R[r + n] + reply[a]


@wp.func
def coupled(mutual: wp.array[real], side: int, swept: int, scaling: real, w: int, i: int, j: int):
    """Displacement of one contact per force of another one by matter [m/N]; the contacts have the numbers i and j."""
    share = scalar(0.0)
    if i < swept and j < swept:
        share = scalar(mutual[(w * side + i) * side + j]) / scalar(scaling)
    return share


@wp.func
def list_members(sticking: StickingArrays, w: int, count: int):
    """List the contacts that stick, then the others; returns the number of those that stick."""
    first = w * sticking.side
    n = int(0)
    for number in range(count):
        n += sticking.sticks[first + number]
    i = int(0)
    j = n
    for number in range(count):
        if sticking.sticks[first + number] == 1:
            sticking.member[first + i] = number
            i += 1
        else:
            sticking.member[first + j] = number
            j += 1
    return n


@wp.func
def factorise_sticking(
    topology: ContactTopology, contacts: ContactArrays, mutual: wp.array[real], side: int, sticking: StickingArrays,
    scaling: real, w: int, swept: int, n: int,
):  # fmt: skip
    """Make the factor of C_TT + c unless it is there; 1 if the matrix is positive definite."""
    start = w * sticking.side * sticking.side
    changed = gather_rows(
        sticking.given, start, sticking.side, mutual, w * side * side, side, sticking.member, w * sticking.side, n,
        swept, scalar(1.0) / scalar(scaling),
    )  # fmt: skip
    for i in range(n):
        number = sticking.member[w * sticking.side + i]
        k = w * topology.contacts + contacts.order[entry_of(topology.contacts, swept, w, number)]
        share = coupled(mutual, side, swept, scaling, w, number, number) + scalar(contacts.skin[k])
        m = start + i * (sticking.side + 1)
        if sticking.given[m] != share:
            sticking.given[m] = share
            changed = 1
    if changed == 1 or sticking.kept[w] != n:
        sticking.kept[w] = -1
        if factorise_rows(sticking.factor, sticking.given, start, sticking.side, n) == 0:
            return 0
        sticking.kept[w] = n
    return 1


@wp.func
def width_of(few: int, m: int):
    """Entries in a row of X: a multiple of eight, as a CPU takes eight at once."""
    return (few + 3 * m + 7) / 8 * 8


@wp.func
def reply_of(sticking: StickingArrays, w: int, i: int, m: int):
    """First entry of R of contact i of a world in `StickingArrays.reply`; worlds may differ in m."""
    return first_entry(sticking, sticking.reply, w) + i * 3 * m


@wp.func
def write_sticking_columns(
    topology: ContactTopology, contacts: ContactArrays, mutual: wp.array[real], side: int, coupling: JointCoupling,
    rotation: RotationArrays, sticking: StickingArrays, scaling: real, w: int, swept: int, n: int, few: int, m: int,
):  # fmt: skip
    """Write X for S and joints."""
    width = width_of(few, m)
    start = first_entry(sticking, sticking.solution, w)
    for i in range(n):
        number = sticking.member[w * sticking.side + i]
        k = w * topology.contacts + contacts.order[entry_of(topology.contacts, swept, w, number)]
        row = start + i * width
        for s in range(few):
            other = sticking.member[w * sticking.side + n + s]
            sticking.solution[row + s] = coupled(mutual, side, swept, scaling, w, number, other)
        write_coupling(
            contacts, coupling, rotation, w, k, m, sticking.solution, row + few, sticking.reply,
            reply_of(sticking, w, i, m),
        )  # fmt: skip
        for j in range(few + 3 * m, width):
            sticking.solution[row + j] = scalar(0.0)
    solve_rows(sticking.factor, w * sticking.side * sticking.side, sticking.side, sticking.solution, start, width, n)


@wp.func
def write_joint_equations(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays,
    sticking: StickingArrays, w: int, swept: int, n: int, few: int, m: int,
):  # fmt: skip
    """Write and solve the equations for y; 1 if they are regular. Writes J of S, too."""
    width = width_of(few, m)
    start = first_entry(sticking, sticking.solution, w)
    columns = 2 * m + 3 * few
    joint = first_entry(sticking, sticking.joint, w)
    for j in range(m * columns):
        sticking.joint[joint + j] = scalar(0.0)
    for i in range(n):
        row = start + i * width
        reply = reply_of(sticking, w, i, m)
        for a in range(3):
            for j in range(m):
                share = sticking.reply[reply + a * m + j]
                if share != scalar(0.0):
                    at_row = joint + j * columns
                    add_multiple_of(sticking.joint, at_row, sticking.solution, row + few + a * m, share, m)
                    add_multiple_of(sticking.joint, at_row + 2 * m + a * few, sticking.solution, row, -share, few)
    way = first_entry(sticking, sticking.way, w)
    reply = reply_of(sticking, w, n, m)
    for s in range(few):
        e = entry_of(topology.contacts, swept, w, sticking.member[w * sticking.side + n + s])
        k = w * topology.contacts + contacts.order[e]
        write_coupling(
            contacts, coupling, rotation, w, k, m, sticking.way, way + s * 3 * m, sticking.reply, reply + s * 3 * m
        )
        for a in range(3):
            for j in range(m):
                at_row = joint + j * columns + 2 * m + a * few + s
                sticking.joint[at_row] = sticking.joint[at_row] + sticking.reply[reply + (3 * s + a) * m + j]
    for j in range(m):
        at_row = joint + j * columns
        sticking.joint[at_row + j] = sticking.joint[at_row + j] + scalar(1.0)
        sticking.joint[at_row + m + j] = scalar(1.0)
    return eliminate_rows(sticking.joint, joint, m, columns)


@wp.func
def write_few(
    topology: ContactTopology, contacts: ContactArrays, mutual: wp.array[real], side: int, sticking: StickingArrays,
    system: ForceSystem, scaling: real, w: int, swept: int, n: int, few: int, m: int,
):  # fmt: skip
    """Write the response of S to its forces, beyond the contacts that stick and the joints."""
    width = width_of(few, m)
    start = first_entry(sticking, sticking.solution, w)
    columns = 2 * m + 3 * few
    joint = first_entry(sticking, sticking.joint, w)
    row = first_entry(sticking, sticking.row, w)
    response = w * 9 * system.side * system.side
    for s in range(few):
        number = sticking.member[w * sticking.side + n + s]
        for j in range(width):
            sticking.row[row + j] = scalar(0.0)
        for i in range(n):
            share = coupled(mutual, side, swept, scaling, w, number, sticking.member[w * sticking.side + i])
            if share != scalar(0.0):
                add_multiple_of(sticking.row, row, sticking.solution, start + i * width, share, width)
        way = first_entry(sticking, sticking.way, w) + s * 3 * m
        add_multiple_of(sticking.way, way, sticking.row, row + few, scalar(-1.0), 3 * m)
        for a in range(3):
            at_row = response + (3 * s + a) * 3 * few
            for t in range(few):
                other = sticking.member[w * sticking.side + n + t]
                for b in range(3):
                    value = scalar(0.0)
                    if a == b:
                        value = coupled(mutual, side, swept, scaling, w, number, other) - sticking.row[row + t]
                    for j in range(m):
                        reply = sticking.joint[joint + j * columns + 2 * m + b * few + t]
                        value += sticking.way[way + a * m + j] * reply
                    system.response[at_row + 3 * t + b] = value
        system.entry[w * system.side + s] = entry_of(topology.contacts, swept, w, number)


@wp.func
def eliminate_sticking(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, coupling: JointCoupling,
    rotation: RotationArrays, sticking: StickingArrays, system: ForceSystem, scaling: real, w: int, swept: int, n: int,
    few: int, m: int,
):  # fmt: skip
    """Eliminate the contacts that stick, and write the response of the others; 1 if that is possible."""
    if n == 0 or few > system.side:
        return 0
    mutual = compliance.mutual
    side = compliance.side
    if factorise_sticking(topology, contacts, mutual, side, sticking, scaling, w, swept, n) == 0:
        return 0
    write_sticking_columns(topology, contacts, mutual, side, coupling, rotation, sticking, scaling, w, swept, n, few, m)
    if write_joint_equations(topology, contacts, coupling, rotation, sticking, w, swept, n, few, m) == 0:
        return 0
    write_few(topology, contacts, mutual, side, sticking, system, scaling, w, swept, n, few, m)
    return 1
