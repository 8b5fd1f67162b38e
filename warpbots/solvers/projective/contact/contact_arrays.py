"""Arrays of contacts for kernels: points that may be in contact, state of contacts, coupling with joints."""

import warp as wp

from warpbots.numerics import matrix, real, vector

__all__ = ["ContactArrays", "ContactTopology", "JointCoupling"]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)


@wp.struct
class ContactTopology:
    """Points that may be in contact, the same in all worlds.

    nodes: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    first: Entry of the first contact in an iterate of one world.
    stride: Entries of an iterate of one world.
    contacts: Room for contacts of one world: of nodes with solids, of surface samples with solids, and of pairs.
    solids: Contacts with solids among them.
    point: Nodes of points that may be in contact with solids: a node, or the corners of a surface sample, -1 for none,
        shape (points,).
    share: Their weights [1], shape (points,).
    node: Points that may be in contact, shape (n,).
    skin: Part of each point in the compliance of a contact that shares its force with others [m/N], shape (n,).
    row: Row of each point of `node` in the factored matrix, -1 for points bound to bones, shape (n,).
    place: Index of a point in `node`, -1 for a point that is fixed or inside a body, shape (nodes,).
    sample: First corner of a surface sample at each point of `node`, one more for the end, shape (n + 1,).
    corner: These corners: four times the number of the sample, plus the number of its corner, shape (corners,).
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
    sample: wp.array[int]
    corner: wp.array[int]


@wp.struct
class ContactArrays:
    """Contacts at a point of the iteration, all worlds in one row; shape (worlds * contacts,) unless given.

    pressed: 1 for a world that iterates and has active contacts, shape (worlds,).
    any: Number of such worlds, shape (1,).
    listed: 1 for an active contact.
    closed: 1 for a contact with a solid that was closed when the step began.
    borne: 1 for an active contact that moves only with bones.
    shared: 1 for a contact with a solid that may share its force with others: at a bone, or in a corner.
    node: Nodes of a contact, -1 for none.
    weight: Their weights a_k [1].
    distance: Distance phi at the end of the step [m].
    slope: Its derivative along the normal for a solid [1].
    normal: Outward normal n there [1].
    curvature: Its derivative for a solid, transposed [1/m].
    condition: Code of the condition.
    friction: Coulomb coefficient [1].
    extra: Coefficient of static friction minus that of sliding friction [1].
    skin: Compliance c of the contact itself [m/N].
    response: Displacement of a contact per force of its own, without its skin [m/N].
    own: Upper bound of the same with its skin [m/N]: the w of its law.
    order: Active contacts, one after the other.
    count: Number of active contacts, shape (worlds,).
    parts: Parts of the contacts of a world, each of which one thread lists.
    part: Number of active contacts in a part, shape (worlds * parts,).
    gap: Their q [m], in order; in the adjoint their sum a_k a.
    by_displacement: dl/dq, or B of a contact with a solid [N/m].
    by_node: B_k of each node [N/m], shape (worlds * contacts * 4,).
    by_force: L [1].
    pull: Force on each node [N], or its counterpart in the adjoint, shape (worlds * contacts * 4,).
    head: First corner of a pair at a point that may be in contact, -1 for none, shape (worlds * n,).
    tail: The last one, shape (worlds * n,).
    next: The corner after one, -1 for none, shape (worlds * contacts * 4,).
    """

    pressed: wp.array[int]
    any: wp.array[int]
    listed: wp.array[int]
    closed: wp.array[int]
    borne: wp.array[int]
    shared: wp.array[int]
    node: wp.array[wp.vec4i]
    weight: wp.array[_vec4]
    distance: wp.array[real]
    slope: wp.array[real]
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
class JointCoupling:
    """Coupling of contacts with joints of bones, all worlds in one row.

    freedom: Number of velocities of joints, 0 without bones.
    jacobian: Displacement of a contact per displacement of each joint [m, m/rad], shape (worlds * contacts * freedom,).
    response: Displacement of each joint per force of a contact [m/N, rad/N], shape (worlds * contacts * freedom,).
    displacement: Displacement of the joints in a sweep [m, rad], shape (worlds * freedom,).
    guess: Correction of `displacement` by Newton's method [m, rad], shape (worlds * freedom,).
    way: Last step of Newton's method [m, rad], shape (worlds * freedom,).
    step: Residual of its equations, then another step [m, rad], shape (worlds * freedom,).
    matrix: Its system, then the factors, shape (worlds * freedom * freedom,).
    pivot: Rows that were exchanged, shape (worlds * freedom,).
    change: Change of the force of a contact that moves only with bones [N], shape (worlds * contacts,).
    push: The same, or its counterpart in the adjoint, shape (worlds * contacts,).
    slope: Its derivative with respect to the displacement of the contact [N/m], shape (worlds * contacts,).
    """

    freedom: int
    jacobian: wp.array[_vec]
    response: wp.array[_vec]
    displacement: wp.array[real]
    guess: wp.array[wp.float64]
    way: wp.array[wp.float64]
    step: wp.array[wp.float64]
    matrix: wp.array[wp.float64]
    pivot: wp.array[int]
    change: wp.array[_vec]
    push: wp.array[_vec]
    slope: wp.array[_mat]
