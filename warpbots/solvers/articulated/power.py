"""The adjoint of a stage, by virtual power.

The residual r of a stage weighted with virtual velocities l is a power,

    l . r = sum over bodies of L . (I A + V x* I V) - sum over contacts of (L_a - L_b) . W + sum over joints of l . f,

with the virtual twist L of every body. The gradient of a loss with respect to anything that a stage depends on, where
the loss changes with the displacement as g, is that of l . r for l = -J^-T g: the derivatives of these kernels are
those that Warp generates.
"""

import warp as wp

from warpbots.contact.penalty import damping_bounds, penalty_force
from warpbots.contact.solid import solid_distance
from warpbots.solvers.articulated.forces import motor_force, passive_force
from warpbots.solvers.articulated.linear import solve_transposed
from warpbots.solvers.articulated.machine import Machine
from warpbots.solvers.articulated.motion import first_moment, inertial_wrench, moments, move, of_joint, twist_along
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.scheme import Past, finish, recall, stages
from warpbots.solvers.articulated.spatial import Twist, angular, linear, scalar, vec3
from warpbots.solvers.articulated.touch import body_pose, body_twist
from warpbots.solvers.articulated.tree import Links, Stage, Tree

__all__ = [
    "Touching",
    "approach",
    "contact_power_kernel",
    "finish_kernel",
    "force_at",
    "list_kernel",
    "power_kernel",
    "recall_kernel",
    "weigh_kernel",
]


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
    tree: Tree, past: Past, factors: Factors, number: int, gradient: wp.array[scalar], weight_out: wp.array[scalar]
):
    """l = -J^-T g for each world; 0 where there is no such stage."""
    w = wp.tid()
    n = tree.freedom
    here = scalar(-1.0)
    if absent(past, w, number):
        here = scalar(0.0)
    for i in range(n):
        weight_out[w * n + i] = here * gradient[w * n + i]
    if here != scalar(0.0):
        solve_transposed(factors.matrix, factors.pivot, weight_out, w, n)


@wp.kernel
def power_kernel(
    machine: Machine,
    past: Past,
    stage: Stage,
    control: wp.array2d[scalar],
    weight: wp.array[scalar],
    number: int,
    links_out: Links,
    sweep_out: wp.array[Twist],
    power_out: wp.array[scalar],
):
    """Power of inertia, joints and motors of a world: `power` has shape (worlds * (elements + channels),)."""
    w = wp.tid()
    if absent(past, w, number):
        return
    tree = machine.tree
    design = machine.design
    at = w * (tree.elements + tree.channels)
    for e in range(tree.elements):
        move(tree, design, stage, links_out, w, e)
        n = w * tree.elements + e
        l = of_joint(tree, weight, w, e)
        L = twist_along(tree.kind[e], links_out.basis[n], links_out.position[n], l)
        parent = tree.parent[e]
        if parent >= 0:
            L = L + sweep_out[w * tree.elements + parent]
        sweep_out[n] = L
        P = wp.dot(l, passive_force(tree, design, stage, w, e))
        if tree.last[e] == 1:
            k = w * tree.bodies + tree.body[e]
            mc = first_moment(design, links_out, k)
            J = moments(design, links_out, k)
            F = inertial_wrench(design.mass[k], mc, J, links_out.twist[n], links_out.acceleration[n])
            P = P + wp.dot(L, F)
        power_out[at + e] = P
    for m in range(tree.channels):
        i = w * tree.freedom + tree.motor_dof[m]
        power_out[at + tree.elements + m] = -weight[i] * motor_force(tree, design, stage, control, w, m)


@wp.struct
class Touching:
    """The contacts of a moment.

    pair: Pair of a candidate, shape (candidates,).
    point: Its point, shape (candidates,).
    count: Number of contacts, shape (worlds,).
    candidate: Which candidates touch, shape (worlds * candidates,).
    """

    pair: wp.array[int]
    point: wp.array[int]
    count: wp.array[int]
    candidate: wp.array[int]


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
    d, n, _C = solid_distance(solids, s, wp.transpose(R) @ (x - pb - Rb @ solids.position[s]))
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
    """Write which candidates touch; by one thread for each world, so that their order is always the same."""
    w = wp.tid()
    count = int(0)
    for i in range(candidates):
        _x, _R, d, _n = approach(machine, links, w, touching_out.pair[i], touching_out.point[i])
        if d < scalar(0.0):
            touching_out.candidate[w * candidates + count] = i
            count += 1
    touching_out.count[w] = count


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
