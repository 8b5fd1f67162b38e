"""The impulses of an impact, and the equations for these impulses in the form that the adjoint needs.

A contact has the unit normal n, the projection T = 1 - n n^T onto the tangential plane, and the velocities u- before
and u+ = u- + W p after the impact, with W = J M^-1 J^T. The impulse p of the contact solves r = 0 with the residual

    r = p                                                 if the contact carries no impulse,
    r = u+ + e min(n . u-, 0) n                           if the contact sticks,
    r = (n . u+ + e min(n . u-, 0)) n + T p + mu p_n e_t  if the contact slides, e_t = u_t+ / |u_t+|.

The impulse of one contact after the other is improved, with the impulses of all other contacts given, until no impulse
changes (Jean 1999, "The non-smooth contact dynamics method"). The derivative of r is dr = P dp + B du+ with the
matrices P and B from `impulse_tangents`.
"""

import warp as wp

from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.impacts import CLOSE, CONTACTS, NONE, Impact, velocity_at
from warpbots.solvers.articulated.joints import freedom_of
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move, twist_along
from warpbots.solvers.articulated.lu import factorise, solve
from warpbots.solvers.articulated.mass_inverse import invert_masses
from warpbots.solvers.articulated.newton import Factors, Report
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import angular, linear, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links, StepArrays
from warpbots.solvers.articulated.subtree_sums import element_of

__all__ = ["ImpulseArrays", "direction", "impulse_kernel", "restitution_of", "weigh_impact_kernel"]

ROWS = wp.constant(3 * CONTACTS)
"""Components of the impulses of an impact."""

_ZERO, _ONE = wp.constant(scalar(0.0)), wp.constant(scalar(1.0))
_SWEEPS = wp.constant(1000)  # largest number of sweeps over the contacts
_SETTLED = wp.constant(scalar(1e-14))  # change at which the iteration ends, relative to the largest impulse
_SOFT = wp.constant(scalar(1e-10))  # regularisation of contacts in the adjoint, where several share a load


@wp.struct
class ImpulseArrays:
    """Quantities of an impact, with all worlds in one row; the module docstring defines the symbols.

    mass: Memory for the factors of the mass matrix M.
    system: Factors of the transposed derivative G^T of all residuals r with respect to all impulses, shape (worlds *
        ROWS^2,).
    row: Jacobian J, with one row for each component of the velocity of each contact, shape (worlds * ROWS * freedom,).
    response: Changes M^-1 J^T of the joint velocities by unit impulses [rad/s or m/s per N s], shape (worlds * ROWS *
        freedom,).
    delassus: Matrix W, as one 3 x 3 block for each ordered pair of contacts, shape (worlds * CONTACTS^2,).
    place: Position of each contact [m], shape (worlds * CONTACTS,).
    normal: Unit normal n of each contact [1], shape (worlds * CONTACTS,).
    before: Velocity u- of each contact before the impact [m/s], shape (worlds * CONTACTS,).
    change: Change v+ - v- of the joint velocities [rad/s or m/s], shape (worlds * freedom,).
    weight: Weight -y of the residual r of each contact in the adjoint, shape (worlds * CONTACTS,).
    solution: Components of the vectors y of all contacts of a world, contact after contact, shape (worlds * ROWS,).
    """

    mass: Factors
    system: Factors
    row: wp.array[scalar]
    response: wp.array[scalar]
    delassus: wp.array[mat33]
    place: wp.array[vec3]
    normal: wp.array[vec3]
    before: wp.array[vec3]
    change: wp.array[scalar]
    weight: wp.array[vec3]
    solution: wp.array[scalar]


@wp.func
def direction(a: vec3):
    """Unit vector a / |a|, or zero if a is zero."""
    size = wp.length(a)
    e = vec3()
    if size > _ZERO:
        e = a / size
    return e


@wp.func
def restitution_of(robot: RobotArrays, w: int, pair: int, closing: scalar):
    """Normal velocity -e min(n . u-, 0) after the impact, with `closing` = n . u- and the restitution e of the pair."""
    contacts = robot.contacts
    return -contacts.restitution[w * contacts.laws + contacts.pair_law[pair]] * wp.min(closing, _ZERO)


