"""Contact of point clouds with solids, both moving: wrenches, and how they change with poses and twists.

A pair is a group of points, all of one body, against a solid of another body or of the world under one law. All its
contacts together push the body with a wrench W, and the other with -W, for which

    dW = K dxi - L dzeta + D (dV_a - dV_b)

when the bodies a and b are displaced by the twists dxi and dzeta and their twists change: three matrices for each pair,
however many points touch.
"""

import warp as wp

from warpbots.contact.penalty import damping_bounds, penalty_force, penalty_tangents
from warpbots.contact.solid import SAMPLED, Solids, solid_distance
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, spatial, vec3
from warpbots.solvers.articulated.tree import Links, Tree

__all__ = ["Contacts", "Pairs", "apply", "body_pose", "body_twist", "bound_group", "touch_pair"]


@wp.struct
class Contacts:
    """Points, laws and what meets what.

    points: Number of points.
    groups: Number of groups.
    pairs: Number of pairs.
    laws: Number of laws.
    group_body: Body of a group of points, shape (groups,).
    group_first: Its first point, shape (groups,).
    group_count: Its number of points, shape (groups,).
    pair_group: Group of a pair, shape (pairs,).
    pair_solid: Solid of a pair, shape (pairs,).
    pair_law: Law of a pair, shape (pairs,).
    bounded: 1 for a law with a coefficient of restitution, shape (laws,).
    point: Points in the frames of their bodies [m], shape (worlds * points,).
    area: Areas of the points [m^2], shape (worlds * points,).
    stiffness: Pressure per depth of a law [Pa/m], shape (worlds * laws,).
    damping: Its damping [Pa s/m^2], shape (worlds * laws,).
    restitution: Its coefficient of restitution, if it has one [1], shape (worlds * laws,).
    friction: Its Coulomb coefficient [1], shape (worlds * laws,).
    viscosity: Its shear per speed below the cone of friction [Pa s/m], shape (worlds * laws,).
    scale: What all contact forces are multiplied by [1], shape (worlds,).
    """

    points: int
    groups: int
    pairs: int
    laws: int
    group_body: wp.array[int]
    group_first: wp.array[int]
    group_count: wp.array[int]
    pair_group: wp.array[int]
    pair_solid: wp.array[int]
    pair_law: wp.array[int]
    bounded: wp.array[int]
    point: wp.array[vec3]
    area: wp.array[scalar]
    stiffness: wp.array[scalar]
    damping: wp.array[scalar]
    restitution: wp.array[scalar]
    friction: wp.array[scalar]
    viscosity: wp.array[scalar]
    scale: wp.array[scalar]


@wp.struct
class Pairs:
    """What the contacts of each pair add up to, shape (worlds * pairs,) but the bounds.

    active: Number of threads that found contacts.
    wrench: W.
    K: Four blocks of K, row by row, shape (worlds * pairs * 4,).
    L: Four blocks of L.
    D: Four blocks of D.
    center: Centre of the bounds of a group in the frame of its body [m], shape (worlds * groups,).
    radius: Radius of the bounds [m], shape (worlds * groups,).
    hardness: What viscosities are multiplied by on the way to a solution [1], shape (worlds,).
    """

    active: wp.array[int]
    wrench: wp.array[Twist]
    K: wp.array[mat33]
    L: wp.array[mat33]
    D: wp.array[mat33]
    center: wp.array[vec3]
    radius: wp.array[scalar]
    hardness: wp.array[scalar]


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
def bound_group(contacts: Contacts, pairs: Pairs, w: int, g: int):
    """Bound the points of a group by a ball."""
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
def add_blocks(blocks: wp.array[mat33], n: int, tl: mat33, tr: mat33, bl: mat33, br: mat33):
    """Add four blocks to those from `n` on."""
    wp.atomic_add(blocks, n, tl)
    wp.atomic_add(blocks, n + 1, tr)
    wp.atomic_add(blocks, n + 2, bl)
    wp.atomic_add(blocks, n + 3, br)


