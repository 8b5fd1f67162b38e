"""Contacts that move only with bones, solved together by Newton's method for the displacements of joints.

Such contacts are coupled through joints only. The skin is the compliance c of a contact itself (`coulomb_law`). For
given displacements y of the joints, the law of contact i with its skin gives its force in closed form, lambda_i =
l_i(q_i + J_i y), with the displacement J_i of the contact per joint displacement and the displacement R_i of the joints
per contact force. This leaves

    y = sum R_i lambda_i(y)

with as many unknowns as there are joint velocities, however many contacts there are. Sweeps over single contacts would
be slow: each contact moves the whole bone, so that a sweep removes only a thousandth of the error in the distribution
of a load.

The law is piecewise smooth; Newton's method takes the derivative on the present piece. The adjoint is linear: one step
solves it.
"""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.articulated.lu import eliminate_at, solve_at
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    borne_entry,
    joint_in,
    places_in,
)
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = ["adj_solve_borne", "find_ranges", "solve_borne"]

_vec, _mat = vector(3), matrix(3)
_STEPS = wp.constant(20)
_HALVINGS = wp.constant(10)  # of a step that overshoots, as one from slip to stick does
_ENOUGH = wp.constant(scalar(0.1))  # part of a step by which the residual has to decrease
_STICKY, _SLIP, _FRICTION = (wp.constant(CODES[name]) for name in ("sticky", "slip", "friction"))
_CLOSE = wp.constant(scalar(1e-4))  # step relative to the deepest skin at which the method has converged


@wp.func
def borne_at(order: wp.array[int], contacts: int, w: int, number: int):
    """Index of a contact that moves only with bones, among the contacts of all worlds."""
    return w * contacts + order[borne_entry(contacts, w, number)]


@wp.func
def matrix_of(coupling: JointCoupling, w: int, j: int):
    """Index a and size n of the range of joint velocity j: row i and column j of the matrix are at a + n i + j."""
    n = coupling.freedom
    ends = coupling.range[w * n + j]
    size = ends[1] - ends[0]
    return (w * n + ends[0]) * n - (size + 1) * ends[0], size


@wp.func
def on_skin(q: vec3, n: vec3, c: scalar, w: scalar, condition: int, mu: scalar, extra: scalar, closed: int):
    """Force l of `coulomb_law.law` with w = c, without differences of large numbers, and its derivative dl/dq.

    With static friction the law depends on w: a contact slides if its displacement exceeds mu c N + extra w N. So the
    larger w of the sweeps decides, else a body would slide here that sticks there and in the adjoint.
    """
    one = wp.identity(n=3, dtype=scalar)
    across = q - wp.dot(q, n) * n
    depth = -wp.dot(q, n)
    slides = wp.length(across)
    l = vec3()
    slope = mat33()
    if condition == _STICKY and closed == 1:
        l = -q
        slope = -one
    elif condition <= _SLIP and closed == 1:
        l = depth * n
        slope = -wp.outer(n, n)
    elif depth > scalar(0.0):
        rough = condition == _FRICTION and mu + extra > scalar(0.0)
        if rough and slides <= (mu + extra * w / c) * depth:
            l = -q
            slope = -one
        elif rough:
            way = across / slides
            l = depth * (n - mu * way)
            slope = mu * (wp.outer(way, n) - depth / slides * (one - wp.outer(n, n) - wp.outer(way, way)))
            slope -= wp.outer(n, n)
        else:
            l = depth * n
            slope = -wp.outer(n, n)
    return l / c, slope / c


