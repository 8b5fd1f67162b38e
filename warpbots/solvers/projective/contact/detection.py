"""Contacts between surfaces that move: a vertex and a face, or two edges, found by continuous detection.

Where a pair is at the end of a step, the plane of the face, or the one that is spanned by both edges, has a normal n; a
point of either side is nearest to the other, with weights a_k over the four nodes (negative on the second side), and

    phi = n . sum a_k x_k - clearance.

Where a vertex meets an edge, or another vertex, neither plane is across the shortest way. Such a pair that would pass
through itself is held at the plane across the shortest way where they meet, which stays as it is for the step.

A pair becomes a contact when it would pass through itself on its way, or would be too near at the end. The way is
searched by conservative advancement: distances bound the time in which nothing can happen (Li, Kaufman & Jiang 2021,
"Codimensional incremental potential contact", additive CCD), which knows no roots and no rounding that could miss one.

A search reads the contacts that there are and changes none: what it finds goes to a list, as its threads come, and from
there to the contacts in an order of its own (`merge`). So contacts do not depend on which thread is first.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import at

__all__ = [
    "FACE",
    "HELD",
    "NONE",
    "HitArrays",
    "PairArrays",
    "find_edges_kernel",
    "find_faces_kernel",
    "pair_geometry",
    "same_plane",
    "way_kernel",
]

_vec = vector(3)
_vec4 = vector(4)
NONE, FACE, EDGES, HELD = (wp.constant(k) for k in range(4))
_ZERO, _ONE = wp.constant(real(0.0)), wp.constant(real(1.0))
_HOLD = wp.constant(2)  # searches after which what still passes is held in any case
_PATIENCE = wp.constant(1000)  # advances before a way is taken for one that ends in a collision
_SAME = wp.constant(real(0.99))  # cosine between normals above which planes count as one
_END = wp.constant(real(0.01))  # part of an edge that counts as its end
_BEYOND = wp.constant(real(0.25))  # how far beyond an edge, in its lengths, the plane of a face still holds
_ALIGNED = wp.constant(real(0.8))  # cosine between the plane's normal and the shortest way, below which it is no plane
_PARALLEL = wp.constant(real(1e-3))  # sine below which two edges span no plane


@wp.struct
class PairArrays:
    """Surfaces, and pairs that are contacts in this step; what differs from world to world has all worlds in one row.

    nodes: Nodes of one world, and vertices of shells after them.
    stride: Entries of a point of the iteration of one world.
    capacity: Pairs of one world that there is room for.
    clearance: Distance that surfaces keep [m].
    margin: How much further apart surfaces are at least where the first search says that nothing is near [m].
    vertex: Nodes of surfaces, shape (vertices,).
    face: Nodes of the faces, shape (faces,).
    edge: Nodes of the edges, shape (edges,).
    body: Body of a node, shape (nodes,).
    bodies: Bodies of one world: soft ones, then bones with a shell.
    attached: 1 for two bodies that belong together and do not touch, row by row, shape (bodies * bodies,).
    friction: Coulomb coefficient of a body [1], shape (worlds * bodies,).
    count: Pairs of a world, those without room among them, shape (worlds,).
    kind: Kind of a pair, shape (worlds * capacity,).
    node: Its nodes: a vertex and those of a face, or those of two edges, likewise.
    side: 1 or -1, the side of the plane on which it began, likewise.
    normal: Its normal when it was last looked at, likewise.
    weight: Its weights then [1], likewise.
    """

    nodes: int
    stride: int
    capacity: int
    clearance: real
    margin: real
    vertex: wp.array[int]
    face: wp.array[wp.vec3i]
    edge: wp.array[wp.vec2i]
    body: wp.array[int]
    bodies: int
    attached: wp.array[int]
    friction: wp.array[real]
    count: wp.array[int]
    kind: wp.array[int]
    node: wp.array[wp.vec4i]
    side: wp.array[real]
    normal: wp.array[_vec]
    weight: wp.array[_vec4]


@wp.struct
class HitArrays:
    """Pairs that a search makes contacts of, in the order in which its threads find them; all worlds in one row.

    room: Pairs of one world that there is room for.
    count: Number of them in a world, those without room among them, shape (worlds,).
    key: Number of a pair among all that could meet, a vertex and a face before two edges, shape (worlds * room,).
    slot: Number of a pair among the contacts that there are, -1 for a new one, likewise.
    kind: What kind of contact it becomes, likewise.
    node: Its nodes, likewise.
    side: Side of the plane on which it began, likewise.
    normal: Its normal, likewise.
    weight: Its weights [1], likewise.
    order: Pairs by their keys, likewise.
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


