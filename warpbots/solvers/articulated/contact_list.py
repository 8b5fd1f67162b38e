"""The contacts of a configuration: pairs of a point and a solid that contains the point, and the force on each point.

Warp generates the derivatives with respect to the motion.
"""

import warp as wp

from warpbots.contact.penalty import TOUCH, penalty_force
from warpbots.contact.solid import solid_distance, solid_distance_adjoint
from warpbots.numerics import Launch, parallel
from warpbots.solvers.articulated.cloud_contact import law_of
from warpbots.solvers.articulated.crossed_edges import crossing_share, greatest, on_edge, separation
from warpbots.solvers.articulated.robot_arrays import RobotArrays
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
from warpbots.solvers.articulated.surface_motion import body_pose, relative_velocity, solid_pose
from warpbots.solvers.articulated.touching_points import half_edges, rim_center

__all__ = [
    "CHUNK",
    "LISTING_KERNELS",
    "ContactList",
    "approach",
    "force_at",
    "list_contacts",
    "list_kernel",
]

CHUNK = wp.constant(32)
"""Number of candidates from which one thread lists the contacts."""


@wp.struct
class ContactList:
    """The contacts of a configuration, in the order of the candidates.

    A candidate is a pair and one point of the group of the pair.

    pair: For each candidate, its pair, shape (candidates,); the same in all worlds.
    point: For each candidate, the index of its point, shape (candidates,); the same in all worlds.
    count: Number of contacts in each world, shape (worlds,).
    candidate: Candidates that are in contact, shape (worlds * candidates,); only the first `count` entries of each
        world are meaningful.
    free: For each candidate, 1 if it exerts no compliant force because it is about to have an instant impact
        (`impacts`), else 0, shape (worlds * candidates,).
    deep: For each candidate, 1 if it is in contact, else 0, shape (worlds * candidates,); an empty array, shape (0,),
        on a device on which a single thread lists the contacts of a world.
    counted: Number of contacts in each chunk of `CHUNK` candidates, shape (worlds * chunks,).
    """

    pair: wp.array[int]
    point: wp.array[int]
    count: wp.array[int]
    candidate: wp.array[int]
    free: wp.array[int]
    deep: wp.array[int]
    counted: wp.array[int]


@wp.func
def distance(robot: RobotArrays, w: int, s: int, R: mat33, p: vec3, x: vec3):
    """Signed distance from x to solid s with the axes R and the origin p, and the gradient of the distance."""
    d, n = solid_distance(robot.solids, w, s, R, p, x)
    return d, n


@wp.func_grad(distance)
def adj_distance(robot: RobotArrays, w: int, s: int, R: mat33, p: vec3, x: vec3, d_adj: scalar, n_adj: vec3):
    sample_adj = wp.adjoint[robot.solids.sample]
    x_adj, R_adj = solid_distance_adjoint(robot.solids, w, s, R, p, x, d_adj, n_adj, sample_adj)
    wp.adjoint[x] += x_adj
    wp.adjoint[p] -= x_adj
    wp.adjoint[R] += R_adj


@wp.func
def approach_of_edges(robot: RobotArrays, links: Links, w: int, pair: int):
    """Position, signed distance and normal of the contact of a pair of edges, and the share S of the edges.

    `crossed_edges` defines these quantities. The distance is 1 m if the edges do not touch.
    """
    own = robot.contacts.pair_crossed[pair]
    s = robot.contacts.pair_solid[pair]
    Ra, pa = solid_pose(robot.tree, links, robot.solids, w, own)
    R, p = solid_pose(robot.tree, links, robot.solids, w, s)
    a = half_edges(robot.solids, own, Ra)
    b = half_edges(robot.solids, s, R)
    k, m = greatest(a, b, pa - p)
    s_k, n = separation(a, b, pa - p, k)
    s_m, _n = separation(a, b, pa - p, m)
    share, _slope, touching = crossing_share(s_k, s_m)
    x = on_edge(a, b, pa, p, n, k)
    d = s_k * share
    if touching == 0:
        d = scalar(1.0)
    return x - scalar(0.5) * s_k * n, d, n, share


