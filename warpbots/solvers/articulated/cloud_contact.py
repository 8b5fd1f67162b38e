"""Contact of point clouds with solids, both moving: wrenches, and their derivatives with respect to poses and twists.

A pair is a group of points, all of one body, against a solid of another body or of the world under one law. All its
contacts together exert a wrench W on the body and -W on the other, for which

    dW = K dxi - L dzeta + D (dV_a - dV_b)

when the bodies a and b are displaced by the twists dxi and dzeta and their twists change: three matrices for each pair,
however many points are in contact.
"""

import warp as wp

from warpbots.contact.penalty import TOUCH, damping_bounds, penalty_force, penalty_tangents
from warpbots.contact.solid import SAMPLED, Solids, solid_distance
from warpbots.solvers.articulated.robot_arrays import Contacts, Tree
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, spatial, vec3
from warpbots.solvers.articulated.step_arrays import Links, Pairs
from warpbots.solvers.articulated.thread_team import sync

__all__ = ["add_pair_contacts", "apply", "body_pose", "body_twist", "bound_group", "bounds_overlap", "law_of"]


@wp.func
def body_pose(tree: Tree, links: Links, w: int, body: int):
    """Orientation and origin of a body, or of the world."""
    R = wp.identity(n=3, dtype=scalar)
    p = vec3()
    if body >= 0:
        R = links.body_rotation[w * tree.bodies + body]
        p = links.body_position[w * tree.bodies + body]
    return R, p


@wp.func
def body_twist(tree: Tree, links: Links, w: int, body: int):
    """Twist of a body, or of the world."""
    V = Twist()
    if body >= 0:
        V = links.twist[w * tree.elements + tree.element[body]]
    return V


@wp.func
def law_of(contacts: Contacts, w: int, pair: int):
    """Constants of `penalty_force` of a pair: stiffness, damping, its bounds, friction and viscosity."""
    number = contacts.pair_law[pair]
    law = w * contacts.laws + number
    k = contacts.stiffness[law]
    least, most = damping_bounds(k, contacts.restitution[law], contacts.bounded[number])
    return k, contacts.damping[law], least, most, contacts.friction[law], contacts.viscosity[law]


@wp.func
def bound_group(contacts: Contacts, pairs: Pairs, w: int, g: int):
    """Bound the points of a group by a sphere."""
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
        r = wp.max(r, wp.length(contacts.point[first + i] - center))
    pairs.center[w * contacts.groups + g] = center
    pairs.radius[w * contacts.groups + g] = r


@wp.func
def apply(blocks: wp.array[mat33], n: int, a: Twist):
    """The matrix of four blocks times a spatial vector."""
    w = angular(a)
    v = linear(a)
    return spatial(blocks[n] @ w + blocks[n + 1] @ v, blocks[n + 2] @ w + blocks[n + 3] @ v)


@wp.func
def solid_pose(tree: Tree, links: Links, solids: Solids, w: int, s: int):
    """Orientation and origin of a solid."""
    R, p = body_pose(tree, links, w, solids.body[s])
    return R @ solids.rotation[s], p + R @ solids.position[s]


@wp.func
def bounds_overlap(tree: Tree, links: Links, contacts: Contacts, solids: Solids, pairs: Pairs, w: int, pair: int):
    """1 where the bounds of a pair's points overlap its solid, else 0."""
    g = contacts.pair_group[pair]
    s = contacts.pair_solid[pair]
    Ra, pa = body_pose(tree, links, w, contacts.group_body[g])
    R, p = solid_pose(tree, links, solids, w, s)
    middle = wp.transpose(R) @ (pa + Ra @ pairs.center[w * contacts.groups + g] - p)
    gap, _n, _C = solid_distance(solids, w, s, middle)
    reach = pairs.radius[w * contacts.groups + g]
    if solids.kind[s] == SAMPLED:
        reach += wp.length(solids.size[s])
    return wp.where(gap > reach + TOUCH, 0, 1)


@wp.func
def point_contact(
    tree: Tree, links: Links, contacts: Contacts, solids: Solids, pairs: Pairs, w: int, pair: int, i: int, place: int
):
    """Write wrench and blocks of point i of a pair to a place, if it is in contact."""
    g = contacts.pair_group[pair]
    s = contacts.pair_solid[pair]
    a = contacts.group_body[g]
    Ra, pa = body_pose(tree, links, w, a)
    R, p = solid_pose(tree, links, solids, w, s)
    Rt = wp.transpose(R)
    point = w * contacts.points + contacts.group_first[g] + i
    x = pa + Ra @ contacts.point[point]
    d, n, C = solid_distance(solids, w, s, Rt @ (x - p))
    pairs.in_contact[place] = wp.where(d <= TOUCH, 1, 0)
    if not d <= TOUCH:
        return
    V = body_twist(tree, links, w, a) - body_twist(tree, links, w, solids.body[s])
    k, c, least, most, mu, viscosity = law_of(contacts, w, pair)
    k_t = pairs.hardness[w] * viscosity
    omega = angular(V)
    speed = linear(V) + wp.cross(omega, x)
    u = Rt @ speed
    area = contacts.scale[w] * contacts.area[point]
    f = area * (R @ penalty_force(d, n, u, k, c, least, most, mu, k_t))
    F_y, F_u = penalty_tangents(d, n, C, u, k, c, least, most, mu, k_t)
    A = area * (R @ F_y @ Rt)
    B = area * (R @ F_u @ Rt)
    X = wp.skew(x)
    fx = wp.skew(f)
    pairs.point_wrench[place] = spatial(wp.cross(x, f), f)
    at = 12 * place
    # df = M dxi, with the velocity of x instead of dx
    M = A + B @ wp.skew(omega)
    XM = X @ M - fx
    pairs.point_blocks[at] = -(XM @ X)
    pairs.point_blocks[at + 1] = XM
    pairs.point_blocks[at + 2] = -(M @ X)
    pairs.point_blocks[at + 3] = M
    # the part of the motion of the solid
    N = A @ X - fx + B @ wp.skew(speed)
    pairs.point_blocks[at + 4] = -(X @ N)
    pairs.point_blocks[at + 5] = X @ A
    pairs.point_blocks[at + 6] = -N
    pairs.point_blocks[at + 7] = A
    XB = X @ B
    pairs.point_blocks[at + 8] = -(XB @ X)
    pairs.point_blocks[at + 9] = XB
    pairs.point_blocks[at + 10] = -(B @ X)
    pairs.point_blocks[at + 11] = B


@wp.func
def add_points(pairs: Pairs, w: int, m: int, count: int, lane: int, lanes: int):
    """Add the points of the first `count` threads of a world to their pair, always in the same order."""
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
    tree: Tree, links: Links, contacts: Contacts, solids: Solids, pairs: Pairs, w: int, pair: int, lane: int, lanes: int
):
    """Sum the contacts of a pair, one point for each thread at a time."""
    count = contacts.group_count[contacts.pair_group[pair]]
    for first in range(0, count, lanes):
        if first + lane < count:
            point_contact(tree, links, contacts, solids, pairs, w, pair, first + lane, w * lanes + lane)
        sync()
        add_points(pairs, w, w * contacts.pairs + pair, wp.min(lanes, count - first), lane, lanes)
        sync()
