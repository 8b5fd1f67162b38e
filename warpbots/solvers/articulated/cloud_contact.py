"""Contact of moving point clouds with moving solids: wrenches, and their derivatives with respect to poses and twists.

A pair consists of a group of points of a body a, and a solid of another body b or of the world, under one contact law.
The contacts of a pair together exert a wrench W on body a and -W on body b. The wrench changes by

    dW = K dxi - L dzeta + D (dV_a - dV_b)

if the bodies a and b are displaced by the twists dxi and dzeta, and their twists change by dV_a and dV_b. So a pair
needs only the three matrices K, L and D, for any number of points in contact.
"""

import warp as wp

from warpbots.contact.penalty import TOUCH, damping_bounds, penalty_force, penalty_tangents
from warpbots.contact.solid import SPLINE, Solids, solid_curvature, solid_distance, solid_frame
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
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, spatial, vec3
from warpbots.solvers.articulated.step_arrays import Links, Pairs
from warpbots.solvers.articulated.thread_team import sync

__all__ = [
    "add_pair_contacts",
    "apply",
    "area_of",
    "body_pose",
    "body_twist",
    "bound_group",
    "bounds_overlap",
    "half_edges",
    "law_of",
    "rim_center",
    "solid_pose",
]


@wp.func
def body_pose(tree: JointTree, links: Links, w: int, body: int):
    """Orientation and origin [m] of a body, or of the world if `body` is -1."""
    R = wp.identity(n=3, dtype=scalar)
    p = vec3()
    if body >= 0:
        R = links.body_rotation[w * tree.bodies + body]
        p = links.body_position[w * tree.bodies + body]
    return R, p


@wp.func
def body_twist(tree: JointTree, links: Links, w: int, body: int):
    """Twist of a body, or of the world if `body` is -1."""
    V = Twist()
    if body >= 0:
        V = links.twist[w * tree.elements + tree.element[body]]
    return V


@wp.func
def law_of(contacts: ContactLaws, w: int, pair: int):
    """Constants of the contact law of a pair, as arguments of `penalty_force`.

    Returns stiffness, damping, lower and upper bound of the damping, friction and viscosity.
    """
    number = contacts.pair_law[pair]
    law = w * contacts.laws + number
    k = contacts.stiffness[law]
    least, most = damping_bounds(k, contacts.restitution[law], contacts.bounded[number])
    return k, contacts.damping[law], least, most, contacts.friction[law], contacts.viscosity[law]


@wp.func
def area_of(contacts: ContactLaws, w: int, pair: int, i: int):
    """Contact area of point i in contact with the solid of a pair [m^2]."""
    point = i
    if contacts.pair_lent[pair] == 1:
        point = contacts.group_first[contacts.pair_felt[pair]]
    return contacts.area[w * contacts.points + point]


@wp.func
def bound_group(contacts: ContactLaws, pairs: Pairs, w: int, g: int):
    """Write the centre and radius of a sphere that encloses the points of group g to `pairs`.

    The centre is in the frame of the body of the group.
    """
    first = w * contacts.points + contacts.group_first[g]
    count = contacts.group_count[g]
    lower = contacts.point[first]
    upper = lower
    for i in range(1, count):
        c = contacts.point[first + i]
        lower = wp.min(lower, c)
        upper = wp.max(upper, c)
    center = scalar(0.5) * (lower + upper)
    r = scalar(0.0)
    for i in range(count):
        r = wp.max(r, wp.length(contacts.point[first + i] - center) + contacts.radius[first + i])
    pairs.center[w * contacts.groups + g] = center
    pairs.radius[w * contacts.groups + g] = r


@wp.func
def apply(blocks: wp.array[mat33], n: int, a: Twist):
    """Multiply the spatial vector a by the 6 x 6 matrix whose four blocks start at index n of `blocks`."""
    w = angular(a)
    v = linear(a)
    return spatial(blocks[n] @ w + blocks[n + 1] @ v, blocks[n + 2] @ w + blocks[n + 3] @ v)


@wp.func
def solid_pose(tree: JointTree, links: Links, solids: Solids, w: int, s: int):
    """Orientation and origin [m] of solid s."""
    R, p = body_pose(tree, links, w, solids.body[s])
    return solid_frame(solids, s, R, p)


@wp.func
def bounds_overlap(
    tree: JointTree, links: Links, contacts: ContactLaws, solids: Solids, pairs: Pairs, w: int, pair: int
):
    """1 if the bounding sphere of the points of a pair overlaps the solid of the pair, else 0."""
    g = contacts.pair_group[pair]
    s = contacts.pair_solid[pair]
    Ra, pa = body_pose(tree, links, w, contacts.group_body[g])
    R, p = solid_pose(tree, links, solids, w, s)
    gap, _n = solid_distance(solids, w, s, R, p, pa + Ra @ pairs.center[w * contacts.groups + g])
    reach = pairs.radius[w * contacts.groups + g]
    if solids.kind[s] == SPLINE:
        reach += wp.length(solids.size[s])
    return wp.where(gap > reach + TOUCH, 0, 1)


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


