"""The adjoint of a stage, by virtual power.

The residual r of a stage weighted with virtual velocities l is a power,

    l . r = sum over bodies of L . (I A + V x* I V) - sum over contacts of (L_a - L_b) . W + sum over joints of l . f,

with the virtual twist L of every body. The gradient of a loss with respect to anything that a stage depends on, where
the loss changes with the displacement as g, is that of l . r for l = -J^-T g: the derivatives of these kernels are
those that Warp generates.
"""

import warp as wp

from warpbots.contact.penalty import damping_bounds, penalty_force
from warpbots.contact.solid import Solids, solid_distance
from warpbots.numerics import Launch, parallel
from warpbots.solvers.articulated.arrays import Links, Stage, Tree
from warpbots.solvers.articulated.cloud_contact import body_pose, body_twist
from warpbots.solvers.articulated.implicit_schemes import Past, finish, recall, stages
from warpbots.solvers.articulated.joint_forces import motor_force, passive_force
from warpbots.solvers.articulated.kinematics import first_moment, inertial_wrench, moments, move, of_joint, twist_along
from warpbots.solvers.articulated.lu import solve_transposed, solve_transposed_together
from warpbots.solvers.articulated.machine import Machine
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.spatial import Twist, angular, linear, scalar, vec3
from warpbots.solvers.articulated.thread_team import sync

__all__ = [
    "CHUNK",
    "Touching",
    "approach",
    "compact_kernel",
    "contact_power_kernel",
    "count_kernel",
    "deep_kernel",
    "finish_kernel",
    "force_at",
    "list_kernel",
    "listing",
    "motor_power_kernel",
    "power_kernel",
    "recall_kernel",
    "sweep_kernel",
    "weigh_kernel",
]

CHUNK = wp.constant(32)
"""Candidates of which one thread lists those that touch."""


@wp.func
def absent(past: Past, w: int, number: int):
    """Whether the step of a world has no such stage."""
    return number == 0 and stages(past, w) == 1


@wp.kernel
def finish_kernel(tree: Tree, past: Past, stage: Stage, end_out: Past):
    """Where a step ends, for an element of a world."""
    w, e = wp.tid()
    finish(tree, past, stage, end_out, w, e)


@wp.kernel
def recall_kernel(tree: Tree, past: Past, first: Stage, number: int, stage_out: Stage):
    """What a stage makes of the past, for an element of a world."""
    w, e = wp.tid()
    if absent(past, w, number):
        return
    recall(tree, past, first, stage_out, w, e, number)


@wp.kernel(enable_backward=False)
def weigh_kernel(
    tree: Tree,
    past: Past,
    factors: Factors,
    number: int,
    lanes: int,
    gradient: wp.array[scalar],
    weight_out: wp.array[scalar],
):
    """l = -J^-T g for each world; 0 where there is no such stage."""
    w, lane = wp.tid()
    n = tree.freedom
    here = scalar(-1.0)
    if absent(past, w, number):
        here = scalar(0.0)
    for i in range(lane, n, lanes):
        weight_out[w * n + i] = here * gradient[w * n + i]
    sync()
    if here != scalar(0.0):
        if lanes == 1:
            solve_transposed(factors.matrix, factors.pivot, weight_out, w, n)
        else:
            solve_transposed_together(factors.matrix, factors.pivot, weight_out, w, n, lane, lanes)


@wp.kernel
def sweep_kernel(
    machine: Machine,
    past: Past,
    stage: Stage,
    weight: wp.array[scalar],
    number: int,
    first: int,
    count: int,
    links_out: Links,
    sweep_out: wp.array[Twist],
):
    """Where elements are, and their virtual twists: `count` from number `first + count i` of `order` on."""
    w, i = wp.tid()
    if absent(past, w, number):
        return
    tree = machine.tree
    for k in range(count):
        e = tree.order[first + count * i + k]
        move(tree, machine.design, stage, links_out, w, e)
        n = w * tree.elements + e
        l = of_joint(tree, weight, w, e)
        L = twist_along(tree.kind[e], links_out.basis[n], links_out.position[n], l)
        parent = tree.parent[e]
        if parent >= 0:
            L = L + sweep_out[w * tree.elements + parent]
        sweep_out[n] = L


