"""Forces of a few contacts, solved for together by a semi-smooth Newton method.

Sweeps over single contacts hardly distribute a force among contacts that hold the same matter: their skins, which
decide about it, are a hundredth of their compliance. With the changes d of all forces, contact i has the displacement
q_i + sum_j K_ij d_j, where K is the response of matter, joints, free rotations and free normals. The law asks for

    F_i = w_i (l(q_i + sum_j K_ij d_j + c_i (lambda_i + d_i) - w_i (lambda_i + d_i)) - lambda_i - d_i) = 0,

with w as in `coulomb_law`. The law is piecewise smooth, and Newton's method takes the derivative on the present piece
(Alart & Curnier 1991, "A mixed formulation for frictional contact problems prone to Newton like solution methods").
No step is shortened: F grows on the way to the piece that contains the solution. The adjoint is linear: one step
solves it.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.numerics.simd import add_multiple, combine_rows
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.projective.contact.borne_contacts import on_skin
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, JointCoupling
from warpbots.solvers.projective.contact.contact_response import carried, carry, rest, spread
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = [
    "FEW", "ForceSystem", "adj_solve_few_kernel", "change_of", "find_adjoint_changes", "find_changes",
    "solve_few_kernel",
]  # fmt: skip

FEW = 32
"""Number of contacts of a world up to which they are solved for together: the time grows with its cube."""
_vec = vector(3)
_STEPS = wp.constant(30)
_EXACT = wp.constant(scalar(1e-4))  # residual relative to the first one at which Newton's method has converged


@wp.struct
class ForceSystem:
    """Linear systems for the forces of contacts of all worlds, in one row.

    side: Number of contacts of a world for which there is room; 0 if contacts are never solved for together.
    response: K, row by row [m/N], shape (worlds * (3 side)^2,).
    matrix: Derivative of F and, in the last column, -F, row by row, shape (worlds * 3 side * (3 side + 1),).
    change: d [N], shape (worlds * 3 side,).
    entry: Entries in `ContactArrays.order` of the contacts that are solved for together, shape (worlds * side,).
    q: Their q at d = 0 [m]; in the adjoint their sum a_k a, shape (worlds * side,).
    solved: 1 for a world whose contacts have been solved for together, 2 if those that move only with bones are left,
        shape (worlds,).
    """

    side: int
    response: wp.array[scalar]
    matrix: wp.array[scalar]
    change: wp.array[scalar]
    entry: wp.array[int]
    q: wp.array[vec3]
    solved: wp.array[int]


@wp.func
def size_of(system: ForceSystem):
    """Room for the matrix of one world."""
    return 3 * system.side * (3 * system.side + 1)


@wp.func
def write_response(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, coupling: JointCoupling,
    rotation: RotationArrays, normals: NormalArrays, system: ForceSystem, scaling: real, w: int, count: int,
):  # fmt: skip
    """Write K, column after column."""
    first = w * topology.contacts
    start = w * 9 * system.side * system.side
    for j in range(count):
        k = first + contacts.order[first + j]
        for c in range(3):
            unit = _vec()
            unit[c] = real(1.0)
            rest(coupling, rotation, normals, w, 0, 1)
            carry(contacts, coupling, rotation, normals, w, k, unit, 0, 1)
            for i in range(count):
                u = carried(contacts, coupling, rotation, normals, w, first + contacts.order[first + i])
                u[c] += compliance.mutual[(w * compliance.side + i) * compliance.side + j] / scaling
                for a in range(3):
                    system.response[start + (3 * i + a) * 3 * count + 3 * j + c] = scalar(u[a])


@wp.func
def displacement(system: ForceSystem, w: int, count: int, i: int):
    """Displacement sum_j K_ij d_j of contact i by the changes of all forces."""
    size = 3 * count
    row = w * 9 * system.side * system.side + 3 * i * size
    d = w * 3 * system.side
    u = vec3()
    for j in range(size):
        change = system.change[d + j]
        for a in range(3):
            u[a] += system.response[row + a * size + j] * change
    return u


@wp.func
def change_of(system: ForceSystem, w: int, i: int):
    """Change d_i of the force of contact i."""
    d = 3 * (w * system.side + i)
    return vec3(system.change[d], system.change[d + 1], system.change[d + 2])


@wp.func
def write_equations(
    topology: ContactTopology, contacts: ContactArrays, system: ForceSystem, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int,
):  # fmt: skip
    """Write the derivative of F and -F at the present changes; returns the largest entry of F [m]."""
    size = 3 * count
    first = w * topology.contacts
    entry = w * topology.stride + topology.first
    start = w * size_of(system)
    largest = scalar(0.0)
    for i in range(count):
        c = contacts.order[system.entry[w * system.side + i]]
        k = first + c
        lam = vec3(at(z, entry + c) + at(f, entry + c)) + change_of(system, w, i)
        own = scalar(contacts.own[k])
        beyond = own - scalar(contacts.skin[k])
        l, slope = on_skin(
            system.q[w * system.side + i] + displacement(system, w, count, i) - beyond * lam,
            vec3(contacts.normal[k]), own, own, contacts.condition[k], scalar(contacts.friction[k]),
            scalar(contacts.extra[k]), contacts.closed[k],
        )  # fmt: skip
        rest = own * (l - lam)
        slope = own * slope
        largest = wp.max(largest, wp.length(rest))
        for a in range(3):
            row = start + (3 * i + a) * (size + 1)
            along = vec3(slope[a, 0], slope[a, 1], slope[a, 2])
            combine_rows(
                system.matrix, row, system.response, 9 * w * system.side * system.side + 3 * i * size, along, size
            )
            for b in range(3):
                system.matrix[row + 3 * i + b] = system.matrix[row + 3 * i + b] - beyond * along[b]
            system.matrix[row + 3 * i + a] = system.matrix[row + 3 * i + a] - own
            system.matrix[row + size] = -rest[a]
    return largest


@wp.func
def find_newton_step(system: ForceSystem, w: int, size: int):
    """Solve the linear system by elimination with partial pivoting, and add the solution to d; 1 if it is regular."""
    width = size + 1
    start = w * size_of(system)
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if wp.abs(system.matrix[start + i * width + k]) > wp.abs(system.matrix[start + best * width + k]):
                best = i
        if best != k:
            for j in range(k, width):
                t = system.matrix[start + k * width + j]
                system.matrix[start + k * width + j] = system.matrix[start + best * width + j]
                system.matrix[start + best * width + j] = t
        d = system.matrix[start + k * width + k]
        if d == scalar(0.0):
            return 0
        for i in range(k + 1, size):
            l = system.matrix[start + i * width + k] / d
            if l != scalar(0.0):
                add_multiple(system.matrix, start + i * width + k, start + k * width + k, -l, width - k)
    for m in range(size):
        k = size - 1 - m
        row = start + k * width
        x = system.matrix[row + size] / system.matrix[row + k]
        system.matrix[row + size] = x
        n = w * 3 * system.side + k
        system.change[n] = system.change[n] + x
        for i in range(k):
            row = start + i * width
            system.matrix[row + size] = system.matrix[row + size] - system.matrix[row + k] * x
    return 1


@wp.func
def clear_system(system: ForceSystem, w: int, size: int):
    """Set d to zero."""
    for j in range(size):
        system.change[w * 3 * system.side + j] = scalar(0.0)


@wp.func
def take_all(contacts: int, gap: wp.array[_vec], system: ForceSystem, w: int, count: int):
    """List all `count` active contacts of a world with their q."""
    for i in range(count):
        system.entry[w * system.side + i] = w * contacts + i
        system.q[w * system.side + i] = vec3(gap[w * contacts + i])


@wp.func
def find_changes(
    topology: ContactTopology, contacts: ContactArrays, system: ForceSystem, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int,
):  # fmt: skip
    """Write the changes of the forces of the listed contacts; 1 if they obey the law."""
    clear_system(system, w, 3 * count)
    enough = scalar(0.0)
    for step in range(_STEPS):
        largest = write_equations(topology, contacts, system, z, f, w, count)
        if step == 0:
            enough = _EXACT * largest
        if largest <= enough:
            return 1
        if find_newton_step(system, w, 3 * count) == 0:
            return 0
    return 0


@wp.func
def find_adjoint_changes(
    topology: ContactTopology, contacts: ContactArrays, system: ForceSystem, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int,
):  # fmt: skip
    """Write the changes of nu of the listed contacts; 1 if their equations are regular."""
    clear_system(system, w, 3 * count)
    size = 3 * count
    first = w * topology.contacts
    entry = w * topology.stride + topology.first
    start = w * size_of(system)
    response = w * 9 * system.side * system.side
    for i in range(count):
        c = contacts.order[system.entry[w * system.side + i]]
        nu = vec3(at(z, entry + c) + at(f, entry + c))
        L = wp.transpose(mat33(contacts.by_force[first + c]))
        missing = system.q[w * system.side + i] + L @ nu - nu
        for a in range(3):
            row = start + (3 * i + a) * (size + 1)
            for j in range(count):
                m = response + (3 * i + a) * size + 3 * j
                reply = vec3(system.response[m], system.response[m + 1], system.response[m + 2])
                k = first + contacts.order[system.entry[w * system.side + j]]
                reply = mat33(contacts.by_displacement[k]) @ reply
                for b in range(3):
                    system.matrix[row + 3 * j + b] = -reply[b]
            for b in range(3):
                system.matrix[row + 3 * i + b] = system.matrix[row + 3 * i + b] - L[a, b]
            system.matrix[row + 3 * i + a] = system.matrix[row + 3 * i + a] + scalar(1.0)
            system.matrix[row + size] = missing[a]
    return find_newton_step(system, w, size)


@wp.func
def are_few(system: ForceSystem, count: wp.vec2i):
    """Whether the active contacts of a world are solved for together; not if some move only with bones."""
    return count[0] > 0 and count[0] <= system.side and count[1] == 0


@wp.kernel(enable_backward=False)
def solve_few_kernel(
    # model
    topology: ContactTopology,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    # out
    system_out: ForceSystem,
    coupling_out: JointCoupling,
    rotation_out: RotationArrays,
    normals_out: NormalArrays,
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """Solve for the forces of the contacts of worlds with a few, and write their changes."""
    w = wp.tid()
    count = contacts_out.count[w][0]
    system_out.solved[w] = 0
    if active[w] == 0 or not are_few(system_out, contacts_out.count[w]):
        return
    write_response(
        topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, system_out, scaling[w], w, count,
    )  # fmt: skip
    take_all(topology.contacts, contacts_out.gap, system_out, w, count)
    solved = find_changes(topology, contacts_out, system_out, z, f_out, w, count)
    system_out.solved[w] = solved
    if solved == 1:
        rest(coupling_out, rotation_out, normals_out, w, 0, 1)
        first = w * topology.contacts
        for i in range(count):
            change = _vec(change_of(system_out, w, i))
            j = w * topology.stride + topology.first + contacts_out.order[first + i]
            f_out[j] = f_out[j] + packed(change)
            spread(
                topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, scaling[w], w, count,
                first + i, change, 0, 1,
            )  # fmt: skip


@wp.kernel(enable_backward=False)
def adj_solve_few_kernel(
    # model
    topology: ContactTopology,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    z: wp.array[NODE],
    # work
    compliance: ComplianceArrays,
    # out
    system_out: ForceSystem,
    coupling_out: JointCoupling,
    rotation_out: RotationArrays,
    normals_out: NormalArrays,
    contacts_out: ContactArrays,
    f_out: wp.array[NODE],
):
    """Solve nu = sum a_k a + L^T nu for nu of the contacts of worlds with a few, and write the changes of nu."""
    w = wp.tid()
    count = contacts_out.count[w][0]
    system_out.solved[w] = 0
    if active[w] == 0 or not are_few(system_out, contacts_out.count[w]):
        return
    write_response(
        topology, contacts_out, compliance, coupling_out, rotation_out, normals_out, system_out, scaling[w], w, count,
    )  # fmt: skip
    take_all(topology.contacts, contacts_out.gap, system_out, w, count)
    system_out.solved[w] = find_adjoint_changes(topology, contacts_out, system_out, z, f_out, w, count)
    entry = w * topology.stride + topology.first
    if system_out.solved[w] == 1:
        for i in range(count):
            j = entry + contacts_out.order[system_out.entry[w * system_out.side + i]]
            f_out[j] = f_out[j] + packed(_vec(change_of(system_out, w, i)))
