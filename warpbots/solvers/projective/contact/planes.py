"""Planes of pairs while a step converges: how planes follow their pairs, and which pairs have the same plane.

Planes are updated only near convergence, not in every iteration: planes at a point far from the end of the step would
lead the iteration further away.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.pair_arrays import FACE, HELD, NEAREST, NONE, PairArrays, note_change
from warpbots.solvers.projective.contact.pair_geometry import gap_of, plane_of
from warpbots.solvers.projective.contact.pairs import displacements_of, ends_of, friction_of
from warpbots.solvers.projective.islands import Islands, component_of

__all__ = ["same_connection_kernel", "update_planes_kernel"]

_vec, _vec4 = vector(3), vector(4)
_ZERO, _ONE = wp.constant(real(0.0)), wp.constant(real(1.0))
_NEAR = wp.constant(real(10.0))  # errors of nodes rotate the shortest connection, a hundredth of an edge long
_UPDATES = wp.constant(30)  # searches after which planes stay as they are
_SWINGS = wp.constant(6)  # searches after which every second update turns planes half the way
_ALIGNED = wp.constant(
    real(0.75)
)  # cosine between a plane's normal and the shortest connection, below which a contact ends
_SAME = wp.constant(real(1e-5))  # difference of weights up to which two connections are one


@wp.func
def along_edge(weight: _vec4, a: _vec, b: _vec, c: _vec, d: _vec):
    """Direction of the edge in whose interior a shortest connection ends; 0 for a connection between vertices."""
    e = _vec()
    if weight[0] * weight[1] > _ZERO:
        e = b - a
    elif weight[2] * weight[3] > _ZERO:
        e = d - c
    elif weight[1] * weight[2] > _ZERO:
        e = c - b
    elif weight[1] * weight[3] > _ZERO:
        e = d - b
    return wp.normalize(e)


@wp.func
def turned(normal: _vec, to: _vec, edge: _vec, apart: real, way: _vec, mu: real):
    """The normal rotated towards the shortest connection; it rotates less far if friction rotates the connection back.

    Contacts that stick at a given plane move along its normal. If the normal is wrong by an angle, a vertex that comes
    nearer by g in the step ends beside its correct place by g times the angle, and the direction of its connection of
    length d is wrong by -g / d times the angle. If the normal simply followed the connection, the iteration would
    diverge for g > d; the Newton step is 1 / (1 + g / d) of the change. If the contact slides by s, g is reduced by s /
    mu. Motion along an edge does not rotate a connection that ends inside it.

    Args:
        normal: The present normal [1].
        to: Direction of the shortest connection [1].
        edge: Direction of the edge in whose interior the connection ends [1].
        apart: Length d of the connection [m].
        way: Displacement of the first end of the connection relative to its second end in the step [m].
        mu: Coefficient of static friction [1].
    """
    change = to - normal
    if mu > _ZERO:
        g = -wp.dot(way, to)
        s = wp.length(way + g * to)
        across = change - wp.dot(change, edge) * edge
        change -= across * (_ONE - apart / (apart + wp.max(g - s / mu, _ZERO)))
    return wp.normalize(normal + change)


@wp.func
def faces_away(normal: _vec, r: _vec):
    """Whether a plane is too far from perpendicular to a shortest connection r to hold its ends apart."""
    return wp.abs(wp.dot(normal, r)) < _ALIGNED * wp.length(r)


@wp.func
def part_of_turn(round: int):
    """Part of the way to the plane at the end that a plane turns in an update.

    Planes of bodies that rotate in a long step swing about their final places: an update reverses their error, and
    reduces it by little. Half a turn then removes this error, and whole turns in between the others.
    """
    return wp.where(round > _SWINGS and round % 2 == 0, real(0.5), _ONE)


@wp.kernel(enable_backward=False)
def update_planes_kernel(
    # state
    tolerance: real,
    x: wp.array[_vec],
    z: wp.array[NODE],
    # work
    check: wp.array[int],
    asked: wp.array[int],
    rounds: wp.array[int],
    left: wp.array[int],
    shortened: int,
    # out
    pairs_out: PairArrays,
    added_out: wp.array[int],
    islands_out: Islands,
):
    """Update the planes in components whose step is near its end, and count planes that rotated too far.

    A pair whose nearest points are not inside both sides any more is no longer a contact; if its sides would then pass
    through each other, detection adds the pair again. If a shortest connection reverses its direction, its plane is
    frozen.

    In components whose moves are `shortened` (1) planes are updated after a search, at the end of the shortened move,
    and never frozen; in all others they are updated before it.
    """
    w, p = wp.tid()
    if check[w] == 0 or p >= wp.min(pairs_out.count[w], pairs_out.capacity):
        return
    component = w * islands_out.count + component_of(islands_out, w, islands_out.entries + p)
    if asked[component] < 1 or rounds[component] > _UPDATES or int(left[component] > 0) != shortened:
        return
    m = w * pairs_out.capacity + p
    kind = pairs_out.kind[m]
    if kind < FACE:
        return
    a, b, c, d = ends_of(pairs_out, x, z, w, pairs_out.node[m])
    if kind > HELD:
        if faces_away(pairs_out.normal[m], gap_of(kind - HELD, a, b, c, d)):
            pairs_out.kind[m] = NONE
            wp.atomic_add(added_out, w, 1)
            note_change(pairs_out, islands_out, w, pairs_out.node[m])
        return
    old = pairs_out.normal[m]
    normal, weight, holds = plane_of(kind, pairs_out.side[m], old, pairs_out.weight[m], a, b, c, d)
    change = wp.max(wp.length(normal - old), wp.length(weight - pairs_out.weight[m]))
    near = kind > NEAREST
    if near:
        ua, ub, uc, ud = displacements_of(pairs_out, z, w, pairs_out.node[m])
        way = weight[0] * ua + weight[1] * ub + weight[2] * uc + weight[3] * ud
        apart = wp.length(weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d)
        mu, extra = friction_of(pairs_out, w, pairs_out.node[m])
        if holds == 1:
            normal = turned(old, normal, along_edge(weight, a, b, c, d), apart, way, mu + extra)
        holds = wp.max(holds, shortened)  # a point that is free of collisions is on the right side
    elif holds == 1:
        holds = int(not faces_away(normal, gap_of(kind, a, b, c, d)))
    if holds == 0:
        pairs_out.kind[m] = wp.where(near, kind - NEAREST + HELD, NONE)
    else:
        part = part_of_turn(rounds[component])
        pairs_out.normal[m] = wp.normalize(old + part * (normal - old))
        pairs_out.weight[m] += part * (weight - pairs_out.weight[m])
    if pairs_out.redundant[m] == 0 and (holds == 0 or change > wp.where(near, _NEAR * tolerance, tolerance)):
        wp.atomic_add(added_out, w, 1)
        note_change(pairs_out, islands_out, w, pairs_out.node[m])


@wp.func
def same_connection(pairs: PairArrays, m: int, k: int):
    """Whether two pairs have the same weights at the same nodes, or the same weights with the opposite sign."""
    a = pairs.weight[m]
    b = pairs.weight[k]
    i = pairs.node[m]
    j = pairs.node[k]
    common = _ZERO
    for p in range(4):
        for q in range(4):
            if i[p] == j[q]:
                common += a[p] * b[q]
    b *= wp.sign(common)
    off = _ZERO
    for p in range(4):
        r = a[p]
        for q in range(4):
            if i[p] == j[q]:
                r -= b[q]
                b[q] = _ZERO
        off = wp.max(off, wp.abs(r))
    for q in range(4):
        off = wp.max(off, wp.abs(b[q]))
    return off <= _SAME


@wp.func
def has_connection(kind: int):
    """Whether a pair is held at the plane perpendicular to its shortest connection."""
    return kind > NEAREST and kind <= HELD


@wp.kernel(enable_backward=False)
def same_connection_kernel(
    # work
    check: wp.array[int],
    asked: wp.array[int],
    # out
    pairs_out: PairArrays,
    added_out: wp.array[int],
    islands_out: Islands,
):
    """Mark the first of several pairs with the same shortest connection as a contact, and all others as redundant.

    Count pairs that change between contact and redundant. A vertex over another vertex forms a pair with each edge and
    face around that vertex; as soon as that vertex moves, each of these pairs has a different shortest connection.
    """
    w, p = wp.tid()
    if check[w] == 0 or p >= wp.min(pairs_out.count[w], pairs_out.capacity):
        return
    if asked[w * islands_out.count + component_of(islands_out, w, islands_out.entries + p)] < 1:
        return
    first = w * pairs_out.capacity
    m = first + p
    redundant = int(0)
    if has_connection(pairs_out.kind[m]):
        k = first
        while k < m and redundant == 0:
            if has_connection(pairs_out.kind[k]) and same_connection(pairs_out, m, k):
                redundant = int(1)
            k += 1
    if redundant != pairs_out.redundant[m]:
        wp.atomic_add(added_out, w, 1)
        note_change(pairs_out, islands_out, w, pairs_out.node[m])
    pairs_out.redundant[m] = redundant