@wp.func
def in_triangle(p: _vec, a: _vec, b: _vec, c: _vec):
    """Weights of the point of a triangle that is nearest to p (Ericson, "Real-Time Collision Detection", 5.1.5)."""
    ab = b - a
    ac = c - a
    ap = p - a
    d1 = wp.dot(ab, ap)
    d2 = wp.dot(ac, ap)
    d3 = wp.dot(ab, p - b)
    d4 = wp.dot(ac, p - b)
    d5 = wp.dot(ab, p - c)
    d6 = wp.dot(ac, p - c)
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    w = _vec(_ONE, _ZERO, _ZERO)
    if d1 <= _ZERO and d2 <= _ZERO:
        w = _vec(_ONE, _ZERO, _ZERO)
    elif d3 >= _ZERO and d4 <= d3:
        w = _vec(_ZERO, _ONE, _ZERO)
    elif d6 >= _ZERO and d5 <= d6:
        w = _vec(_ZERO, _ZERO, _ONE)
    elif vc <= _ZERO and d1 >= _ZERO and d3 <= _ZERO:
        t = d1 / (d1 - d3)
        w = _vec(_ONE - t, t, _ZERO)
    elif vb <= _ZERO and d2 >= _ZERO and d6 <= _ZERO:
        t = d2 / (d2 - d6)
        w = _vec(_ONE - t, _ZERO, t)
    elif va <= _ZERO and d4 - d3 >= _ZERO and d5 - d6 >= _ZERO:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        w = _vec(_ZERO, _ONE - t, t)
    else:
        w = _vec(va, vb, vc) / (va + vb + vc)
    return w


@wp.func
def in_edges(a: _vec, b: _vec, c: _vec, d: _vec):
    """Places along the segments ab and cd, in [0, 1], where they are nearest (Ericson 2005, 5.1.9)."""
    e = b - a
    f = d - c
    r = a - c
    ee = wp.dot(e, e)
    ff = wp.dot(f, f)
    ef = wp.dot(e, f)
    er = wp.dot(e, r)
    fr = wp.dot(f, r)
    gap = ee * ff - ef * ef
    s = _ZERO
    if gap > _PARALLEL * _PARALLEL * ee * ff:
        s = wp.clamp((ef * fr - er * ff) / gap, _ZERO, _ONE)
    t = (ef * s + fr) / ff
    if t < _ZERO:
        t = _ZERO
        s = wp.clamp(-er / ee, _ZERO, _ONE)
    elif t > _ONE:
        t = _ONE
        s = wp.clamp((ef - er) / ee, _ZERO, _ONE)
    return s, t


@wp.func
def nearest(kind: int, a: _vec, b: _vec, c: _vec, d: _vec):
    """Weights of the vector from the second side of a pair to the first where they are nearest."""
    w = _vec4()
    if kind == FACE:
        v = in_triangle(a, b, c, d)
        w = _vec4(_ONE, -v[0], -v[1], -v[2])
    else:
        s, t = in_edges(a, b, c, d)
        w = _vec4(_ONE - s, s, t - _ONE, -t)
    return w


@wp.func
def gap_of(kind: int, a: _vec, b: _vec, c: _vec, d: _vec):
    """Vector from the second side of a pair to the first where they are nearest."""
    w = nearest(kind, a, b, c, d)
    return w[0] * a + w[1] * b + w[2] * c + w[3] * d


@wp.func
def advance(kind: int, near: real, a: _vec, b: _vec, c: _vec, d: _vec, ua: _vec, ub: _vec, uc: _vec, ud: _vec):
    """Part of the way at which a pair comes nearer than `near`; 2 for one that does not."""
    mean = real(0.25) * (ua + ub + uc + ud)
    ea = wp.length(ua - mean)
    eb = wp.length(ub - mean)
    ec = wp.length(uc - mean)
    ed = wp.length(ud - mean)
    speed = ea + wp.max(eb, wp.max(ec, ed))
    if kind == EDGES:
        speed = wp.max(ea, eb) + wp.max(ec, ed)
    room = wp.length(gap_of(kind, a, b, c, d)) - near
    least = real(0.1) * room
    t = _ZERO
    found = real(2.0)
    if room <= _ZERO:
        found = _ZERO
    elif speed > _ZERO:
        for _ in range(_PATIENCE):
            t += real(0.9) * room / speed
            if t >= _ONE:
                break
            room = wp.length(gap_of(kind, a + t * ua, b + t * ub, c + t * uc, d + t * ud)) - near
            if room <= least:
                found = t
                break
        if t < _ONE:  # near, or out of patience: what may meet is taken to meet
            found = t
    return found