@wp.kernel
def power_kernel(
    machine: Machine,
    past: Past,
    stage: Stage,
    weight: wp.array[scalar],
    number: int,
    count: int,
    links: Links,
    sweep: wp.array[Twist],
    power_out: wp.array2d[scalar],
):
    """Powers of the bodies of elements and of their springs, dampers, limits and rotors, `count` for each thread."""
    w, i = wp.tid()
    if absent(past, w, number):
        return
    tree = machine.tree
    design = machine.design
    for e in range(count * i, count * (i + 1)):
        n = w * tree.elements + e
        P = wp.dot(of_joint(tree, weight, w, e), passive_force(tree, design, stage, w, e))
        if tree.last[e] == 1:
            k = w * tree.bodies + tree.body[e]
            mc = first_moment(design, links, k)
            J = moments(design, links, k)
            F = inertial_wrench(design.mass[k], mc, J, links.twist[n], links.acceleration[n])
            P = P + wp.dot(sweep[n], F)
        power_out[w, e] = P


@wp.kernel
def motor_power_kernel(
    machine: Machine,
    past: Past,
    stage: Stage,
    weight: wp.array[scalar],
    number: int,
    control: wp.array2d[scalar],
    power_out: wp.array2d[scalar],
):
    """Power of a motor."""
    w, m = wp.tid()
    if absent(past, w, number):
        return
    l = weight[w * machine.tree.freedom + machine.tree.motor_dof[m]]
    power_out[w, m] = -l * motor_force(machine.tree, machine.design, stage, control, w, m)


@wp.struct
class Touching:
    """The contacts of a moment.

    pair: Pair of a candidate, shape (candidates,).
    point: Its point, shape (candidates,).
    count: Number of contacts, shape (worlds,).
    candidate: Which candidates touch, shape (worlds * candidates,).
    deep: 1 for those that touch, shape (worlds * candidates,) where many threads list them, and 0 elsewhere.
    counted: How many of each `CHUNK` of them do, shape (worlds * chunks,).
    """

    pair: wp.array[int]
    point: wp.array[int]
    count: wp.array[int]
    candidate: wp.array[int]
    deep: wp.array[int]
    counted: wp.array[int]


@wp.func
def distance(solids: Solids, s: int, y: vec3):
    """Signed distance of a point from a solid, and its slope."""
    d, n, _C = solid_distance(solids, s, y)
    return d, n


@wp.func_grad(distance)
def adj_distance(solids: Solids, s: int, y: vec3, d_adj: scalar, n_adj: vec3):
    """The slope is the derivative of the distance, and the curvature, which is symmetric, that of the slope."""
    _d, n, C = solid_distance(solids, s, y)
    wp.adjoint[y] += d_adj * n + C @ n_adj


@wp.func
def approach(machine: Machine, links: Links, w: int, pair: int, i: int):
    """Where point i is, and how far from the solid of a pair it is, with the slope of that and the solid's axes."""
    contacts = machine.contacts
    solids = machine.solids
    tree = machine.tree
    s = contacts.pair_solid[pair]
    Ra, pa = body_pose(tree, links, w, contacts.group_body[contacts.pair_group[pair]])
    Rb, pb = body_pose(tree, links, w, solids.body[s])
    x = pa + Ra @ contacts.point[w * contacts.points + i]
    R = Rb @ solids.rotation[s]
    d, n = distance(solids, s, wp.transpose(R) @ (x - pb - Rb @ solids.position[s]))
    return x, R, d, n


@wp.func
def force_at(machine: Machine, links: Links, w: int, pair: int, x: vec3, d: scalar, n: vec3):
    """Force of a contact at x [N], for a slope n in the world."""
    contacts = machine.contacts
    tree = machine.tree
    a = contacts.group_body[contacts.pair_group[pair]]
    V = body_twist(tree, links, w, a) - body_twist(tree, links, w, machine.solids.body[contacts.pair_solid[pair]])
    u = linear(V) + wp.cross(angular(V), x)
    law = w * contacts.laws + contacts.pair_law[pair]
    k = contacts.stiffness[law]
    least, most = damping_bounds(k, contacts.restitution[law], contacts.bounded[contacts.pair_law[pair]])
    return contacts.scale[w] * penalty_force(
        d, n, u, k, contacts.damping[law], least, most, contacts.friction[law], contacts.viscosity[law]
    )