@wp.func
def impulse_responses(
    robot: RobotArrays, contact_list: ContactList, at_impact: ImplicitStage, work: StepArrays, impulses: ImpulseArrays,
    impact: Impact, w: int,
):  # fmt: skip
    """Write J, M^-1 J^T, W, n and u- of the impact of world w to `impulses`; called by one thread for each world."""
    tree = robot.tree
    contacts = robot.contacts
    n = tree.freedom
    for o in range(tree.elements):
        e = tree.order[o]
        k = w * tree.bodies + tree.body[e]
        move(tree, robot.design, at_impact, joint_frame(robot.design, k), body_frame(robot.design, k), work.links, w, e)
        m = w * tree.elements + e
        for k in range(freedom_of(tree.kind[e])):
            one = vec3()
            one[k] = scalar(1.0)
            axis = twist_along(tree.kind[e], work.links.basis[m], work.links.position[m], one)
            work.axis[w * n + tree.dof[e] + k] = axis
    invert_masses(robot, work, impulses.mass, w)
    count = impact.count[w]
    for i in range(count):
        c = impact.candidate[w * CONTACTS + i]
        pair = contact_list.pair[c]
        x, _d, slope = approach(robot, work.links, w, pair, contact_list.point[c])
        impulses.normal[w * CONTACTS + i] = wp.normalize(slope)
        impulses.before[w * CONTACTS + i] = velocity_at(robot, work.links, w, pair, x, slope)
        a = element_of(tree, contacts.group_body[contacts.pair_group[pair]])
        b = element_of(tree, robot.solids.body[contacts.pair_solid[pair]])
        for j in range(n):
            e = tree.of_dof[j]
            side = int(0)
            if a >= 0:
                side += tree.carries[e * tree.elements + a]
            if b >= 0:
                side -= tree.carries[e * tree.elements + b]
            S = work.axis[w * n + j]
            v = scalar(side) * (linear(S) + wp.cross(angular(S), x))
            for k in range(3):
                impulses.row[(w * ROWS + 3 * i + k) * n + j] = v[k]
    for r in range(3 * count):
        for i in range(n):
            moved = scalar(0.0)
            for j in range(n):
                moved += work.jacobian[(w * n + i) * n + j] * impulses.row[(w * ROWS + r) * n + j]
            impulses.response[(w * ROWS + r) * n + i] = moved
    for i in range(count):
        for k in range(count):
            W = mat33()
            for a in range(3):
                for b in range(3):
                    s = scalar(0.0)
                    for j in range(n):
                        at = (w * ROWS + 3 * i + a) * n + j
                        s += impulses.row[at] * impulses.response[(w * ROWS + 3 * k + b) * n + j]
                    W[a, b] = s
            impulses.delassus[(w * CONTACTS + i) * CONTACTS + k] = W


@wp.func
def list_impact(
    robot: RobotArrays, contact_list: ContactList, links: Links, impulses: ImpulseArrays, impact: Impact, w: int
):
    """List the contacts of an impact, at most `CONTACTS`: first the contact whose gap vanishes, if there is one.

    All other contacts have a gap of at most `CLOSE` and a law with instant impacts. The next contact is always the
    contact whose distance to the nearest contact in the list is greatest.
    """
    contacts = robot.contacts
    count = impact.count[w]
    if count == 1:
        c = impact.candidate[w * CONTACTS]
        x, _d, _n = approach(robot, links, w, contact_list.pair[c], contact_list.point[c])
        impulses.place[w * CONTACTS] = x
    full = int(0)
    while full == 0:
        best = int(-1)
        farthest = scalar(-1.0)
        place = vec3()
        for c in range(contacts.candidates):
            pair = contact_list.pair[c]
            if contacts.instant[contacts.pair_law[pair]] == 1:
                x, d, _n = approach(robot, links, w, pair, contact_list.point[c])
                apart = scalar(wp.inf)
                if d > CLOSE:
                    apart = scalar(-1.0)
                for i in range(count):
                    if impact.candidate[w * CONTACTS + i] == c:
                        apart = scalar(-1.0)
                    apart = wp.min(apart, wp.length(x - impulses.place[w * CONTACTS + i]))
                if apart > farthest:
                    best = c
                    farthest = apart
                    place = x
        full = 1
        if best >= 0:
            impact.candidate[w * CONTACTS + count] = best
            impulses.place[w * CONTACTS + count] = place
            count += 1
            if count < CONTACTS:
                full = 0
    impact.count[w] = count


