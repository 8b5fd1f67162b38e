"""Contact of a point, or of two edges, with a solid: place, distance and normal, with derivatives."""

import warp as wp

from warpbots.contact.penalty import TOUCH
from warpbots.contact.solid import Solids, solid_curvature
from warpbots.solvers.articulated.crossed_edges import displaced_crossing
from warpbots.solvers.articulated.robot_arrays import ContactLaws, JointTree
from warpbots.solvers.articulated.rolling_points import (
    BEND,
    RIMS,
    nearest_on_axis,
    quarter,
    rim_direction,
    slides,
)
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Links
from warpbots.solvers.articulated.surface_motion import body_pose, solid_pose

__all__ = ["half_edges", "rim_center", "touch"]


@wp.struct
class Touch:
    """Contact of a point with a solid, and its derivatives with respect to a displacement of the point's body.

    The displacement is a twist (w, v).

    x: Point at which the contact force acts [m].
    d: Signed distance from the point to the solid [m].
    n: Gradient of the distance with respect to the position [1].
    d_w, d_v: Derivatives of the distance with respect to w and v. n_w, n_v: Derivatives of n with respect to w and v.
    x_w, x_v: Derivatives of x with respect to w and v.
    """

    x: vec3
    d: scalar
    n: vec3
    d_w: vec3
    d_v: vec3
    n_w: mat33
    n_v: mat33
    x_w: mat33
    x_v: mat33


@wp.func
def half_edges(solids: Solids, s: int, R: mat33):
    """Half edges of solid s, a box with the axes R, as rows of a matrix [m]."""
    return wp.diag(solids.size[s]) @ wp.transpose(R)


@wp.func
def rim_center(contacts: ContactLaws, first: int):
    """Centre of a rim in the frame of its body [m]; `first` is the index of the first of the four points of the rim."""
    return scalar(0.5) * (contacts.point[first] + contacts.point[first + 2])


@wp.func
def crossing(tree: JointTree, links: Links, contacts: ContactLaws, solids: Solids, w: int, pair: int):
    """Contact of two crossing edges of the two boxes of a pair of edges, as a `Crossing` (`crossed_edges`)."""
    own = contacts.pair_crossed[pair]
    s = contacts.pair_solid[pair]
    Ra, pa = solid_pose(tree, links, solids, w, own)
    R, p = solid_pose(tree, links, solids, w, s)
    return displaced_crossing(half_edges(solids, own, Ra), half_edges(solids, s, R), pa, p)


@wp.func
def touching_edges(tree: JointTree, links: Links, contacts: ContactLaws, solids: Solids, w: int, pair: int):
    """Contact of the edges of the two boxes of a pair of edges, as a `Touch`."""
    found = crossing(tree, links, contacts, solids, w, pair)
    out = Touch()
    out.x = found.x
    out.d = found.d
    out.n = found.n
    out.d_w = found.d_w
    out.d_v = found.d_v
    out.n_w = found.n_w
    out.x_w = found.x_w
    out.x_v = found.x_v
    return out


@wp.func
def touch(tree: JointTree, links: Links, contacts: ContactLaws, solids: Solids, w: int, pair: int, i: int):
    """Contact of point i of the group of a pair with the solid of the pair, as a `Touch`.

    `rolling_points` describes the position of the point. For a pair of edges the result is the contact of the edges.
    """
    g = contacts.pair_group[pair]
    s = contacts.pair_solid[pair]
    kind = contacts.group_kind[g]
    first = w * contacts.points + contacts.group_first[g]
    if contacts.pair_crossed[pair] >= 0:
        return touching_edges(tree, links, contacts, solids, w, pair)
    Ra, pa = body_pose(tree, links, w, contacts.group_body[g])
    R, p = solid_pose(tree, links, solids, w, s)
    x = pa + Ra @ contacts.point[first + i]
    x_v = wp.identity(n=3, dtype=scalar)
    x_w = -wp.skew(x)
    bent = scalar(0.0)
    d_w = vec3()
    d_v = vec3()
    if slides(kind, i):
        start = contacts.point[first]
        end = contacts.point[first + 1]
        if kind == RIMS:
            start = rim_center(contacts, first)
            end = rim_center(contacts, first + 4)
        S = Ra @ (end - start)
        Rt = wp.transpose(R)
        t, curvature = nearest_on_axis(solids, w, s, Rt @ (x - p), Rt @ S)
        x = x + t * S
        x_w = -wp.skew(x)
        bent = scalar(0.5) * BEND * wp.length(S) * t * t
        if curvature > scalar(0.0):
            _d, n, C = solid_curvature(solids, w, s, R, p, x)
            CS = C @ S
            t_v = -CS / curvature
            t_w = -(wp.cross(x, CS) + wp.cross(S, n)) / curvature
            x_v += wp.outer(S, t_v)
            x_w += wp.outer(S, t_w)
            d_v = BEND * wp.length(S) * t * t_v
            d_w = BEND * wp.length(S) * t * t_w
    if kind == RIMS:
        k = wp.where(i < 4 or i == 8, 0, 4)
        middle = rim_center(contacts, first + k)
        E1 = Ra @ (contacts.point[first + k] - middle)
        E2 = Ra @ (contacts.point[first + k + 1] - middle)
        if i < 8:
            x = pa + Ra @ middle
            x_w = -wp.skew(x)
        _d, n, C = solid_curvature(solids, w, s, R, p, x)
        cosine, sine, inverse = rim_direction(n, E1, E2)
        a_n = C @ (inverse * (wp.dot(n, E1) * E2 - wp.dot(n, E2) * E1))
        a_w = inverse * (wp.dot(n, E1) * wp.cross(E2, n) - wp.dot(n, E2) * wp.cross(E1, n))
        if i < 8:
            cosine, sine = quarter(cosine, sine, i)
        V = cosine * E1 + sine * E2
        T = cosine * E2 - sine * E1
        a_w = a_w + wp.transpose(x_w) @ a_n
        x = x + V
        x_v += wp.outer(T, wp.transpose(x_v) @ a_n)
        x_w += wp.outer(T, a_w) - wp.skew(V)
    d, n, C = solid_curvature(solids, w, s, R, p, x)
    r = contacts.radius[first + i]
    out = Touch()
    out.d = d + bent - r
    out.n = n
    if out.d > TOUCH:
        return out
    out.d_v = d_v + wp.transpose(x_v) @ n
    out.d_w = d_w + wp.transpose(x_w) @ n
    beside = contacts.pair_beside[pair]
    if beside >= 0:
        edges = crossing(tree, links, contacts, solids, w, beside)
        side = wp.where(contacts.pair_group[beside] == g, scalar(-1.0), scalar(1.0))
        left = scalar(1.0) - edges.share
        out.d_v = left * out.d_v + side * out.d * edges.share_v
        out.d_w = left * out.d_w + side * out.d * edges.share_w
        out.d = left * out.d
    out.n_v = C @ x_v
    out.n_w = C @ x_w
    out.x = x - r * n
    out.x_v = x_v - r * out.n_v
    out.x_w = x_w - r * out.n_w
    return out