@wp.kernel(enable_backward=False)
def list_kernel(machine: Machine, links: Links, candidates: int, touching_out: Touching):
    """Write which candidates touch; by one thread for each world."""
    w = wp.tid()
    count = int(0)
    for i in range(candidates):
        _x, _R, d, _n = approach(machine, links, w, touching_out.pair[i], touching_out.point[i])
        if d < scalar(0.0):
            touching_out.candidate[w * candidates + count] = i
            count += 1
    touching_out.count[w] = count


@wp.kernel(enable_backward=False)
def deep_kernel(machine: Machine, links: Links, candidates: int, touching_out: Touching):
    """Write whether a candidate touches."""
    w, i = wp.tid()
    _x, _R, d, _n = approach(machine, links, w, touching_out.pair[i], touching_out.point[i])
    touching_out.deep[w * candidates + i] = wp.where(d < scalar(0.0), 1, 0)


@wp.kernel(enable_backward=False)
def count_kernel(candidates: int, chunks: int, touching_out: Touching):
    """Count those of a chunk that touch."""
    w, chunk = wp.tid()
    count = int(0)
    for i in range(chunk * CHUNK, wp.min((chunk + 1) * CHUNK, candidates)):
        count += touching_out.deep[w * candidates + i]
    touching_out.counted[w * chunks + chunk] = count


@wp.kernel(enable_backward=False)
def compact_kernel(candidates: int, chunks: int, touching_out: Touching):
    """Write which of a chunk touch, behind those of the chunks before: the list of `list_kernel`."""
    w, chunk = wp.tid()
    count = int(0)
    for before in range(chunk):
        count += touching_out.counted[w * chunks + before]
    for i in range(chunk * CHUNK, wp.min((chunk + 1) * CHUNK, candidates)):
        if touching_out.deep[w * candidates + i] == 1:
            touching_out.candidate[w * candidates + count] = i
            count += 1
    if chunk == chunks - 1:
        touching_out.count[w] = count


def listing(machine: Machine, links: Links, touching: Touching, device: wp.Device) -> list[Launch]:
    """Launches that list the contacts of a moment, always in the same order."""
    worlds, candidates = touching.count.size, touching.pair.size
    if not parallel(device):
        return [(list_kernel, worlds, [machine, links, candidates], [touching])]
    chunks = touching.counted.size // worlds
    return [
        (deep_kernel, (worlds, candidates), [machine, links, candidates], [touching]),
        (count_kernel, (worlds, chunks), [candidates, chunks], [touching]),
        (compact_kernel, (worlds, chunks), [candidates, chunks], [touching]),
    ]


@wp.kernel
def contact_power_kernel(
    machine: Machine,
    past: Past,
    links: Links,
    touching: Touching,
    candidates: int,
    sweep: wp.array[Twist],
    number: int,
    power_out: wp.array[scalar],
):
    """Power of the contacts of a world: `power` has shape (worlds * candidates,)."""
    w, slot = wp.tid()
    if absent(past, w, number) or slot >= touching.count[w]:
        return
    tree = machine.tree
    contacts = machine.contacts
    c = touching.candidate[w * candidates + slot]
    pair = touching.pair[c]
    point = touching.point[c]
    x, R, d, n = approach(machine, links, w, pair, point)
    f = force_at(machine, links, w, pair, x, d, R @ n)
    L = sweep[w * tree.elements + tree.element[contacts.group_body[contacts.pair_group[pair]]]]
    body = machine.solids.body[contacts.pair_solid[pair]]
    if body >= 0:
        L = L - sweep[w * tree.elements + tree.element[body]]
    v = linear(L) + wp.cross(angular(L), x)
    power_out[w * candidates + slot] = -contacts.area[w * contacts.points + point] * wp.dot(f, v)