@wp.func
def rim_center(contacts: ContactLaws, first: int):
    """Centre of a rim in the frame of its body [m]; `first` is the index of the first of the four points of the rim."""
    return scalar(0.5) * (contacts.point[first] + contacts.point[first + 2])


@wp.func
def point_contact(
    tree: JointTree,
    links: Links,
    contacts: ContactLaws,
    solids: Solids,
    pairs: Pairs,
    w: int,
    pair: int,
    i: int,
    place: int,
):
    """Write the wrench of point i of a pair and its derivatives to index `place`, if the point is in contact.

    The contact force is f(d, n, u). A displacement eta of the body of the point relative to the solid changes the force
    by G eta. A common displacement zeta of both bodies changes the force by H zeta: the force rotates with the bodies,
    and the relative velocity u changes in the frame of the bodies, because their twists stay constant.
    """
    g = contacts.pair_group[pair]
    pairs.in_contact[place] = 0
    if pairs.free[w * contacts.candidates + contacts.pair_candidate[pair] + i] == 1:
        return
    to = touch(tree, links, contacts, solids, w, pair, i)
    if not to.d <= TOUCH:
        return
    pairs.in_contact[place] = 1
    a = contacts.group_body[g]
    V = body_twist(tree, links, w, a) - body_twist(tree, links, w, solids.body[contacts.pair_solid[pair]])
    k, c, least, most, mu, viscosity = law_of(contacts, w, pair)
    k_t = pairs.hardness[w] * viscosity
    u = linear(V) + wp.cross(angular(V), to.x)
    area = contacts.scale[w] * area_of(contacts, w, pair, contacts.group_first[g] + i)
    f = area * penalty_force(to.d, to.n, u, k, c, least, most, mu, k_t)
    F_d, F_n, F_u = penalty_tangents(to.d, to.n, u, k, c, least, most, mu, k_t)
    F_d = area * F_d
    F_n = area * F_n
    F_u = area * F_u
    X = wp.skew(to.x)
    fx = wp.skew(f)
    spin = F_u @ wp.skew(angular(V))
    G_w = wp.outer(F_d, to.d_w) + F_n @ to.n_w + spin @ to.x_w
    G_v = wp.outer(F_d, to.d_v) + F_n @ to.n_v + spin @ to.x_v
    H_w = F_u @ wp.skew(u) - spin @ X - fx
    pairs.point_wrench[place] = spatial(wp.cross(to.x, f), f)
    at = 12 * place
    K_w = X @ G_w - fx @ to.x_w
    K_v = X @ G_v - fx @ to.x_v
    pairs.point_blocks[at] = K_w
    pairs.point_blocks[at + 1] = K_v
    pairs.point_blocks[at + 2] = G_w
    pairs.point_blocks[at + 3] = G_v
    # contribution of the motion of the solid
    pairs.point_blocks[at + 4] = K_w - X @ H_w - fx @ X
    pairs.point_blocks[at + 5] = K_v - X @ spin + fx
    pairs.point_blocks[at + 6] = G_w - H_w
    pairs.point_blocks[at + 7] = G_v - spin
    XF = X @ F_u
    pairs.point_blocks[at + 8] = -(XF @ X)
    pairs.point_blocks[at + 9] = XF
    pairs.point_blocks[at + 10] = -(F_u @ X)
    pairs.point_blocks[at + 11] = F_u


@wp.func
def add_points(pairs: Pairs, w: int, m: int, count: int, lane: int, lanes: int):
    """Add the contacts that the first `count` threads of a world have evaluated to the sums of pair m.

    The order of the summation is fixed, so that runs repeat to the bit.
    """
    mask = int(0)
    for i in range(count):
        mask = mask | (pairs.in_contact[w * lanes + i] << i)
    if mask == 0:
        return
    if lane == 0:
        pairs.active[m] = 1
    for b in range(lane, 13, lanes):
        if b == 12:
            W = pairs.wrench[m]
            for i in range(count):
                if ((mask >> i) & 1) == 1:
                    W += pairs.point_wrench[w * lanes + i]
            pairs.wrench[m] = W
        else:
            block = pairs.blocks[12 * m + b]
            for i in range(count):
                if ((mask >> i) & 1) == 1:
                    block += pairs.point_blocks[12 * (w * lanes + i) + b]
            pairs.blocks[12 * m + b] = block


@wp.func
def add_pair_contacts(
    tree: JointTree,
    links: Links,
    contacts: ContactLaws,
    solids: Solids,
    pairs: Pairs,
    w: int,
    pair: int,
    lane: int,
    lanes: int,
):
    """Sum the contacts of a pair; all threads of a world take part, and each thread evaluates one point at a time."""
    count = contacts.pair_count[pair]
    for first in range(0, count, lanes):
        if first + lane < count:
            point_contact(tree, links, contacts, solids, pairs, w, pair, first + lane, w * lanes + lane)
        sync()
        add_points(pairs, w, w * contacts.pairs + pair, wp.min(lanes, count - first), lane, lanes)
        sync()
