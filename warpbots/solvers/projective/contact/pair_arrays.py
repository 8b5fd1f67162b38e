"""Arrays of pairs (a vertex and a face, or two edges) for kernels: pairs that are contacts, and detected pairs."""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.islands import Islands

__all__ = [
    "CLEARANCE",
    "EDGES",
    "FACE",
    "HELD",
    "MARGIN",
    "NEAREST",
    "NONE",
    "HitArrays",
    "PairArrays",
    "one_is_rigid",
    "both_rigid",
    "clearance_of",
    "has_failed",
    "law_of",
    "margin_of",
    "most_of",
    "never_meet",
    "note_change",
    "obstacle_of",
    "obstacle_side",
]

_vec, _vec4 = vector(3), vector(4)
CLEARANCE = 0.01
"""Distance that surfaces keep [mean edges of the finer surface]."""
MARGIN = 0.25
"""Additional distance at which one search is enough [mean edges]; smaller than the distance of neighbours."""
NONE, FACE, EDGES = (wp.constant(k) for k in range(3))
"""Kinds of pairs: a vertex and a face at the plane of the face; two edges at the plane that they span."""
NEAREST, HELD = wp.constant(2), wp.constant(4)
"""NEAREST + FACE and NEAREST + EDGES are the same at the plane perpendicular to their shortest connection; HELD + FACE
and HELD + EDGES keep the plane of one instant."""


@wp.struct
class PairArrays:
    """Surfaces, and pairs that are contacts in this step; arrays that differ between worlds hold all worlds in one row.

    nodes: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    stride: Entries of an iterate of one world.
    capacity: Room for pairs of one world.
    clearance: Distance that the surface at a point keeps from other surfaces [m], shape (nodes,).
    margin: Distance beyond the clearance within which the first search looks for other surfaces [m], shape (nodes,).
    size: Index of the element size of a point; for an end of an edge of an obstacle, the size for which the edge is
        made, shape (nodes,).
    vertex: Points of surfaces, shape (vertices,).
    face: Points of the faces, shape (faces,).
    edge: Points of the edges, shape (edges,).
    flat: 1 for an edge between two faces that stay in one plane, shape (edges,).
    level: 1 for a vertex all of whose edges are flat, shape (vertices,).
    around: First entry of a point in `outer`, and the end of the last point, shape (nodes + 1,).
    outer: Faces of solids and bones around a point, point after point, shape (n,).
    component: Component of a point, -1 for ends of edges of obstacles, shape (nodes,).
    body: Body of a point, shape (nodes,).
    bodies: Number of bodies of one world: soft bodies, bones with a surface, and obstacles.
    movers: Number of bodies that are not obstacles.
    soft: Number of soft bodies; bones with a surface follow.
    attached: 1 for two bodies that are never in contact, row by row, shape (bodies * bodies,).
    friction: Coulomb coefficient of a body that is not an obstacle [1], shape (worlds * movers,).
    obstacle_friction: Coulomb coefficient of an obstacle [1], shape (worlds * obstacles,).
    condition: Code of the contact condition of an obstacle (`warpbots.contact.CODES`), shape (obstacles,).
    extra: Coefficient of static friction minus coefficient of sliding friction of an obstacle [1], shape (obstacles,).
    solid: First solid of an obstacle, shape (obstacles,).
    laws: Number of contact laws.
    law: Contact law of two bodies, -1 for none, row by row, shape (bodies * bodies,).
    law_friction: Coulomb coefficient of a contact law [1], shape (worlds * laws,).
    count: Number of pairs of a world, including pairs for which there was no room, shape (worlds,).
    kind: Kind of a pair, shape (worlds * capacity,).
    node: Nodes of a pair: a vertex and the corners of a face, or the ends of two edges, shape (worlds * capacity,).
    side: Sign of the normal (1 or -1): the side of the plane on which the first side of the pair began, shape (worlds *
        capacity,).
    normal: Normal of the plane of a pair when the plane was last updated [1], shape (worlds * capacity,).
    weight: Weights of the nodes when the plane was last updated [1], shape (worlds * capacity,).
    redundant: 1 for a pair with the same shortest connection as an earlier pair, shape (worlds * capacity,).
    """

    nodes: int
    stride: int
    capacity: int
    clearance: wp.array[real]
    margin: wp.array[real]
    size: wp.array[int]
    vertex: wp.array[int]
    face: wp.array[wp.vec3i]
    edge: wp.array[wp.vec2i]
    flat: wp.array[int]
    level: wp.array[int]
    around: wp.array[int]
    outer: wp.array[int]
    component: wp.array[int]
    body: wp.array[int]
    bodies: int
    movers: int
    soft: int
    attached: wp.array[int]
    friction: wp.array[real]
    obstacle_friction: wp.array[real]
    condition: wp.array[int]
    extra: wp.array[real]
    solid: wp.array[int]
    laws: int
    law: wp.array[int]
    law_friction: wp.array[real]
    count: wp.array[int]
    kind: wp.array[int]
    node: wp.array[wp.vec4i]
    side: wp.array[real]
    normal: wp.array[_vec]
    weight: wp.array[_vec4]
    redundant: wp.array[int]