@wp.func
def may_meet(kind: int, reach: real, a: _vec, b: _vec, c: _vec, d: _vec, ua: _vec, ub: _vec, uc: _vec, ud: _vec):
    """Whether a pair could come nearer than `reach` on its way, by how far it is at first and how far its nodes go."""
    mean = real(0.25) * (ua + ub + uc + ud)
    ea = wp.length(ua - mean)
    eb = wp.length(ub - mean)
    far = wp.max(wp.length(uc - mean), wp.length(ud - mean))
    speed = ea + wp.max(eb, far)
    if kind == EDGES:
        speed = wp.max(ea, eb) + far
    return wp.length(gap_of(kind, a, b, c, d)) - speed <= reach


@wp.func
def pair_geometry(kind: int, side: real, a: _vec, b: _vec, c: _vec, d: _vec):
    """Normal, weights, and whether the nearest points are on both sides of a pair, or close by."""
    n = _vec()
    w = _vec4()
    holds = int(0)
    if kind == FACE:
        m = wp.cross(c - b, d - b)
        area = wp.dot(m, m)
        r = a - b
        v = wp.dot(wp.cross(r, d - b), m) / area
        u = wp.dot(wp.cross(c - b, r), m) / area
        n = side * wp.normalize(m)
        w = _vec4(_ONE, v + u - _ONE, -v, -u)
        if wp.min(v, wp.min(u, _ONE - v - u)) >= -_BEYOND:
            holds = 1
    else:
        e = b - a
        f = d - c
        m = wp.cross(e, f)
        area = wp.dot(m, m)
        if area > _PARALLEL * _PARALLEL * wp.dot(e, e) * wp.dot(f, f):
            s = wp.dot(wp.cross(c - a, f), m) / area
            t = wp.dot(wp.cross(c - a, e), m) / area
            n = side * wp.normalize(m)
            w = _vec4(_ONE - s, s, t - _ONE, -t)
            if wp.min(wp.min(s, _ONE - s), wp.min(t, _ONE - t)) >= -_BEYOND:
                holds = 1
    return n, w, holds


@wp.kernel(enable_backward=False)
def way_kernel(
    pairs: PairArrays, rounds: wp.array[int], corners: wp.array2d[int], x: wp.array[_vec], u: wp.array[NODE],
    lower_out: wp.array[wp.vec3], upper_out: wp.array[wp.vec3],
):  # fmt: skip
    """Box of the way of a face or an edge, with the clearance around it and, in the first search, the margin."""
    w, k = wp.tid()
    low = _vec(real(1e30), real(1e30), real(1e30))
    high = -low
    for c in range(corners.shape[1]):
        i = corners[k, c]
        y = x[w * pairs.nodes + i]
        z = y + at(u, w * pairs.stride + i)
        low = wp.min(low, wp.min(y, z))
        high = wp.max(high, wp.max(y, z))
    n = w * corners.shape[0] + k
    around = wp.vec3(wp.float32(pairs.clearance + wp.where(rounds[w] == 0, pairs.margin, _ZERO)))
    lower_out[n] = wp.vec3(low) - around
    upper_out[n] = wp.vec3(high) + around


@wp.func
def inside(kind: int, weight: _vec4):
    """Whether both sides of a pair touch within themselves, and not at a vertex that others have, too."""
    least = wp.min(-weight[2], -weight[3])
    if kind == FACE:
        least = wp.min(least, -weight[1]) + real(2.0) * _END  # faces share their edges: one of two has to have it
    else:
        least = wp.min(least, wp.min(weight[0], weight[1]))
    return int(least >= _END)


@wp.func
def same_plane(vertex: int, normal: _vec, node: wp.vec4i, other: _vec):
    """Whether a vertex meets a face in nearly the plane of another one that it meets: one of them is enough."""
    return node[0] == vertex and wp.dot(normal, other) > _SAME


