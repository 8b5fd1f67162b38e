"""Geometry of pairs: a vertex and a face, or two edges, at an instant and along straight paths."""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.contact.pair_arrays import EDGES, FACE, HELD, NEAREST

__all__ = ["advance", "gap_of", "may_come_near", "nearest", "pair_geometry", "plane_of"]

_vec, _vec4 = vector(3), vector(4)
_ZERO, _ONE = wp.constant(real(0.0)), wp.constant(real(1.0))
_PATIENCE = wp.constant(1000)  # advances after which a path is taken to end in contact
_BEYOND = wp.constant(real(0.25))  # distance beyond an edge up to which the plane of a face holds [its length]
_PARALLEL = wp.constant(real(1e-3))  # sine below which two edges are parallel
_PLANAR = wp.constant(real(0.03))  # sine below which two edges span no plane: it would rotate thirty times as fast


@wp.func
def in_triangle(p: _vec, a: _vec, b: _vec, c: _vec):
    """Corner weights of the point of triangle abc nearest to p (Ericson, "Real-Time Collision Detection", 5.1.5)."""
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
    """Coordinates along the segments ab and cd, in [0, 1], of their nearest points (Ericson 2005, 5.1.9)."""
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
    """Weights of the four nodes in the shortest vector from the second side of a pair to the first."""
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
    """Shortest vector from the second side of a pair to the first."""
    w = nearest(kind, a, b, c, d)
    return w[0] * a + w[1] * b + w[2] * c + w[3] * d


@wp.func
def advance(kind: int, near: real, a: _vec, b: _vec, c: _vec, d: _vec, ua: _vec, ub: _vec, uc: _vec, ud: _vec):
    """Fraction of the path after which the sides of a pair are nearer than `near`; 2 if they never are."""
    mean = real(0.25) * (ua + ub + uc + ud)
    ea = wp.length(ua - mean)
    eb = wp.length(ub - mean)
    ec = wp.length(uc - mean)
    ed = wp.length(ud - mean)
    speed = ea + wp.max(eb, wp.max(ec, ed))
    if kind == EDGES:
        speed = wp.max(ea, eb) + wp.max(ec, ed)
    room = wp.length(gap_of(kind, a, b, c, d)) - near
    least = real(0.1) * wp.min(room, near)  # also of `near`: a tenth of a long path may exceed the clearance
    t = _ZERO
    near_at = real(2.0)
    if room <= _ZERO:
        near_at = _ZERO
    elif speed > _ZERO:
        for _ in range(_PATIENCE):
            t += real(0.9) * room / speed
            if t >= _ONE:
                break
            room = wp.length(gap_of(kind, a + t * ua, b + t * ub, c + t * uc, d + t * ud)) - near
            if room <= least:
                near_at = t
                break
        if t < _ONE:  # near, or too many advances: taken to end in contact
            near_at = t
    return near_at


@wp.func
def may_come_near(kind: int, reach: real, a: _vec, b: _vec, c: _vec, d: _vec, ua: _vec, ub: _vec, uc: _vec, ud: _vec):
    """Whether a pair could come nearer than `reach`, by its initial distance and the path lengths of its nodes."""
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
    """Plane normal of a pair, weights, and whether the points with these weights are inside both sides or close by."""
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
        if area > _PLANAR * _PLANAR * wp.dot(e, e) * wp.dot(f, f):
            s = wp.dot(wp.cross(c - a, f), m) / area
            t = wp.dot(wp.cross(c - a, e), m) / area
            n = side * wp.normalize(m)
            w = _vec4(_ONE - s, s, t - _ONE, -t)
            if wp.min(wp.min(s, _ONE - s), wp.min(t, _ONE - t)) >= -_BEYOND:
                holds = 1
    return n, w, holds


@wp.func
def plane_of(kind: int, side: real, normal: _vec, weight: _vec4, a: _vec, b: _vec, c: _vec, d: _vec):
    """Normal and weights of a pair of any kind at the positions of its nodes, and whether the plane is valid there.

    Args:
        kind: Kind of the pair.
        side: Sign of the normal (1 or -1), as in `PairArrays`.
        normal: Normal when the plane of the pair was last updated [1].
        weight: Weights when the plane was last updated [1].
        a: Position of the first node [m].
        b: Position of the second node [m].
        c: Position of the third node [m].
        d: Position of the fourth node [m].
    """
    n = normal
    v = weight
    holds = int(1)
    if kind <= NEAREST:
        n, v, holds = pair_geometry(kind, side, a, b, c, d)
    elif kind <= HELD:
        v = nearest(kind - NEAREST, a, b, c, d)
        n = wp.normalize(v[0] * a + v[1] * b + v[2] * c + v[3] * d)
        holds = int(wp.dot(n, normal) > _ZERO)  # otherwise they have changed sides
    return n, v, holds
