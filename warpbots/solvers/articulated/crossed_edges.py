"""Contact of two boxes at two crossing edges, one edge of each box.

The edges may cross far from all contact points of the boxes.

A box has a centre c and half edges a_i. Along a unit vector n the separation of two boxes is

    s(n) = n . (c_A - c_B) - sum_i |n . a_i| - sum_j |n . b_j|,   n . (c_A - c_B) >= 0,

and the boxes are apart if s > 0 along one of 15 axes: the three face normals of each box and the nine directions n =
a_i x b_j / |a_i x b_j| (Gottschalk, Lin & Manocha 1996, "OBBTree"). For boxes that overlap, the axis with the greatest
s (the least depth) decides where the boxes touch. If it is a face normal, a corner touches a face; the corner is a
contact point of its box. If it is the normal of two edges, these edges touch, and their closest points lie within both
edges; s is then the distance of two lines, which is smooth. The signed distance d of two edges follows from the
greatest separation s_k along normals of two edges, and from s_m, the greatest s along all other axes:

    d = s_k S(1 - s_k / s_m),   S(z) = z'^2 (3 - 2 z'),   z' = min(1, 2 z).

So d is continuous: d is 0 when another axis gets the greatest separation. d is also 0 for edges that lie in a face (n
is then the normal of the face), for parallel edges, and at the ends of edges. No point of a box is deeper inside the
other box than the depth along any axis. The signed distances of the contact points of a pair of boxes are multiplied by
1 - S, so that a contact does not count twice and a corner takes over as the force of the edges fades. The force of
edges acts midway between their closest points. While S changes, this force has no potential.
"""

import warp as wp

from warpbots.contact.penalty import TOUCH
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3

__all__ = ["Crossing", "crossing_share", "displaced_crossing", "greatest", "on_edge", "separation"]

_AXES = wp.constant(15)
_FACES = wp.constant(6)
_ZERO, _ONE, _TWO, _HALF = (wp.constant(scalar(c)) for c in (0.0, 1.0, 2.0, 0.5))
_PARALLEL = wp.constant(scalar(1e-16))  # square of the sine of the angle between edges


@wp.func
def _sign(t: scalar):
    """Sign of t: -1 for a negative number, 1 for zero and for positive numbers."""
    return wp.where(t < _ZERO, -_ONE, _ONE)


@wp.func
def _axis(a: mat33, b: mat33, number: int):
    """Direction, of any length, of the axis with the given index: a face normal of a box or the normal of two edges.

    The direction is 0 if the two edges are parallel. The rows of a and b are the half edges of the two boxes.
    """
    n = vec3()
    if number < 3:
        n = a[number]
    elif number < _FACES:
        n = b[number - 3]
    else:
        i = (number - _FACES) // 3
        j = (number - _FACES) % 3
        n = wp.cross(a[i], b[j])
        if wp.dot(n, n) < _PARALLEL * wp.dot(a[i], a[i]) * wp.dot(b[j], b[j]):
            n = vec3()
    return n


@wp.func
def separation(a: mat33, b: mat33, r: vec3, number: int):
    """Separation s of two boxes along an axis [m], and the unit vector n along this axis towards the first box.

    Args:
        a: Half edges of the first box, as rows [m].
        b: Half edges of the second box, as rows [m].
        r: Vector from the centre of the second box to the centre of the first box [m].
        number: Index of the axis (`_axis`).
    """
    n = wp.normalize(_axis(a, b, number))
    n = _sign(wp.dot(n, r)) * n
    s = wp.dot(n, r)
    for i in range(3):
        s = s - wp.abs(wp.dot(n, a[i])) - wp.abs(wp.dot(n, b[i]))
    return s, n


@wp.func
def greatest(a: mat33, b: mat33, r: vec3):
    """Indices k and m of the two axes whose separations decide about the contact of edges.

    k is the axis with the greatest separation among the normals of two edges; m is the axis with the greatest
    separation among all axes except k.
    """
    k = int(_FACES)
    m = int(0)
    s_k = -scalar(wp.inf)
    s_m = -scalar(wp.inf)
    number = int(0)
    while number < _AXES:  # not unrolled: that would take long to compile
        s, n = separation(a, b, r, number)
        if wp.dot(n, n) > _ZERO:
            if number >= _FACES and s > s_k:
                if s_k > s_m:
                    s_m = s_k
                    m = k
                s_k = s
                k = number
            elif s > s_m:
                s_m = s
                m = number
        number += 1
    return k, m


@wp.func_grad(greatest)
def adj_greatest(a: mat33, b: mat33, r: vec3, adj_k: int, adj_m: int):
    """Adjoint of `greatest`, which does nothing because the outputs are integers."""


