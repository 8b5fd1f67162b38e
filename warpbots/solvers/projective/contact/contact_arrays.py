"""Arrays of contacts for kernels: points that may be in contact, states of contacts, and coupling with joints."""

import warp as wp

from warpbots.numerics import matrix, real, vector

__all__ = [
    "ContactArrays",
    "ContactTopology",
    "JointCoupling",
    "borne_entry",
    "entry_of",
    "holding",
    "joint_in",
    "place_of_joint",
    "places_in",
    "places_of",
]

_vec, _mat = vector(3), matrix(3)
_vec2, _vec4 = vector(2), vector(4)
_CHANGES = wp.constant(8)  # after which a contact has the sliding coefficient for the rest of a step


@wp.struct
class ContactTopology:
    """Points that may be in contact, the same in all worlds.

    nodes: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    first: Index of the first contact in an iterate of one world.
    stride: Entries of an iterate of one world.
    contacts: Number of contacts for which one world has room: of nodes with solids, of surface samples with solids, and
        of pairs.
    solids: Number of these that are contacts with solids.
    point: Nodes of each point that may be in contact with solids: the node itself, or the corners of a surface sample,
        padded with -1, shape (points,).
    share: Weights of the nodes in `point` [1], shape (points,).
    standing: 1 for points of rigid bodies that cannot move, which no obstacle touches that stays in its place, shape
        (points,).
    node: Points that may be in contact, shape (n,).
    skin: What each point of `node` adds to the compliance c of a contact that shares its force with other contacts
        [m/N], shape (n,).
    row: Row of each point of `node` in the factored matrix, -1 for points bound to bones, shape (n,).
    place: Index in `node` of each point, -1 for a point that is fixed or inside a body, shape (nodes,).
    sample: First entry in `corner` of each point of `node`, and the end of the last one, shape (n + 1,).
    corner: Corners of surface samples, grouped by their points: 4 * (index of the sample) + (index of the corner in the
        sample), shape (corners,).
    """

    nodes: int
    first: int
    stride: int
    contacts: int
    solids: int
    point: wp.array[wp.vec4i]
    share: wp.array[_vec4]
    standing: wp.array[int]
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
    any: Number of worlds with `pressed` 1, shape (1,).
    listed: 1 for an active contact.
    closed: 1 for a contact with a solid that was closed when the step began.
    borne: 1 for an active contact that moves only with bones.
    shared: 1 for a contact with a solid that may share its force with other contacts: at a bone, at a surface sample,
        or with several solids near.
    node: Nodes of a contact, padded with -1.
    weight: Weights a_k of these nodes [1].
    end_weight: Weights of a pair at the end of a step, in the adjoint [1].
    distance: Distance phi at the end of the step [m].
    follows: Derivatives of the distance that a pair keeps with respect to its distance at the start, and to the
        compression of its skin (`pairs.to_keep`) [1]; 0 for a contact with a solid.
    slope: Derivative of the distance along the normal, for a contact with a solid [1].
    normal: Outward normal n of the solid, or normal of the plane of the pair, at the end of the step [1].
    curvature: Transposed derivative of the normal with respect to position, for a contact with a solid [1/m].
    surface: Displacement of the surface of an obstacle in the step [m], which is subtracted from the displacement of
        the contact; for a pair, the displacement of the surface relative to the obstacle.
    obstacle: Obstacle of a contact, -1 for a pair of two bodies.
    law: Contact law whose friction a contact has, -1 for none.
    condition: Code of the contact condition (`warpbots.contact.CODES`).
    friction: Coulomb coefficient [1].
    extra: Coefficient of static friction minus coefficient of sliding friction [1]; 0 after many `changes`.
    changes: Number of changes of a contact between sticking and sliding in this step, if its coefficients differ: even
        for a contact that sticks, odd for one that slides.
    skin: Compliance c of the contact itself [m/N].
    response: Displacement of a contact per force of the same contact, without its skin [m/N].
    inverse: Inverse of `response` plus `skin` [N/m]: minus the change of the force of a contact that sticks, per
        displacement; in the adjoint the change of nu of a contact per residual of its equation [1].
    own: Upper bound of `response` plus `skin` [m/N]: the w of the contact law.
    order: Indices of the active contacts of a world: those that matter couples from the front, those that move only
        with bones from the back (`borne_entry`).
    count: Numbers of active contacts of both kinds, shape (worlds,).
    parts: Number of parts into which the contacts of a world are divided; one thread lists each part.
    part: Numbers of active contacts of both kinds in a part, shape (worlds * parts,).
    gap: q of the active contacts [m], in the order of `order`; in the adjoint their sum a_k a.
    by_displacement: Derivative dl/dq for a pair, or B = dl/du for a contact with a solid [N/m]: B_k = a_k B.
    by_node: Derivative B_k = dl/du_k by the displacement of each node [N/m], shape (worlds * contacts * 4,).
    by_force: Derivative L = dl/dlambda [1].
    pull: Force of a contact on each of its nodes [N], or its counterpart in the adjoint, shape (worlds * contacts *
        4,).
    head: First corner (4 * contact + index of the node in it) in the linked list of corners of pairs at each point of
        `ContactTopology.node`, -1 for none, shape (worlds * n,).
    tail: Last corner in that list, -1 for none, shape (worlds * n,).
    next: Next corner in the list after each corner, -1 for none, shape (worlds * contacts * 4,).
    """

    pressed: wp.array[int]
    any: wp.array[int]
    listed: wp.array[int]
    closed: wp.array[int]
    borne: wp.array[int]
    shared: wp.array[int]
    node: wp.array[wp.vec4i]
    weight: wp.array[_vec4]
    end_weight: wp.array[_vec4]
    distance: wp.array[real]
    follows: wp.array[_vec2]
    slope: wp.array[real]
    normal: wp.array[_vec]
    curvature: wp.array[_mat]
    surface: wp.array[_vec]
    obstacle: wp.array[int]
    law: wp.array[int]
    condition: wp.array[int]
    friction: wp.array[real]
    extra: wp.array[real]
    changes: wp.array[int]
    skin: wp.array[real]
    response: wp.array[_mat]
    inverse: wp.array[_mat]
    own: wp.array[real]
    order: wp.array[int]
    count: wp.array[wp.vec2i]
    parts: int
    part: wp.array[wp.vec2i]
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

    The joints of at most two blocks (`bones.joint_blocks`) move a contact; each joint velocity has a place.

    freedom: Number of joint velocities, 0 without bones.
    width: Number of places of a contact.
    span: First joint velocity, and end, of the two blocks; equal for none, shape (worlds * contacts,).
    jacobian: Displacement of a contact per displacement of each of its joints [m, m/rad], shape (worlds * contacts *
        width,).
    response: Displacement of each of its joints per force of a contact [m/N, rad/N], shape (worlds * contacts *
        width,).
    displacement: Displacement of the joints by the changes of contact forces in the present solve [m, rad], shape
        (worlds * freedom,).
    guess: Correction of `displacement` by Newton's method [m, rad], shape (worlds * freedom,).
    way: Last Newton step [m, rad], shape (worlds * freedom,).
    step: Residual of the equations of Newton's method, then the solution for it [m, rad], shape (worlds * freedom,).
    range: First joint velocity, and end, of the range of each joint velocity: the smallest ranges that no contact that
        moves only with bones connects, shape (worlds * freedom,).
    matrix: Matrix of Newton's method, then its factors; a range from s to e has its rows of e - s entries from
        (w * freedom + s) * freedom on, shape (worlds * freedom * freedom,).
    pivot: Rows that were exchanged, shape (worlds * freedom,).
    change: Change of the force of a contact that moves only with bones [N], shape (worlds * contacts,).
    push: `change`, or B^T times the change of nu in the adjoint [N], shape (worlds * contacts,).
    slope: Derivative of `push` with respect to the displacement of the contact [N/m], shape (worlds * contacts,).
    """

    freedom: int
    width: int
    span: wp.array[wp.vec4i]
    jacobian: wp.array[_vec]
    response: wp.array[_vec]
    displacement: wp.array[real]
    guess: wp.array[wp.float64]
    way: wp.array[wp.float64]
    step: wp.array[wp.float64]
    range: wp.array[wp.vec2i]
    matrix: wp.array[wp.float64]
    pivot: wp.array[int]
    change: wp.array[_vec]
    push: wp.array[_vec]
    slope: wp.array[_mat]