@wp.func
def velocity_after(impulses: ImpulseArrays, impact: Impact, w: int, i: int):
    """Velocity u+ of contact i after the impact."""
    u = impulses.before[w * CONTACTS + i]
    for k in range(impact.count[w]):
        u += impulses.delassus[(w * CONTACTS + i) * CONTACTS + k] @ impact.impulse[w * CONTACTS + k]
    return u


@wp.func
def next_impulse(
    robot: RobotArrays, contact_list: ContactList, impulses: ImpulseArrays, impact: Impact, w: int, i: int
):
    """Improve the impulse of contact i once, with the impulses of all other contacts given.

    The normal impulse solves the equation of the normal velocity. The tangential impulse changes by -u_t / tr(T W), and
    is then limited to mu p_n. Returns the impulse and the mode of the contact (`Impact.mode`).
    """
    contacts = robot.contacts
    at = w * CONTACTS + i
    pair = contact_list.pair[impact.candidate[at]]
    n = impulses.normal[at]
    W = impulses.delassus[at * CONTACTS + i]
    p = impact.impulse[at]
    u = velocity_after(impulses, impact, w, i)
    inverse = wp.dot(n, W @ n)
    mode = int(0)
    new = vec3()
    if inverse > _ZERO:
        aim = restitution_of(robot, w, pair, wp.dot(n, impulses.before[at]))
        pressed = wp.max(_ZERO, wp.dot(n, p) + (aim - wp.dot(n, u)) / inverse)
        p_t = p - wp.dot(n, p) * n
        u = u + (pressed - wp.dot(n, p)) * (W @ n)
        u_t = u - wp.dot(n, u) * n
        most = contacts.friction[w * contacts.laws + contacts.pair_law[pair]] * pressed
        free = wp.trace(W) - inverse
        if free > _ZERO:
            p_t = p_t - u_t / free
        size = wp.length(p_t)
        mode = 1
        if size >= most:
            mode = 2
            if size > _ZERO:
                p_t = (most / size) * p_t
        if pressed == _ZERO:
            mode = 0
        new = pressed * n + p_t
    return new, mode


@wp.kernel(enable_backward=False)
def impulse_kernel(
    # model
    robot: RobotArrays,
    # step
    at_impact: ImplicitStage,
    contact_list: ContactList,
    report: Report,
    # out
    work_out: StepArrays,
    impulses_out: ImpulseArrays,
    impact_out: Impact,
    q_out: wp.array[scalar],
    qd_out: wp.array[scalar],
    left_out: wp.array[scalar],
):
    """Compute the impulses of the impact of each world, the state after the impact and the time left in the step."""
    w = wp.tid()
    tree = robot.tree
    n = tree.freedom
    for i in range(tree.coordinates):
        q_out[w * tree.coordinates + i] = impact_out.q[w * tree.coordinates + i]
    for j in range(n):
        qd_out[w * n + j] = impact_out.qd[w * n + j]
    left_out[w] = scalar(0.0)
    if impact_out.length[w] > _ZERO and report.found[w] == 0:
        for i in range(tree.coordinates):
            q_out[w * tree.coordinates + i] = scalar(wp.nan)
        for j in range(n):
            qd_out[w * n + j] = scalar(wp.nan)
    if impact_out.event[w] == NONE:
        return
    left_out[w] = impact_out.left[w] - impact_out.time[w]
    list_impact(robot, contact_list, work_out.links, impulses_out, impact_out, w)
    impulse_responses(robot, contact_list, at_impact, work_out, impulses_out, impact_out, w)
    count = impact_out.count[w]
    for i in range(count):
        impact_out.impulse[w * CONTACTS + i] = vec3()
    settled = int(0)
    for _s in range(_SWEEPS):
        if settled == 0:
            moved = scalar(0.0)
            largest = scalar(0.0)
            for i in range(count):
                p, mode = next_impulse(robot, contact_list, impulses_out, impact_out, w, i)
                moved = wp.max(moved, wp.length(p - impact_out.impulse[w * CONTACTS + i]))
                largest = wp.max(largest, wp.length(p))
                impact_out.impulse[w * CONTACTS + i] = p
                impact_out.mode[w * CONTACTS + i] = mode
            if moved <= _SETTLED * largest:
                settled = 1
    for i in range(count):
        p = impact_out.impulse[w * CONTACTS + i]
        for k in range(3):
            for j in range(n):
                qd_out[w * n + j] += p[k] * impulses_out.response[(w * ROWS + 3 * i + k) * n + j]