@wp.func
def crossing_share(s_k: scalar, s_m: scalar):
    """The share S of two edges, its derivative with respect to s_k / s_m, and 1 if the edges touch, else 0."""
    share = _ZERO * _ONE
    slope = _ZERO * _ONE
    touching = int(0)
    if s_k <= TOUCH and s_m < _ZERO and s_k > s_m:
        z = wp.min(_ONE, _TWO * (_ONE - s_k / s_m))
        share = z * z * (scalar(3.0) - _TWO * z)
        slope = -scalar(12.0) * z * (_ONE - z)
        touching = 1
    return share, slope, touching


@wp.func
def _support(a: mat33, n: vec3, skipped: int):
    """Corner of a box that is farthest along n, relative to the centre of the box.

    If `skipped` is the index of a half edge, the result is the midpoint of the farthest edge parallel to it; -1 skips
    none.
    """
    x = vec3()
    for i in range(3):
        if i != skipped:
            x = x + _sign(wp.dot(n, a[i])) * a[i]
    return x


@wp.func
def on_edge(a: mat33, b: mat33, p: vec3, q: vec3, n: vec3, number: int):
    """Closest point to the second edge on the first edge, for the two edges of axis `number`.

    The first edge belongs to the box with centre p, the second edge to the box with centre q.
    """
    i = (number - _FACES) // 3
    j = (number - _FACES) % 3
    x = p + _support(a, -n, i)
    y = q + _support(b, n, j)
    c = wp.cross(a[i], b[j])
    return x + (wp.dot(wp.cross(y - x, b[j]), c) / wp.dot(c, c)) * a[i]


@wp.struct
class Crossing:
    """Contact of two edges, and its derivatives with respect to a displacement of the first box by a twist (w, v).

    x: Point at which the contact force acts [m].
    d: Signed distance d of the edges [m].
    n: Unit vector along the normal of the edges, from the second box to the first box [1].
    d_w, d_v: Derivatives of the distance d with respect to w and v.
    n_w: Derivative of n with respect to w; the derivative with respect to v is zero.
    x_w, x_v: Derivatives of x with respect to w and v.
    share: Share S of the edges [1].
    share_w, share_v: Derivatives of the share with respect to w and v.
    """

    x: vec3
    d: scalar
    n: vec3
    d_w: vec3
    d_v: vec3
    n_w: mat33
    x_w: mat33
    x_v: mat33
    share: scalar
    share_w: vec3
    share_v: vec3


@wp.func
def _lever(a: mat33, b: mat33, p: vec3, q: vec3, n: vec3, number: int):
    """Point whose velocity along n, as a point of the first box, is the rate of the separation along axis `number`."""
    x = p + _support(a, -n, -1)
    if number < 3:
        x = q + _support(b, n, -1)
    if number >= _FACES:
        x = on_edge(a, b, p, q, n, number)
    return x


@wp.func
def displaced_crossing(a: mat33, b: mat33, p: vec3, q: vec3):
    """Contact of the edges of two boxes with the centres p and q, as a `Crossing`.

    The rows of a and b are the half edges of the boxes. If no edges touch, `d` is set to 1 m, which is out of contact,
    and all fields except `d` and `n` are zero.
    """
    out = Crossing()
    k, m = greatest(a, b, p - q)
    s_k, n = separation(a, b, p - q, k)
    s_m, n_m = separation(a, b, p - q, m)
    share, slope, touching = crossing_share(s_k, s_m)
    out.n = n
    out.d = _ONE
    if touching == 0:
        return out
    x = on_edge(a, b, p, q, n, k)
    s_w = wp.cross(x, n)
    of_m = s_k / s_m
    out.share = share
    out.share_v = slope / s_m * (n - of_m * n_m)
    out.share_w = slope / s_m * (s_w - of_m * wp.cross(_lever(a, b, p, q, n_m, m), n_m))
    out.d = s_k * share
    out.d_v = share * n + s_k * out.share_v
    out.d_w = share * s_w + s_k * out.share_w
    e = a[(k - _FACES) // 3]
    f = b[(k - _FACES) % 3]
    c = wp.cross(e, f)
    cc = wp.dot(c, c)
    one = wp.identity(n=3, dtype=scalar)
    c_w = wp.skew(f) @ wp.skew(e)
    out.n_w = (one - wp.outer(n, n)) @ c_w / wp.dot(n, c)
    # x moves by v + w x x, and slides along its edge to stay the closest point
    g = wp.cross(f, c)
    along_w = wp.transpose(c_w) @ wp.cross(-s_k * n, f) - wp.cross(x, g)
    out.x = x - _HALF * s_k * n
    out.x_v = one - wp.outer(e, g / cc) - _HALF * wp.outer(n, n)
    out.x_w = wp.outer(e, along_w / cc) - wp.skew(x) - _HALF * (wp.outer(n, s_w) + s_k * out.n_w)
    return out