@wp.func
def obstacle_of(pairs: PairArrays, node: wp.vec4i):
    """Index of the obstacle of a pair, -1 for a pair of two bodies."""
    return wp.max(wp.max(pairs.body[node[0]], pairs.body[node[3]]) - pairs.movers, -1)


@wp.func
def law_of(pairs: PairArrays, node: wp.vec4i):
    """Index of the contact law of a pair, -1 for none."""
    law = int(-1)
    if pairs.laws > 0:
        law = pairs.law[pairs.body[node[0]] * pairs.bodies + pairs.body[node[3]]]
    return law


@wp.func
def obstacle_side(pairs: PairArrays, node: wp.vec4i):
    """1 if the first side of a pair belongs to an obstacle, -1 if the second does."""
    return wp.where(pairs.body[node[0]] >= pairs.movers, real(1.0), real(-1.0))


@wp.func
def one_is_rigid(pairs: PairArrays, node: wp.vec4i):
    """Whether a side of a pair of two bodies is the surface of a bone."""
    high = wp.max(pairs.body[node[0]], pairs.body[node[3]])
    return pairs.soft <= high and high < pairs.movers


@wp.func
def both_rigid(pairs: PairArrays, i: int, j: int):
    """Whether two points are on surfaces of bones."""
    low = wp.min(pairs.body[i], pairs.body[j])
    return pairs.soft <= low and wp.max(pairs.body[i], pairs.body[j]) < pairs.movers


@wp.func
def clearance_of(pairs: PairArrays, node: wp.vec4i):
    """Distance that the surfaces of a pair keep [m]: the clearance of the surface with the smaller clearance."""
    return wp.min(pairs.clearance[node[0]], pairs.clearance[node[3]])


@wp.func
def margin_of(pairs: PairArrays, node: wp.vec4i):
    """Margin of a pair [m]: the mean of the margins of both sides."""
    return real(0.5) * (pairs.margin[node[0]] + pairs.margin[node[3]])


@wp.func
def never_meet(pairs: PairArrays, i: int, j: int):
    """Whether points are never in contact: by their bodies, or as one is on an obstacle edge for other elements."""
    first = pairs.body[i]
    second = pairs.body[j]
    other = wp.max(first, second) >= pairs.movers and pairs.size[i] != pairs.size[j]
    return other or pairs.attached[first * pairs.bodies + second] == 1


@wp.func
def note_change(pairs: PairArrays, islands: Islands, w: int, node: wp.vec4i):
    """Mark the components of a pair as changed: the pair is a changed contact, or should become a contact."""
    for k in range(4):
        component = pairs.component[node[k]]
        if component >= 0:
            islands.changed[w * islands.count + component] = 1


@wp.func
def most_of(pairs: PairArrays, islands: Islands, values: wp.array[int], w: int, i: int, j: int):
    """The larger entry of `values` for the components of two points; points of obstacles have no component."""
    most = int(-1)
    for k in range(2):
        component = pairs.component[wp.where(k == 0, i, j)]
        if component >= 0:
            most = wp.max(most, values[w * islands.count + component])
    return most


@wp.func
def has_failed(pairs: PairArrays, islands: Islands, asked: wp.array[int], w: int, i: int):
    """Whether the step of the component of a point has failed, so that there is no path to search."""
    component = pairs.component[i]
    failed = bool(False)
    if component >= 0:
        failed = asked[w * islands.count + component] < 0
    return failed


@wp.struct
class HitArrays:
    """Pairs that become contacts after a search, in the order in which threads find them; all worlds in one row.

    room: Room for pairs of one world.
    count: Number of pairs of a world, including pairs for which there was no room, shape (worlds,).
    key: Unique number of a pair among all possible pairs; pairs of vertices and faces come before pairs of edges, shape
        (worlds * room,).
    slot: Index of a pair among the present contacts, -1 for a new pair, shape (worlds * room,).
    kind: Kind of contact that the pair becomes, shape (worlds * room,).
    node: Nodes of a pair, shape (worlds * room,).
    side: Sign of the normal (1 or -1), as in `PairArrays`, shape (worlds * room,).
    normal: Normal of the plane of a pair [1], shape (worlds * room,).
    weight: Weights of the nodes of a pair [1], shape (worlds * room,).
    order: Indices of the pairs in the order of their keys, shape (worlds * room,).
    """

    room: int
    count: wp.array[int]
    key: wp.array[wp.int64]
    slot: wp.array[int]
    kind: wp.array[int]
    node: wp.array[wp.vec4i]
    side: wp.array[real]
    normal: wp.array[_vec]
    weight: wp.array[_vec4]
    order: wp.array[int]