@wp.func
def impulse_tangents(
    robot: RobotArrays, contact_list: ContactList, impulses: ImpulseArrays, impact: Impact, w: int, i: int
):
    """Derivatives of the residual r of contact i: P with respect to its impulse p, and B with respect to its u+.

    If the contact carries an impulse, a small multiple of the unit matrix is added to P, because impulses are not
    unique if several contacts share a load.
    """
    contacts = robot.contacts
    at = w * CONTACTS + i
    one = wp.identity(n=3, dtype=scalar)
    soft = _SOFT * wp.trace(impulses.delassus[at * CONTACTS + i]) * one
    P = one
    B = mat33()
    if impact.mode[at] == 1:
        P = soft
        B = one
    if impact.mode[at] == 2:
        n = impulses.normal[at]
        nn = wp.outer(n, n)
        u = velocity_after(impulses, impact, w, i)
        u_t = u - wp.dot(n, u) * n
        e = direction(u_t)
        mu = contacts.friction[w * contacts.laws + contacts.pair_law[contact_list.pair[impact.candidate[at]]]]
        P = soft + one - nn + mu * wp.outer(e, n)
        B = nn
        if wp.length(u_t) > _ZERO:
            B = B + (mu * wp.dot(n, impact.impulse[at]) / wp.length(u_t)) * (one - nn - wp.outer(e, e))
    return P, B


@wp.kernel(enable_backward=False)
def weigh_impact_kernel(
    # model
    robot: RobotArrays,
    # step
    at_impact: ImplicitStage,
    contact_list: ContactList,
    impact: Impact,
    qd_adj: wp.array[scalar],
    # out
    work_out: StepArrays,
    impulses_out: ImpulseArrays,
    weight_out: wp.array[scalar],
):
    """Compute the weights -l of the momentum balance and -y of the residuals r in the adjoint of an impact.

    The weights solve G^T y = J M^-1 v+* with G = P + B W, and M l = v+* - J^T B^T y. v+* is the gradient with respect
    to the joint velocities after the impact (`qd_adj`).
    """
    w = wp.tid()
    n = robot.tree.freedom
    count = impact.count[w]
    for j in range(n):
        weight_out[w * n + j] = scalar(0.0)
        impulses_out.change[w * n + j] = scalar(0.0)
    if count == 0:
        return
    impulse_responses(robot, contact_list, at_impact, work_out, impulses_out, impact, w)
    system = impulses_out.system.matrix
    for a in range(ROWS):
        impulses_out.solution[w * ROWS + a] = scalar(0.0)
        for b in range(ROWS):
            system[(w * ROWS + a) * ROWS + b] = wp.where(a == b, _ONE, _ZERO)
    for i in range(count):
        P, B = impulse_tangents(robot, contact_list, impulses_out, impact, w, i)
        for k in range(count):
            G = B @ impulses_out.delassus[(w * CONTACTS + i) * CONTACTS + k]
            if i == k:
                G = G + P
            for a in range(3):
                for b in range(3):
                    system[(w * ROWS + 3 * k + b) * ROWS + 3 * i + a] = G[a, b]
    for r in range(3 * count):
        pushed = scalar(0.0)
        for j in range(n):
            pushed += impulses_out.response[(w * ROWS + r) * n + j] * qd_adj[w * n + j]
        impulses_out.solution[w * ROWS + r] = pushed
    factorise(system, impulses_out.system.pivot, w, ROWS)
    solve(system, impulses_out.system.pivot, impulses_out.solution, w, ROWS)
    for j in range(n):
        work_out.step[w * n + j] = qd_adj[w * n + j]
    for i in range(count):
        _P, B = impulse_tangents(robot, contact_list, impulses_out, impact, w, i)
        at = w * ROWS + 3 * i
        y = vec3(impulses_out.solution[at], impulses_out.solution[at + 1], impulses_out.solution[at + 2])
        impulses_out.weight[w * CONTACTS + i] = -y
        z = wp.transpose(B) @ y
        p = impact.impulse[w * CONTACTS + i]
        for k in range(3):
            for j in range(n):
                impulses_out.change[w * n + j] += p[k] * impulses_out.response[(at + k) * n + j]
                work_out.step[w * n + j] = work_out.step[w * n + j] - z[k] * impulses_out.row[(at + k) * n + j]
    for i in range(n):
        l = scalar(0.0)
        for j in range(n):
            l += work_out.jacobian[(w * n + i) * n + j] * work_out.step[w * n + j]
        weight_out[w * n + i] = -l
