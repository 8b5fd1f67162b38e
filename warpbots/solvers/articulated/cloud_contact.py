"""Contact of moving point clouds with moving solids: wrenches, and their derivatives with respect to poses and twists.

A pair consists of a group of points of a body a, and a solid of another body b or of the world, under one contact law.
The contacts of a pair together exert a wrench W on body a and -W on body b. The wrench changes by

    dW = K dxi - L dzeta + D (dV_a - dV_b)

if the bodies a and b are displaced by the twists dxi and dzeta, and their twists change by dV_a and dV_b. So a pair
needs only the three matrices K, L and D, for any number of points in contact.
"""

import warp as wp

from warpbots.contact.penalty import TOUCH, damping_bounds, penalty_force, penalty_tangents, sticking_margin
from warpbots.contact.solid import SPLINE, Solids, solid_distance
from warpbots.solvers.articulated.robot_arrays import ContactLaws, JointTree
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, spatial
from warpbots.solvers.articulated.step_arrays import Links, Pairs
from warpbots.solvers.articulated.surface_motion import (
    WORLD,
    body_pose,
    body_twist,
    relative_velocity,
    solid_pose,
    surface_gradients,
)
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.articulated.touching_points import touch

__all__ = ["add_pair_contacts", "apply", "area_of", "bound_group", "bounds_overlap", "law_of"]


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
    if contacts.pair_reaction_area[pair] == 1:
        point = contacts.group_first[contacts.pair_reaction_group[pair]]
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


@wp.func
def apply(blocks: wp.array[mat33], n: int, a: Twist):
    """Multiply the spatial vector a by the 6 x 6 matrix whose four blocks start at index n of `blocks`."""
    w = angular(a)
    v = linear(a)
    return spatial(blocks[n] @ w + blocks[n + 1] @ v, blocks[n + 2] @ w + blocks[n + 3] @ v)


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
    b = solids.body[contacts.pair_solid[pair]]
    moves = wp.min(a, b) < WORLD
    k, c, least, most, mu, viscosity = law_of(contacts, w, pair)
    k_t = pairs.hardness[w] * viscosity
    u = relative_velocity(tree, links, w, a, b, to.x, to.n)
    slope = wp.skew(angular(body_twist(tree, links, w, a) - body_twist(tree, links, w, b)))
    belt = mat33()
    if moves:
        by_x, by_n = surface_gradients(links, w, a, b, to.n)
        slope += by_x
        belt = by_n
    pairs.margin[place] = wp.min(pairs.margin[place], sticking_margin(to.d, to.n, u, k, c, least, most, mu, k_t))
    area = contacts.scale[w] * area_of(contacts, w, pair, contacts.group_first[g] + i)
    f = area * penalty_force(to.d, to.n, u, k, c, least, most, mu, k_t)
    F_d, F_n, F_u = penalty_tangents(to.d, to.n, u, k, c, least, most, mu, k_t)
    F_d = area * F_d
    F_n = area * F_n
    F_u = area * F_u
    X = wp.skew(to.x)
    fx = wp.skew(f)
    spin = F_u @ slope
    if moves:
        F_n += F_u @ belt
    G_w = wp.outer(F_d, to.d_w) + F_n @ to.n_w + spin @ to.x_w
    G_v = wp.outer(F_d, to.d_v) + F_n @ to.n_v + spin @ to.x_v
    H_w = F_u @ wp.skew(u) - spin @ X - fx
    if moves:
        H_w -= F_u @ belt @ wp.skew(to.n)
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