@wp.func
def write_rest(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Write the residual of the equations for y: sum R dlambda - dy."""
    n = coupling.freedom
    for j in range(lane, n, lanes):
        coupling.step[w * n + j] = -coupling.guess[w * n + j]
    sync()
    for number in range(count):
        k = borne_at(contacts.order, topology.contacts, w, number)
        push = coupling.push[k]
        span = coupling.span[k]
        for p in range(lane, places_in(span), lanes):
            m = w * n + joint_in(span, p)
            change = scalar(wp.dot(coupling.response[k * coupling.width + p], push))
            coupling.step[m] = coupling.step[m] + change
        sync()


@wp.func
def write_system(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Write the matrices of the equations for y, one for each range: 1 - sum R (dl/dq) J."""
    n = coupling.freedom
    for j in range(lane, n, lanes):
        start, size = matrix_of(coupling, w, j)
        for i in range(coupling.range[w * n + j][0], coupling.range[w * n + j][1]):
            coupling.matrix[start + size * i + j] = wp.where(i == j, scalar(1.0), scalar(0.0))
    sync()
    for number in range(count):
        k = borne_at(contacts.order, topology.contacts, w, number)
        first = k * coupling.width
        span = coupling.span[k]
        slope = coupling.slope[k]
        places = places_in(span)
        start, size = matrix_of(coupling, w, span[0])
        for q in range(lane, places, lanes):
            column = start + joint_in(span, q)
            change = slope @ coupling.jacobian[first + q]
            for p in range(places):
                m = column + size * joint_in(span, p)
                coupling.matrix[m] = coupling.matrix[m] - scalar(wp.dot(coupling.response[first + p], change))
        sync()


@wp.func
def reach(topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int):
    """Largest displacement of a contact in the step of the joints in `coupling.step` [m]."""
    n = coupling.freedom
    most = scalar(0.0)
    for number in range(count):
        k = borne_at(contacts.order, topology.contacts, w, number)
        way = vec3()
        span = coupling.span[k]
        for p in range(places_in(span)):
            step = coupling.step[w * n + joint_in(span, p)]
            way += step * vec3(coupling.jacobian[k * coupling.width + p])
        most = wp.max(most, wp.length(way))
    return most


@wp.func
def find_step(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Write the Newton step; returns the largest displacement of a contact in this step [m]."""
    write_rest(topology, contacts, coupling, w, count, lane, lanes)
    write_system(topology, contacts, coupling, w, count, lane, lanes)
    n = coupling.freedom
    s = int(0)
    while s < n:
        size = coupling.range[w * n + s][1] - s
        eliminate_at(
            coupling.matrix, coupling.pivot, coupling.step, (w * n + s) * n, w * n + s, size, lane, lanes,
        )  # fmt: skip
        s += size
    for j in range(lane, n, lanes):
        coupling.way[w * n + j] = coupling.step[w * n + j]
    sync()
    return reach(topology, contacts, coupling, w, count)


@wp.func
def left(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Largest displacement of a contact in another step with the same matrix [m]: a measure of the remaining error."""
    write_rest(topology, contacts, coupling, w, count, lane, lanes)
    n = coupling.freedom
    for s in range(lane, n, lanes):
        if coupling.range[w * n + s][0] == s:
            size = coupling.range[w * n + s][1] - s
            solve_at(coupling.matrix, coupling.pivot, coupling.step, (w * n + s) * n, w * n + s, size)
    sync()
    return reach(topology, contacts, coupling, w, count)


@wp.func
def take(coupling: JointCoupling, w: int, part: scalar, lane: int, lanes: int):
    """Add the fraction `part` of the Newton step to the guess."""
    for j in range(lane, coupling.freedom, lanes):
        m = w * coupling.freedom + j
        coupling.guess[m] += part * coupling.way[m]
    sync()


@wp.func
def find_ranges(topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int):
    """Write the smallest ranges of joint velocities that no contact connects, by one thread."""
    n = coupling.freedom
    for j in range(n):
        coupling.range[w * n + j] = wp.vec2i(j, j + 1)
    for number in range(count):
        span = coupling.span[borne_at(contacts.order, topology.contacts, w, number)]
        if span[1] > span[0]:
            m = w * n + span[0]
            end = wp.max(span[1], span[3])
            coupling.range[m] = wp.vec2i(span[0], wp.max(coupling.range[m][1], end))
    start = int(0)
    end = int(0)
    for j in range(n):
        if j >= end:
            start = j
        end = wp.max(end, coupling.range[w * n + j][1])
        coupling.range[w * n + j] = wp.vec2i(start, end)
    for m in range(n):
        j = n - 1 - m
        start = coupling.range[w * n + j][0]
        if j == n - 1 or coupling.range[w * n + j + 1][0] > start:
            end = j + 1
        coupling.range[w * n + j] = wp.vec2i(start, end)


@wp.func
def begin(coupling: JointCoupling, w: int, lane: int, lanes: int):
    """Set the guess to zero."""
    for j in range(lane, coupling.freedom, lanes):
        coupling.guess[w * coupling.freedom + j] = scalar(0.0)
    sync()


@wp.func
def respond(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, adjoint: bool, lane: int, lanes: int,
):  # fmt: skip
    """Write the changes of forces at the present guess, and the derivatives of forces by q.

    In the adjoint, write the changes of nu, the product of B^T with each, which moves the joints, and its derivative.
    """
    force = w * (topology.stride - topology.contacts) + topology.first
    for number in range(lane, count, lanes):
        i = borne_entry(topology.contacts, w, number)
        k = borne_at(contacts.order, topology.contacts, w, number)
        lam = at(z, force + k) + at(f, force + k)
        q = vec3(contacts.gap[i])
        span = coupling.span[k]
        for p in range(places_in(span)):
            m = w * coupling.freedom + joint_in(span, p)
            y = scalar(coupling.displacement[m]) + coupling.guess[m]  # large terms of q nearly cancel
            q += y * vec3(coupling.jacobian[k * coupling.width + p])
        if adjoint:
            B = mat33(wp.transpose(contacts.by_displacement[k]))
            K = wp.inverse(wp.identity(n=3, dtype=scalar) - mat33(wp.transpose(contacts.by_force[k])))
            change = _vec(K @ q - vec3(lam))
            coupling.change[k] = change
            coupling.push[k] = _vec(B @ vec3(change))
            coupling.slope[k] = _mat(B @ K)
        else:
            l, slope = on_skin(
                q, vec3(contacts.normal[k]), scalar(contacts.skin[k]), scalar(contacts.own[k]), contacts.condition[k],
                scalar(contacts.friction[k]), scalar(contacts.extra[k]), contacts.closed[k],
            )  # fmt: skip
            change = _vec(l) - lam
            coupling.change[k] = change
            coupling.push[k] = change
            coupling.slope[k] = _mat(slope)
    sync()


@wp.func
def deepest(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int,
):  # fmt: skip
    """Largest compression c |lambda| of the skin of a contact at the present guess [m]."""
    most = real(0.0)
    force = w * (topology.stride - topology.contacts) + topology.first
    for number in range(count):
        k = borne_at(contacts.order, topology.contacts, w, number)
        j = force + k
        lam = at(z, j) + at(f, j) + coupling.change[k]
        most = wp.max(most, contacts.skin[k] * wp.length(lam))
    return scalar(most)


@wp.func
def accept(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, f: wp.array[NODE], w: int, count: int,
    lane: int, lanes: int,
):  # fmt: skip
    """Add the changes to forces and joint displacements; returns the number of contacts and the largest change [m]."""
    size = real(0.0)
    force = w * (topology.stride - topology.contacts) + topology.first
    for number in range(count):
        k = borne_at(contacts.order, topology.contacts, w, number)
        size = wp.max(size, contacts.own[k] * wp.length(coupling.change[k]))
        if lane == 0:
            j = force + k
            f[j] = f[j] + packed(coupling.change[k])
    for j in range(lane, coupling.freedom, lanes):
        m = w * coupling.freedom + j
        coupling.displacement[m] += real(coupling.guess[m])
    sync()
    return count, size


@wp.func
def solve_borne(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, lane: int, lanes: int,
):  # fmt: skip
    """Solve for the forces of contacts that move only with bones; returns their number and the largest change [m].

    If Newton's method does not converge, no force changes and the number is 0.
    """
    if count == 0:
        return 0, real(0.0)
    begin(coupling, w, lane, lanes)
    for _step in range(_STEPS):
        respond(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
        before = find_step(topology, contacts, coupling, w, count, lane, lanes)
        close = before <= _CLOSE * deepest(topology, contacts, coupling, z, f, w, count)
        part = scalar(1.0)
        take(coupling, w, part, lane, lanes)
        if close:
            respond(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
            return accept(topology, contacts, coupling, f, w, count, lane, lanes)
        for _halving in range(_HALVINGS):
            respond(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
            if left(topology, contacts, coupling, w, count, lane, lanes) <= (scalar(1.0) - _ENOUGH * part) * before:
                break
            part = scalar(0.5) * part
            take(coupling, w, -part, lane, lanes)
    return 0, real(0.0)


@wp.func
def adj_solve_borne(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, lane: int, lanes: int,
):  # fmt: skip
    """`solve_borne` for nu in place of the forces in the adjoint."""
    if count == 0:
        return 0, real(0.0)
    begin(coupling, w, lane, lanes)
    respond(topology, contacts, coupling, z, f, w, count, True, lane, lanes)
    find_step(topology, contacts, coupling, w, count, lane, lanes)
    take(coupling, w, scalar(1.0), lane, lanes)
    respond(topology, contacts, coupling, z, f, w, count, True, lane, lanes)
    return accept(topology, contacts, coupling, f, w, count, lane, lanes)