@wp.func
def apply(blocks: wp.array[mat33], n: int, a: Twist):
    """The matrix of four blocks times a spatial vector."""
    w = angular(a)
    v = linear(a)
    return spatial(blocks[n] @ w + blocks[n + 1] @ v, blocks[n + 2] @ w + blocks[n + 3] @ v)


@wp.func
def touch_pair(
    tree: Tree, links: Links, contacts: Contacts, solids: Solids, pairs: Pairs, w: int, pair: int, lane: int, lanes: int
):
    """Add up the contacts of a pair that fall to this thread."""
    g = contacts.pair_group[pair]
    s = contacts.pair_solid[pair]
    a = contacts.group_body[g]
    b = solids.body[s]
    Ra, pa = body_pose(tree, links, w, a)
    Rb, pb = body_pose(tree, links, w, b)
    R = Rb @ solids.rotation[s]
    p = pb + Rb @ solids.position[s]
    Rt = wp.transpose(R)
    middle = Rt @ (pa + Ra @ pairs.center[w * contacts.groups + g] - p)
    gap, _n, _C = solid_distance(solids, s, middle)
    reach = pairs.radius[w * contacts.groups + g]
    if solids.kind[s] == SAMPLED:
        reach += wp.length(solids.size[s])
    if gap > reach:
        return
    V = body_twist(tree, links, w, a) - body_twist(tree, links, w, b)
    law = w * contacts.laws + contacts.pair_law[pair]
    k = contacts.stiffness[law]
    c = contacts.damping[law]
    least, most = damping_bounds(k, contacts.restitution[law], contacts.bounded[contacts.pair_law[pair]])
    mu = contacts.friction[law]
    k_t = pairs.hardness[w] * contacts.viscosity[law]
    scale = contacts.scale[w]
    omega = angular(V)
    at = w * contacts.points + contacts.group_first[g]
    found = int(0)
    W = Twist()
    Ktl = mat33()
    Ktr = mat33()
    Kbl = mat33()
    Kbr = mat33()
    Ltl = mat33()
    Ltr = mat33()
    Lbl = mat33()
    Lbr = mat33()
    Dtl = mat33()
    Dtr = mat33()
    Dbl = mat33()
    Dbr = mat33()
    for i in range(lane, contacts.group_count[g], lanes):
        x = pa + Ra @ contacts.point[at + i]
        d, n, C = solid_distance(solids, s, Rt @ (x - p))
        if d < scalar(0.0):
            found += 1
            speed = linear(V) + wp.cross(omega, x)
            u = Rt @ speed
            area = scale * contacts.area[at + i]
            f = area * (R @ penalty_force(d, n, u, k, c, least, most, mu, k_t))
            F_y, F_u = penalty_tangents(d, n, C, u, k, c, least, most, mu, k_t)
            A = area * (R @ F_y @ Rt)
            B = area * (R @ F_u @ Rt)
            X = wp.skew(x)
            fx = wp.skew(f)
            W += spatial(wp.cross(x, f), f)
            # df = M dxi, with the velocity of x in the place of dx
            M = A + B @ wp.skew(omega)
            Ktl -= (X @ M - fx) @ X
            Ktr += X @ M - fx
            Kbl -= M @ X
            Kbr += M
            # and what the motion of the solid takes of it
            N = A @ X - fx + B @ wp.skew(speed)
            Ltl -= X @ N
            Ltr += X @ A
            Lbl -= N
            Lbr += A
            XB = X @ B
            Dtl -= XB @ X
            Dtr += XB
            Dbl -= B @ X
            Dbr += B
    if found > 0:
        m = w * contacts.pairs + pair
        wp.atomic_add(pairs.active, m, found)
        wp.atomic_add(pairs.wrench, m, W)
        add_blocks(pairs.K, 4 * m, Ktl, Ktr, Kbl, Kbr)
        add_blocks(pairs.L, 4 * m, Ltl, Ltr, Lbl, Lbr)
        add_blocks(pairs.D, 4 * m, Dtl, Dtr, Dbl, Dbr)