@wp.func
def examine(
    pairs: PairArrays, first_round: int, hold: int, lost: int, x: wp.array[_vec], u: wp.array[NODE], w: int, kind: int,
    node: wp.vec4i, key: wp.int64, near_out: wp.array[int], hits_out: HitArrays,
):  # fmt: skip
    """List a pair that would pass through itself, or be too near at the end; whether it passes and is not listed.

    At first a pair has to touch within both sides, at a plane across the shortest way. What still passes when all of
    these are contacts is held in any case. The first round also counts pairs that could come within the margin.
    """
    if pairs.attached[pairs.body[node[0]] * pairs.bodies + pairs.body[node[3]]] == 1:
        return 0
    n = w * pairs.nodes
    m = w * pairs.stride
    a = x[n + node[0]]
    b = x[n + node[1]]
    c = x[n + node[2]]
    d = x[n + node[3]]
    ua = at(u, m + node[0])
    ub = at(u, m + node[1])
    uc = at(u, m + node[2])
    ud = at(u, m + node[3])
    if first_round == 1:
        if not may_meet(kind, pairs.clearance + pairs.margin, a, b, c, d, ua, ub, uc, ud):
            return 0
        wp.atomic_add(near_out, w, 1)
    near = real(0.5) * wp.min(pairs.clearance, wp.length(gap_of(kind, a, b, c, d)))
    t = advance(kind, near, a, b, c, d, ua, ub, uc, ud)
    passes = int(t <= _ONE)
    if passes == 0:
        t = _ONE
        if wp.length(gap_of(kind, a + ua, b + ub, c + uc, d + ud)) >= real(0.999) * pairs.clearance:
            return 0
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
    elif passes == 1 and hold == 1:
        became = HELD
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
        if lost == 0 and pairs.kind[first + slot] == HELD:
            v = pairs.weight[first + slot]
            rest = _ONE - t
            end = v[0] * (a + rest * ua) + v[1] * (b + rest * ub) + v[2] * (c + rest * uc) + v[3] * (d + rest * ud)
            if wp.dot(pairs.normal[first + slot], end) >= real(0.5) * pairs.clearance:
                return 0  # it ends on the side on which it was
        if (passes == 0 or hold == 0) and pairs.kind[first + slot] != NONE:
            return 0
        if hold == 1:
            became = HELD  # its plane has not kept it from passing: it stays where they meet now
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
    faces: wp.uint64, check: wp.array[int], rounds: wp.array[int], lost: wp.array[int],
    x: wp.array[_vec], u: wp.array[NODE], pairs: PairArrays, found_out: wp.array[int], near_out: wp.array[int],
    hits_out: HitArrays,
):  # fmt: skip
    """Vertices that meet faces."""
    w, k = wp.tid()
    if check[w] == 0:
        return
    i = pairs.vertex[k]
    y = x[w * pairs.nodes + i]
    z = y + at(u, w * pairs.stride + i)
    low = wp.vec3(wp.min(y, z))
    high = wp.vec3(wp.max(y, z))
    query = wp.bvh_query_aabb(faces, low, high, wp.bvh_get_group_root(faces, w))
    item = int(0)
    while wp.bvh_query_next(query, item):
        j = item - w * pairs.face.shape[0]
        f = pairs.face[j]
        if f[0] != i and f[1] != i and f[2] != i:
            node = wp.vec4i(i, f[0], f[1], f[2])
            hold = int(rounds[w] >= _HOLD)
            key = wp.int64(k) * wp.int64(pairs.face.shape[0]) + wp.int64(j)
            passes = examine(
                pairs, int(rounds[w] == 0), hold, lost[w], x, u, w, FACE, node, key, near_out, hits_out
            )  # fmt: skip
            if passes == 1:
                wp.atomic_add(found_out, w, 1)


@wp.kernel(enable_backward=False)
def find_edges_kernel(
    edges: wp.uint64, lower: wp.array[wp.vec3], upper: wp.array[wp.vec3], check: wp.array[int],
    rounds: wp.array[int], lost: wp.array[int], x: wp.array[_vec], u: wp.array[NODE], pairs: PairArrays,
    found_out: wp.array[int], near_out: wp.array[int], hits_out: HitArrays,
):  # fmt: skip
    """Edges that meet edges."""
    w, k = wp.tid()
    if check[w] == 0:
        return
    first = w * pairs.edge.shape[0]
    first_key = wp.int64(pairs.vertex.shape[0]) * wp.int64(pairs.face.shape[0])
    e = pairs.edge[k]
    query = wp.bvh_query_aabb(edges, lower[first + k], upper[first + k], wp.bvh_get_group_root(edges, w))
    item = int(0)
    while wp.bvh_query_next(query, item):
        j = item - first
        f = pairs.edge[j]
        if j > k and e[0] != f[0] and e[0] != f[1] and e[1] != f[0] and e[1] != f[1]:
            node = wp.vec4i(e[0], e[1], f[0], f[1])
            hold = int(rounds[w] >= _HOLD)
            key = first_key + wp.int64(k) * wp.int64(pairs.edge.shape[0]) + wp.int64(j)
            passes = examine(
                pairs, int(rounds[w] == 0), hold, lost[w], x, u, w, EDGES, node, key, near_out, hits_out
            )  # fmt: skip
            if passes == 1:
                wp.atomic_add(found_out, w, 1)
