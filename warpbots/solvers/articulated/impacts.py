"""Instant impacts: their time within a step, and the velocities after the impact.

A step is taken in parts. Each part ends at an impact or at the end of the step, and the lengths of parts differ between
worlds. A part is a step of the integrator without the forces of those contacts that are about to begin with an impact.
Within a part, coordinates follow the cubic Hermite interpolation of the coordinates and velocities at both ends. The
impact occurs at the time t at which the least gap first vanishes. At this time, impulses p at the contacts change the
joint velocities from v- to v+:

    M (v+ - v-) = sum J^T p,   n . u+ = -e min(n . u-, 0) if |p| > 0,   |p_t| <= mu p_n,   p_t opposite to u_t+,

with the velocity u = J v of a contact and its normal n. These are Newton's law of restitution for all contacts that
touch, and Coulomb's law (Moreau 1988, "Unilateral contact and dry friction in finite freedom dynamics"). The next part
starts at t with the new velocities.

Contacts that already touch, or that approach more slowly than the velocity that gravity adds in a step, are compliant.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.implicit_integrators import Past
from warpbots.solvers.articulated.joints import BALL, FIXED, cayley, cayley_velocity
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move, of_joint
from warpbots.solvers.articulated.newton import Report
from warpbots.solvers.articulated.obstacle_motion import ObstacleMotion, place_world
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import quat, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links
from warpbots.solvers.articulated.surface_motion import relative_velocity

__all__ = [
    "AT_ONCE",
    "CLOSE",
    "CONTACTS",
    "IN_TIME",
    "NONE",
    "Impact",
    "arrive",
    "locate_kernel",
    "prepare_kernel",
    "release_kernel",
    "velocity_at",
]

NONE, IN_TIME, AT_ONCE = (wp.constant(k) for k in range(3))
"""Event that ends a part: the end of the step, an impact at a root of the gap, or an impact at its start."""

CONTACTS = wp.constant(8)
"""Largest number of contacts of an impact. Contacts far apart are chosen, such as the corners of a flat face."""

CLOSE = wp.constant(scalar(1e-9))
"""Distance at which contacts take part in an impact [m]."""

_ZERO, _ONE = wp.constant(scalar(0.0)), wp.constant(scalar(1.0))
_SHARE = wp.constant(scalar(1e-4))  # half the interval for the rate of the gap, per length of the part
_ROOT = wp.constant(scalar(1e-13))  # gap at which one more correction gives the root [m]
_LEAST = wp.constant(scalar(1e-9))  # shortest part, per length of the step


@wp.struct
class Impact:
    """A part of a step and the impact at its end.

    left: Time from the start of the part to the end of the step [s], shape (worlds,).
    length: Length of the step of the integrator in this part [s], or 0 if the integrator takes no step, shape
        (worlds,).
    time: Time from the start of the part to the impact [s], or `length` if there is no impact, shape (worlds,).
    rate: Time derivative of the vanishing gap at the impact [m/s], shape (worlds,).
    event: Code of the event that ends the part, shape (worlds,).
    count: Number of contacts of the impact, shape (worlds,).
    candidate: For each contact of the impact, its candidate, shape (worlds * CONTACTS,); the first is the candidate
        whose gap vanishes, if the event is `IN_TIME`.
    impulse: For each contact of the impact, its impulse [N s], shape (worlds * CONTACTS,).
    mode: For each contact of the impact, 0 if it carries no impulse, 1 if it sticks and 2 if it slides, shape (worlds *
        CONTACTS,).
    q: Joint coordinates at the end of the part [rad, m, or quaternions], shape (worlds * coordinates,).
    qd: Joint velocities at the end of the part, before the impact [rad/s or m/s], shape (worlds * freedom,).
    """

    left: wp.array[scalar]
    length: wp.array[scalar]
    time: wp.array[scalar]
    rate: wp.array[scalar]
    event: wp.array[int]
    count: wp.array[int]
    candidate: wp.array[int]
    impulse: wp.array[vec3]
    mode: wp.array[int]
    q: wp.array[scalar]
    qd: wp.array[scalar]


@wp.func
def velocity_at(robot: RobotArrays, links: Links, w: int, pair: int, x: vec3, n: vec3):
    """Velocity at x, relative to the solid of a pair, of the body that carries the points of the pair [m/s].

    The solid has the normal n of any length.
    """
    contacts = robot.contacts
    own = contacts.group_body[contacts.pair_group[pair]]
    return relative_velocity(robot.tree, links, w, own, robot.solids.body[contacts.pair_solid[pair]], x, n)


@wp.func
def pose_all(
    robot: RobotArrays, motion: ObstacleMotion, stage: ImplicitStage, at: scalar, links: Links, frames: MovingPoses,
    w: int,
):  # fmt: skip
    """Write poses and twists of all elements of world w, by one thread, with obstacles at the time `at` of the step."""
    for i in range(robot.tree.elements):
        e = robot.tree.order[i]
        k = w * robot.tree.bodies + robot.tree.body[e]
        joint = joint_frame(robot.design, k)
        move(robot.tree, robot.design, stage, joint, body_frame(robot.design, k), links, w, e)
    place_world(motion, w, at, frames)


@wp.func
def mark_free(
    robot: RobotArrays, motion: ObstacleMotion, step: scalar, last: int, start: ImplicitStage, left: scalar,
    contact_list: ContactList, links: Links, frames: MovingPoses, w: int,
):  # fmt: skip
    """Mark the candidates that are about to have an instant impact, at the start of a part.

    Returns AT_ONCE if a marked candidate already touches, else NONE. The last part of a step has no marked candidates.
    A candidate stays compliant if it already overlaps, or if it approaches at a speed of at most |g| h + `CLOSE` / h,
    with the length h (`step`) of a step.
    """
    contacts = robot.contacts
    event = int(NONE)
    slow = wp.length(robot.design.gravity[w]) * step + CLOSE / step
    if left > _ZERO:
        pose_all(robot, motion, start, step - left, links, frames, w)
    for c in range(contacts.candidates):
        free = int(0)
        pair = contact_list.pair[c]
        if left > _ZERO and last == 0 and contacts.instant[contacts.pair_law[pair]] == 1:
            x, d, n = approach(robot, links, w, pair, contact_list.point[c])
            if d >= -CLOSE and wp.dot(n, velocity_at(robot, links, w, pair, x, n)) < -slow:
                free = 1
                if d <= CLOSE:
                    event = AT_ONCE
        contact_list.free[w * contacts.candidates + c] = free
    return event


@wp.kernel(enable_backward=False)
def release_kernel(
    # model
    robot: RobotArrays,
    # step
    motion: ObstacleMotion,
    step: scalar,
    last: int,
    start: ImplicitStage,
    left: wp.array[scalar],
    # out
    contact_list_out: ContactList,
    links_out: Links,
    frames_out: MovingPoses,
):
    """Mark the candidates that are about to have an instant impact, at the start of a part."""
    w = wp.tid()
    mark_free(robot, motion, step, last, start, left[w], contact_list_out, links_out, frames_out, w)


@wp.kernel(enable_backward=False)
def prepare_kernel(
    # model
    robot: RobotArrays,
    # step
    motion: ObstacleMotion,
    step: scalar,
    last: int,
    start: ImplicitStage,
    # out
    contact_list_out: ContactList,
    links_out: Links,
    frames_out: MovingPoses,
    impact_out: Impact,
):
    """Mark the candidates that are about to have an instant impact, and initialise `impact_out` for a part.

    A world in which a marked candidate already touches takes no step of the integrator in this part.
    """
    w = wp.tid()
    left = impact_out.left[w]
    event = mark_free(robot, motion, step, last, start, left, contact_list_out, links_out, frames_out, w)
    impact_out.event[w] = event
    impact_out.length[w] = wp.where(event == NONE, left, _ZERO)
    impact_out.time[w] = impact_out.length[w]
    impact_out.rate[w] = _ZERO
    impact_out.count[w] = 0


@wp.func
def arrive(
    tree: JointTree, past: Past, stage: ImplicitStage, length: scalar, t: scalar, impact: Impact, w: int, e: int
):
    """Write the coordinates and velocities of element e at time t of a part to `impact`."""
    kind = tree.kind[e]
    i = w * tree.coordinates + tree.coordinate[e]
    j = w * tree.freedom + tree.dof[e]
    x = vec3()
    rate = of_joint(tree, past.qd, w, e)
    if length > _ZERO:
        s = t / length
        x1 = of_joint(tree, stage.x, w, e)
        v0 = rate
        v1 = stage.c[w] * x1 + of_joint(tree, stage.rate, w, e)
        a = _ONE - s
        x = s * s * (scalar(3.0) - scalar(2.0) * s) * x1 + t * a * (a * v0 - s * v1)
        rate = scalar(6.0) * s * a / length * x1 + a * (_ONE - scalar(3.0) * s) * v0
        rate = rate + s * (scalar(3.0) * s - scalar(2.0)) * v1
    if kind == BALL:
        q = quat(past.q[i], past.q[i + 1], past.q[i + 2], past.q[i + 3])
        q = wp.normalize(q) * cayley(x)
        v = cayley_velocity(x, rate)
        for k in range(4):
            impact.q[i + k] = q[k]
        for k in range(3):
            impact.qd[j + k] = v[k]
    elif kind != FIXED:
        impact.q[i] = past.q[i] + x[0]
        impact.qd[j] = rate[0]


@wp.func
def go_to(
    robot: RobotArrays,
    motion: ObstacleMotion,
    past: Past,
    stage: ImplicitStage,
    at_impact: ImplicitStage,
    t: scalar,
    links: Links,
    frames: MovingPoses,
    impact: Impact,
    w: int,
):
    """Write coordinates, velocities and poses of world w at time t of a part, by one thread."""
    for e in range(robot.tree.elements):
        arrive(robot.tree, past, stage, impact.length[w], t, impact, w, e)
    pose_all(robot, motion, at_impact, past.h - impact.left[w] + t, links, frames, w)


@wp.func
def least_gap(robot: RobotArrays, contact_list: ContactList, links: Links, w: int):
    """Least gap of all marked candidates [m], and the candidate with this gap; infinity and -1 if none is marked."""
    least = scalar(wp.inf)
    nearest = int(-1)
    for c in range(robot.contacts.candidates):
        if contact_list.free[w * robot.contacts.candidates + c] == 1:
            _x, d, _n = approach(robot, links, w, contact_list.pair[c], contact_list.point[c])
            if d < least:
                least = d
                nearest = c
    return least, nearest


@wp.func
def gap_of(robot: RobotArrays, contact_list: ContactList, links: Links, w: int, c: int):
    """Signed distance between the point and the solid of candidate c [m]."""
    _x, d, _n = approach(robot, links, w, contact_list.pair[c], contact_list.point[c])
    return d


@wp.kernel(enable_backward=False)
def locate_kernel(
    # model
    robot: RobotArrays,
    # step
    motion: ObstacleMotion,
    step: scalar,
    past: Past,
    stage: ImplicitStage,
    at_impact: ImplicitStage,
    contact_list: ContactList,
    report: Report,
    # out
    links_out: Links,
    frames_out: MovingPoses,
    impact_out: Impact,
):
    """Find the first impact of a part with the Illinois method, and write the state at the time of the impact.

    Without an impact the kernel writes the state at the end of the part.
    """
    w = wp.tid()
    length = impact_out.length[w]
    go_to(robot, motion, past, stage, at_impact, length, links_out, frames_out, impact_out, w)
    if length == _ZERO or report.found[w] == 0:
        return
    above = scalar(0.0)
    below = length
    gap_below, nearest = least_gap(robot, contact_list, links_out, w)
    if nearest < 0 or not gap_below < _ZERO:
        return
    go_to(robot, motion, past, stage, at_impact, above, links_out, frames_out, impact_out, w)
    gap_above, _c = least_gap(robot, contact_list, links_out, w)
    t = length
    gap = gap_below
    side = int(0)
    for _i in range(60):
        if wp.abs(gap) > _ROOT:
            t = above + (below - above) * gap_above / (gap_above - gap_below)
            go_to(robot, motion, past, stage, at_impact, t, links_out, frames_out, impact_out, w)
            gap, nearest = least_gap(robot, contact_list, links_out, w)
            if gap < _ZERO:
                below = t
                gap_below = gap
                if side == -1:
                    gap_above = scalar(0.5) * gap_above
                side = -1
            else:
                above = t
                gap_above = gap
                if side == 1:
                    gap_below = scalar(0.5) * gap_below
                side = 1
    wide = _SHARE * length
    go_to(robot, motion, past, stage, at_impact, t + wide, links_out, frames_out, impact_out, w)
    after = gap_of(robot, contact_list, links_out, w, nearest)
    go_to(robot, motion, past, stage, at_impact, t - wide, links_out, frames_out, impact_out, w)
    rate = (after - gap_of(robot, contact_list, links_out, w, nearest)) / (scalar(2.0) * wide)
    t = t - gap / rate
    if not rate < _ZERO or length - t < _LEAST * step:
        t = length
    else:
        impact_out.event[w] = IN_TIME
        impact_out.time[w] = t
        impact_out.rate[w] = rate
        impact_out.candidate[w * CONTACTS] = nearest
        impact_out.count[w] = 1
    go_to(robot, motion, past, stage, at_impact, t, links_out, frames_out, impact_out, w)