@wp.func
def approach(robot: RobotArrays, links: Links, w: int, pair: int, i: int):
    """Position of contact point i, its signed distance to the solid of a pair, and the gradient of the distance.

    The point belongs to the group of the pair; `rolling_points` gives its position on the body. A pair of edges has a
    single contact; the result does not depend on i.
    """
    contacts = robot.contacts
    solids = robot.solids
    tree = robot.tree
    s = contacts.pair_solid[pair]
    if contacts.pair_crossed[pair] >= 0:
        x_e, d_e, n_e, _share = approach_of_edges(robot, links, w, pair)
        return x_e, d_e, n_e
    g = contacts.pair_group[pair]
    kind = contacts.group_kind[g]
    first = w * contacts.points + contacts.group_first[g]
    number = i - contacts.group_first[g]
    Ra, pa = body_pose(tree, links, w, contacts.group_body[g])
    R, p = solid_pose(tree, links, solids, w, s)
    x = pa + Ra @ contacts.point[first + number]
    bent = scalar(0.0)
    if slides(kind, number):
        start = contacts.point[first]
        end = contacts.point[first + 1]
        if kind == RIMS:
            start = rim_center(contacts, first)
            end = rim_center(contacts, first + 4)
        S = Ra @ (end - start)
        b = BEND * wp.length(S)
        t0, curvature = nearest_on_axis(solids, w, s, wp.transpose(R) @ (x - p), wp.transpose(R) @ S)
        t = t0
        if curvature > scalar(0.0):
            _d0, n0 = distance(robot, w, s, R, p, x + t0 * S)
            t = t0 - (wp.dot(n0, S) + b * t0) / curvature
        x = x + t * S
        bent = scalar(0.5) * b * t * t
    if kind == RIMS:
        k = wp.where(number < 4 or number == 8, 0, 4)
        middle = rim_center(contacts, first + k)
        E1 = Ra @ (contacts.point[first + k] - middle)
        E2 = Ra @ (contacts.point[first + k + 1] - middle)
        if number < 8:
            x = pa + Ra @ middle
        _d1, n1 = distance(robot, w, s, R, p, x)
        cosine, sine, _inverse = rim_direction(n1, E1, E2)
        if number < 8:
            cosine, sine = quarter(cosine, sine, number)
        x = x + cosine * E1 + sine * E2
    d, n = distance(robot, w, s, R, p, x)
    r = contacts.radius[first + number]
    d = d + bent - r
    if contacts.pair_beside[pair] >= 0 and d <= TOUCH:
        _x, _d, _n, share = approach_of_edges(robot, links, w, contacts.pair_beside[pair])
        d = (scalar(1.0) - share) * d
    return x - r * n, d, n


@wp.func
def force_at(robot: RobotArrays, links: Links, w: int, pair: int, x: vec3, d: scalar, n: vec3):
    """Force per area of a contact at x [Pa], in world axes, from the signed distance d and its gradient n."""
    contacts = robot.contacts
    tree = robot.tree
    a = contacts.group_body[contacts.pair_group[pair]]
    u = relative_velocity(tree, links, w, a, robot.solids.body[contacts.pair_solid[pair]], x, n)
    k, c, least, most, mu, k_t = law_of(contacts, w, pair)
    return contacts.scale[w] * penalty_force(d, n, u, k, c, least, most, mu, k_t)


@wp.kernel(enable_backward=False)
def list_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    candidates: int,
    # out
    contact_list_out: ContactList,
):
    """List the candidates that are in contact, with one thread for each world."""
    w = wp.tid()
    count = int(0)
    for i in range(candidates):
        _x, d, _n = approach(robot, links, w, contact_list_out.pair[i], contact_list_out.point[i])
        if d <= TOUCH and contact_list_out.free[w * candidates + i] == 0:
            contact_list_out.candidate[w * candidates + count] = i
            count += 1
    contact_list_out.count[w] = count


@wp.kernel(enable_backward=False)
def deep_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    candidates: int,
    # out
    contact_list_out: ContactList,
):
    """Write 1 to `deep` for each candidate that is in contact, and 0 for each other candidate."""
    w, i = wp.tid()
    _x, d, _n = approach(robot, links, w, contact_list_out.pair[i], contact_list_out.point[i])
    touches = d <= TOUCH and contact_list_out.free[w * candidates + i] == 0
    contact_list_out.deep[w * candidates + i] = wp.where(touches, 1, 0)


@wp.kernel(enable_backward=False)
def count_kernel(candidates: int, chunks: int, contact_list_out: ContactList):
    """Write the number of contacts in each chunk of candidates to `counted`."""
    w, chunk = wp.tid()
    count = int(0)
    for i in range(chunk * CHUNK, wp.min((chunk + 1) * CHUNK, candidates)):
        count += contact_list_out.deep[w * candidates + i]
    contact_list_out.counted[w * chunks + chunk] = count


@wp.kernel(enable_backward=False)
def compact_kernel(candidates: int, chunks: int, contact_list_out: ContactList):
    """List the contacts of a chunk after the contacts of all previous chunks, in the same order as `list_kernel`."""
    w, chunk = wp.tid()
    count = int(0)
    for before in range(chunk):
        count += contact_list_out.counted[w * chunks + before]
    for i in range(chunk * CHUNK, wp.min((chunk + 1) * CHUNK, candidates)):
        if contact_list_out.deep[w * candidates + i] == 1:
            contact_list_out.candidate[w * candidates + count] = i
            count += 1
    if chunk == chunks - 1:
        contact_list_out.count[w] = count


LISTING_KERNELS = (list_kernel, deep_kernel, count_kernel, compact_kernel)
"""Kernels of `list_contacts`, which have no adjoint."""


def list_contacts(robot: RobotArrays, links: Links, contact_list: ContactList, device: wp.Device) -> list[Launch]:
    """Kernel launches that list the contacts of a configuration in the order of the candidates."""
    worlds, candidates = contact_list.count.size, contact_list.pair.size
    if not parallel(device):
        return [(list_kernel, worlds, [robot, links, candidates], [contact_list])]
    chunks = contact_list.counted.size // worlds
    return [
        (deep_kernel, (worlds, candidates), [robot, links, candidates], [contact_list]),
        (count_kernel, (worlds, chunks), [candidates, chunks], [contact_list]),
        (compact_kernel, (worlds, chunks), [candidates, chunks], [contact_list]),
    ]