@wp.func
def holding(extra: real, changes: int):
    """What static friction adds to the sliding coefficient, after some `changes` between sticking and sliding [1].

    A contact that has changed often has the sliding coefficient for the rest of a step (`breaking_away`).
    """
    return wp.where(changes < _CHANGES, extra, real(0.0))


@wp.func
def borne_entry(contacts: int, w: int, number: int):
    """Entry in `ContactArrays.order` of a contact that moves only with bones; they have the numbers 0, 1, 2, ...

    Warp copies a struct at each call; therefore functions in loops over contacts take fields of structs instead.
    """
    return (w + 1) * contacts - 1 - number


@wp.func
def entry_of(contacts: int, swept: int, w: int, number: int):
    """Entry of an active contact in the list of its world, contacts that move only with bones last."""
    i = w * contacts + number
    if number >= swept:
        i = borne_entry(contacts, w, number - swept)
    return i


@wp.func
def places_in(span: wp.vec4i):
    """Number of joint velocities that move a contact with this `JointCoupling.span`."""
    return span[1] - span[0] + span[3] - span[2]


@wp.func
def places_of(coupling: JointCoupling, k: int):
    """Number of joint velocities that move contact k."""
    places = int(0)
    if coupling.freedom > 0:
        places = places_in(coupling.span[k])
    return places


@wp.func
def joint_in(span: wp.vec4i, p: int):
    """Index of the joint velocity at place p of a contact with this `JointCoupling.span`."""
    first = span[1] - span[0]
    return wp.where(p < first, span[0] + p, span[2] + p - first)


@wp.func
def place_of_joint(coupling: JointCoupling, k: int, j: int):
    """Place of joint velocity j in contact k, -1 if this velocity does not move the contact."""
    span = coupling.span[k]
    p = int(-1)
    if j >= span[0] and j < span[1]:
        p = j - span[0]
    elif j >= span[2] and j < span[3]:
        p = span[1] - span[0] + j - span[2]
    return p
