"""Continuous collision detection between moving surfaces: pairs of a vertex and a face, or of two edges.

At the end of a step, the plane of the face, or the plane that both edges span, has a normal n. A pair has two sides:
the vertex and the face, or the two edges. The vector between the nearest points of the sides is a sum over the four
nodes with weights a_k (negative on the second side), and the distance is

    phi = n . sum a_k x_k - clearance.

If a vertex is nearest to an edge, or to another vertex, neither of these planes is perpendicular to the shortest
connection. If the sides of such a pair would pass through each other, they are held apart at the plane perpendicular to
the shortest connection: first to the connection at the time of passing, later, as for all planes, to the connection at
the end of the step (`planes`). If they would pass through each other again, the plane at that time is frozen.

A pair becomes a contact when its sides would pass through each other on their path, or would be too near at the end.
The path is followed by conservative advancement: the distance gives a time within which the sides cannot meet (Li,
Kaufman & Jiang 2021, "Codimensional incremental potential contact", additive CCD); no root has to be found, so that
rounding cannot miss one.

If surfaces touch when a step begins, to rounding or to 5e-6 of an edge, their shortest connection has no direction. The
faces around the nearest points then give the outward direction, and the pair is treated as if it began a thousandth of
the clearance apart in that direction.

Detection reads the present contacts but does not change them: threads append results to a list in any order, and
`merge` makes contacts of the list in an order that does not depend on threads.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, real_numpy, vector
from warpbots.solvers.projective.contact.body_boxes import BodyBoxes, is_within_reach, path_box
from warpbots.solvers.projective.contact.pair_arrays import (
    EDGES,
    FACE,
    HELD,
    NEAREST,
    NONE,
    HitArrays,
    PairArrays,
    both_rigid,
    clearance_of,
    has_failed,
    margin_of,
    most_of,
    never_meet,
    note_change,
)
from warpbots.solvers.projective.contact.pair_geometry import advance, gap_of, may_come_near, nearest, pair_geometry
from warpbots.solvers.projective.contact.pairs import displacements_of, starts_of
from warpbots.solvers.projective.contact.second_attempt import note_free
from warpbots.solvers.projective.contact.surface_search import SearchControl
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands

__all__ = ["find_edges_kernel", "find_faces_kernel", "path_boxes_kernel", "same_plane"]

_vec, _vec4 = vector(3), vector(4)
_ZERO, _ONE = wp.constant(real(0.0)), wp.constant(real(1.0))
_HOLD = wp.constant(2)  # searches after which a pair that still passes is held in any case
_SETTLED = wp.constant(8)  # searches in which the plane of a contact may rotate to its final place
_SAME = wp.constant(real(0.99))  # cosine between normals above which planes count as one
_PRESSED = wp.constant(real(0.9))  # clearances below which a pair without a plane is held at its distance
_END = wp.constant(real(0.01))  # part of an edge that counts as its end
_TOUCHING = wp.constant(real(8.0 * np.finfo(real_numpy).eps))  # distance that is rounding [largest coordinate]
_SEPARATE = wp.constant(real(0.01))  # distance at which a contact has kept its sides apart [clearances]
_PART = wp.constant(real(1e-3))  # clearances by which surfaces that touch are parted, to have a direction
_FACING = wp.constant(real(0.5e-3))  # distance, or depth, at which surfaces touch [clearances]
_ALIGNED = wp.constant(
    real(0.8)
)  # cosine between a plane's normal and the shortest distance, below which the plane does not count


@wp.kernel(enable_backward=False)
def path_boxes_kernel(
    # model
    pairs: PairArrays,
    corners: wp.array2d[int],
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    islands: Islands,
    searches: wp.array[int],
    asked: wp.array[int],
    # out
    lower_out: wp.array[wp.vec3],
    upper_out: wp.array[wp.vec3],
):
    """Write the box around the path of a face or an edge, enlarged by the clearance and, in the first search, margin.

    Components whose step has failed count as resting at their start.
    """
    w, k = wp.tid()
    low = _vec(real(1e30), real(1e30), real(1e30))
    high = -low
    for c in range(corners.shape[1]):
        own_low, own_high = path_box(pairs, islands, asked, x, u, w, corners[k, c])
        low = wp.min(low, own_low)
        high = wp.max(high, own_high)
    n = w * corners.shape[0] + k
    j = corners[k, 0]
    around = wp.vec3(wp.float32(pairs.clearance[j] + wp.where(searches[w] == 0, pairs.margin[j], _ZERO)))
    lower_out[n] = wp.vec3(low) - around
    upper_out[n] = wp.vec3(high) + around


@wp.func
def inside(kind: int, weight: _vec4):
    """Whether the nearest points are inside both sides: of two edges away from their ends, of a face with its border.

    Faces share their borders, and `same_plane` keeps one of them; without borders, neither would take a vertex there.
    """
    least = wp.min(-weight[2], -weight[3])
    if kind == FACE:
        least = wp.min(least, -weight[1]) + real(2.0) * _END
    else:
        least = wp.min(least, wp.min(weight[0], weight[1]))
    return int(least >= _END)


@wp.func
def same_plane(vertex: int, normal: _vec, node: wp.vec4i, other: _vec):
    """Whether a vertex is over two faces in nearly the same plane, so that one of them is enough."""
    return node[0] == vertex and wp.dot(normal, other) > _SAME


@wp.func
def outward(pairs: PairArrays, x: wp.array[_vec], w: int, i: int):
    """Unit outer normal, averaged by area over the faces around a point when the step begins; 0 for sheets."""
    first = w * pairs.nodes
    total = _vec()
    for k in range(pairs.around[i], pairs.around[i + 1]):
        f = pairs.face[pairs.outer[k]]
        o = x[first + f[0]]
        total += wp.cross(x[first + f[1]] - o, x[first + f[2]] - o)
    return wp.normalize(total)


@wp.func
def away(pairs: PairArrays, x: wp.array[_vec], w: int, node: wp.vec4i, weight: _vec4):
    """Direction from the second side of a pair to the first by their outer normals; 0 between sheets."""
    out = _vec()
    for k in range(4):
        if weight[k] != _ZERO:
            out -= weight[k] * outward(pairs, x, w, node[k])
    return wp.normalize(out)


@wp.func
def parting(
    pairs: PairArrays, x: wp.array[_vec], w: int, kind: int, node: wp.vec4i, a: _vec, b: _vec, c: _vec, d: _vec
):
    """Small displacement that moves the first side of a pair out of the second if the sides touch; otherwise 0."""
    o = x[w * pairs.nodes + node[0]]
    weight = nearest(kind, a, b, c, d)
    r = weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d
    clearance = clearance_of(pairs, node)
    rounding = _TOUCHING * wp.max(wp.max(wp.abs(o[0]), wp.abs(o[1])), wp.abs(o[2]))
    if wp.length(r) > wp.max(rounding, _FACING * clearance):
        return _vec()
    return _PART * clearance * away(pairs, x, w, node, weight)


@wp.func
def rests(pairs: PairArrays, islands: Islands, w: int, i: int):
    """Whether a point does not take part in the present step."""
    component = pairs.component[i]
    still = bool(True)
    if component >= 0:
        still = islands.moves[w * islands.count + component] == 0
    return still


@wp.func
def examine(
    pairs: PairArrays, islands: Islands, control: SearchControl, x: wp.array[_vec], u: wp.array[NODE], w: int,
    kind: int, node: wp.vec4i, key: wp.int64, spare: int, within: real, near_out: wp.array[int], hits_out: HitArrays,
):  # fmt: skip
    """List a pair whose sides would pass through each other or end too near; returns 1 if they pass but are not listed.

    A `spare` pair, inside a flat part of two rigid surfaces, is listed only if its sides still pass through each other
    after other pairs have become contacts, or if surfaces intersect: otherwise a corner or a ridge touches, too.

    At first a pair is listed only if its nearest points are inside both sides, and its plane is perpendicular to the
    shortest connection. If sides still pass through each other when all such pairs are contacts, their pair is listed
    in any case. A pair that ends far within the clearance, such as two tips, is always listed. The first search also
    counts pairs that could come within the margin.
    """
    if never_meet(pairs, node[0], node[3]):
        return 0
    if rests(pairs, islands, w, node[0]) and rests(pairs, islands, w, node[3]):
        return 0
    if most_of(pairs, islands, control.asked, w, node[0], node[3]) < 1:
        return 0
    if has_failed(pairs, islands, control.asked, w, node[0]) or has_failed(pairs, islands, control.asked, w, node[3]):
        return 0
    first_search = int(control.searches[w] == 0)
    hold = int(most_of(pairs, islands, control.rounds, w, node[0], node[3]) >= _HOLD)
    if most_of(pairs, islands, control.left, w, node[0], node[3]) > 0:
        hold = 1  # the move ends where they meet, so nothing else will keep them apart
    lost = most_of(pairs, islands, control.lost, w, node[0], node[3])
    clearance = clearance_of(pairs, node)
    a, b, c, d = starts_of(pairs, x, w, node)
    ua, ub, uc, ud = displacements_of(pairs, u, w, node)
    apart = parting(pairs, x, w, kind, node, a, b, c, d)
    a += apart
    if kind == EDGES:
        b += apart
    if first_search == 1:
        if not may_come_near(kind, clearance + margin_of(pairs, node), a, b, c, d, ua, ub, uc, ud):
            return 0
        wp.atomic_add(near_out, w, 1)
    near = real(0.5) * wp.min(clearance, wp.length(gap_of(kind, a, b, c, d)))
    t = advance(kind, near, a, b, c, d, ua, ub, uc, ud)
    passes = int(t <= _ONE)
    if passes == 1:
        note_free(pairs, islands, control.free, w, node[0], node[3], t)
    if passes == 0:
        t = _ONE
        if wp.length(gap_of(kind, a + ua, b + ub, c + uc, d + ud)) >= within * clearance:
            return 0
    if spare == 1 and lost == 0 and passes * hold == 0:
        return passes
    a = a + t * ua
    b = b + t * ub
    c = c + t * uc
    d = d + t * ud
    weight = nearest(kind, a, b, c, d)
    r = weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d
    normal, of_plane, holds = pair_geometry(kind, _ONE, a, b, c, d)
    along = wp.dot(normal, r) / wp.length(r)
    side = wp.where(along < _ZERO, -_ONE, _ONE)
    became = kind
    if holds == 1 and side * along >= _ALIGNED and inside(kind, of_plane) == 1:
        normal = side * normal
        weight = of_plane
    elif (passes == 0 and wp.length(r) < _PRESSED * clearance) or (passes == 1 and hold == 1):
        if passes == 0 and wp.dot(r, away(pairs, x, w, node, weight)) < _ZERO:
            return 0  # other contacts have not parted the sides yet: this connection leads deeper
        became = NEAREST + kind
        normal = wp.normalize(r)
    else:
        return passes
    first = w * pairs.capacity
    slot = int(-1)
    for k in range(wp.min(pairs.count[w], pairs.capacity)):
        if pairs.node[first + k] == node:
            slot = k
        elif (
            lost == 0 and became == FACE and pairs.kind[first + k] == FACE
            and same_plane(node[0], normal, pairs.node[first + k], pairs.normal[first + k])
        ):  # fmt: skip
            return 0
    if slot >= 0:
        was = pairs.kind[first + slot]
        if lost == 0 and was != NONE:
            v = pairs.weight[first + slot]
            rest = _ONE - t
            end = v[0] * (a + rest * ua) + v[1] * (b + rest * ub) + v[2] * (c + rest * uc) + v[3] * (d + rest * ud)
            if wp.dot(pairs.normal[first + slot], end) >= _SEPARATE * clearance:
                return 0  # it ends on the side on which it began, however far its skin yields
        settles = lost == 0 and most_of(pairs, islands, control.rounds, w, node[0], node[3]) < _SETTLED
        if (passes == 0 or settles) and was != NONE:
            return 0
        if hold == 1:  # its plane did not stop it: take the plane of the present contact
            became = wp.where(was > NEAREST, HELD, NEAREST) + kind
    p = wp.atomic_add(hits_out.count, w, 1)
    if p < hits_out.room:
        p = w * hits_out.room + p
        hits_out.key[p] = key
        hits_out.slot[p] = slot
        hits_out.kind[p] = became
        hits_out.node[p] = node
        hits_out.side[p] = side
        hits_out.normal[p] = normal
        hits_out.weight[p] = weight
    return 0


@wp.kernel(enable_backward=False)
def find_faces_kernel(
    # model
    pairs: PairArrays,
    # state
    within: real,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    faces: wp.uint64,
    boxes: BodyBoxes,
    # out
    control_out: SearchControl,
    added_out: wp.array[int],
    near_out: wp.array[int],
    islands_out: Islands,
    hits_out: HitArrays,
):
    """Examine all pairs of a vertex and a face whose boxes overlap, within the reach of the body of the vertex."""
    w, k = wp.tid()
    i = pairs.vertex[k]
    if control_out.check[w] == 0 or has_failed(pairs, islands_out, control_out.asked, w, i):
        return
    y = x[w * pairs.nodes + i]
    z = y + at(u, w * pairs.stride + i)
    around = wp.vec3(wp.float32(wp.where(control_out.searches[w] == 0, real(0.5) * pairs.margin[i], _ZERO)))
    low = wp.vec3(wp.min(y, z)) - around
    high = wp.vec3(wp.max(y, z)) + around
    if not is_within_reach(pairs, boxes, w, i, low, high):
        return
    query = wp.bvh_query_aabb(faces, low, high, wp.bvh_get_group_root(faces, w))
    item = int(0)
    while wp.bvh_query_next(query, item):
        j = item - w * pairs.face.shape[0]
        f = pairs.face[j]
        if f[0] != i and f[1] != i and f[2] != i:
            node = wp.vec4i(i, f[0], f[1], f[2])
            key = wp.int64(k) * wp.int64(pairs.face.shape[0]) + wp.int64(j)
            spare = int(pairs.level[k] == 1 and both_rigid(pairs, i, f[0]))
            passes = examine(
                pairs, islands_out, control_out, x, u, w, FACE, node, key, spare, within, near_out, hits_out
            )  # fmt: skip
            if passes == 1:
                wp.atomic_add(added_out, w, 1)
                note_change(pairs, islands_out, w, node)


@wp.func
def needless(pairs: PairArrays, k: int, j: int):
    """Whether one of two edges lies in a flat part of a rigid surface, and the other one belongs to a soft body.

    The distance of an edge from a plane is least at an end of the edge, or where it leaves the flat part over a ridge.
    A contact at the flat edge would share the force of these contacts in a way that only skins determine.
    """
    one = pairs.flat[k] == 1 and pairs.body[pairs.edge[j][0]] < pairs.soft
    other = pairs.flat[j] == 1 and pairs.body[pairs.edge[k][0]] < pairs.soft
    return one or other


@wp.kernel(enable_backward=False)
def find_edges_kernel(
    # model
    pairs: PairArrays,
    # state
    within: real,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    edges: wp.uint64,
    lower: wp.array[wp.vec3],
    upper: wp.array[wp.vec3],
    boxes: BodyBoxes,
    # out
    control_out: SearchControl,
    added_out: wp.array[int],
    near_out: wp.array[int],
    islands_out: Islands,
    hits_out: HitArrays,
):
    """Examine all pairs of edges whose boxes overlap, within the reach of the body of the first edge."""
    w, k = wp.tid()
    if control_out.check[w] == 0:
        return
    first = w * pairs.edge.shape[0]
    first_key = wp.int64(pairs.vertex.shape[0]) * wp.int64(pairs.face.shape[0])
    e = pairs.edge[k]
    if not is_within_reach(pairs, boxes, w, e[0], lower[first + k], upper[first + k]):
        return
    query = wp.bvh_query_aabb(edges, lower[first + k], upper[first + k], wp.bvh_get_group_root(edges, w))
    item = int(0)
    while wp.bvh_query_next(query, item):
        j = item - first
        f = pairs.edge[j]
        apart = e[0] != f[0] and e[0] != f[1] and e[1] != f[0] and e[1] != f[1]
        if j > k and apart and not needless(pairs, k, j):
            node = wp.vec4i(e[0], e[1], f[0], f[1])
            key = first_key + wp.int64(k) * wp.int64(pairs.edge.shape[0]) + wp.int64(j)
            spare = int(pairs.flat[k] + pairs.flat[j] > 0 and both_rigid(pairs, e[0], f[0]))
            passes = examine(
                pairs, islands_out, control_out, x, u, w, EDGES, node, key, spare, within, near_out, hits_out
            )  # fmt: skip
            if passes == 1:
                wp.atomic_add(added_out, w, 1)
                note_change(pairs, islands_out, w, node)
