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
from warpbots.solvers.articulated.lu import eliminate, solve
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, JointCoupling
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = ["adj_solve_borne", "solve_borne"]

_vec, _mat = vector(3), matrix(3)
_STEPS = wp.constant(20)
_HALVINGS = wp.constant(10)  # of a step that overshoots, as one from slip to stick does
_ENOUGH = wp.constant(scalar(0.1))  # part of a step by which the residual has to decrease
_STICKY, _SLIP, _FRICTION = (wp.constant(CODES[name]) for name in ("sticky", "slip", "friction"))
_CLOSE = wp.constant(scalar(1e-4))  # step relative to the deepest skin at which the method has converged


@wp.func
def on_skin(q: vec3, n: vec3, c: scalar, condition: int, mu: scalar, extra: scalar, closed: int):
    """Force l of `coulomb_law.law` with w = c, without differences of large numbers, and its derivative dl/dq."""
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
        if rough and slides <= (mu + extra) * depth:
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
def displaced(contacts: ContactArrays, coupling: JointCoupling, w: int, i: int, k: int):
    """q of entry i in the list of active contacts after joint displacements; its large terms nearly cancel."""
    total = vec3(contacts.gap[i])
    for j in range(coupling.freedom):
        m = w * coupling.freedom + j
        y = scalar(coupling.displacement[m]) + coupling.guess[m]
        total += y * vec3(coupling.jacobian[k * coupling.freedom + j])
    return total


@wp.func
def respond(contacts: ContactArrays, coupling: JointCoupling, w: int, i: int, k: int, lam: _vec):
    """Write the change of the force of a contact at the present guess, and the derivative of the force by q."""
    l, slope = on_skin(
        displaced(contacts, coupling, w, i, k), vec3(contacts.normal[k]), scalar(contacts.skin[k]),
        contacts.condition[k], scalar(contacts.friction[k]), scalar(contacts.extra[k]), contacts.closed[k],
    )  # fmt: skip
    change = _vec(l) - lam
    coupling.change[k] = change
    coupling.push[k] = change
    coupling.slope[k] = _mat(slope)


@wp.func
def adj_respond(contacts: ContactArrays, coupling: JointCoupling, w: int, i: int, k: int, nu: _vec):
    """`respond` for nu in place of the force in the adjoint; B^T nu is what moves the joints."""
    B = mat33(wp.transpose(contacts.by_displacement[k]))
    K = wp.inverse(wp.identity(n=3, dtype=scalar) - mat33(wp.transpose(contacts.by_force[k])))
    change = _vec(K @ displaced(contacts, coupling, w, i, k) - vec3(nu))
    coupling.change[k] = change
    coupling.push[k] = _vec(B @ vec3(change))
    coupling.slope[k] = _mat(B @ K)


@wp.func
def write_rest(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Write the residual of the equations for y: sum R dlambda - dy."""
    n = coupling.freedom
    first = w * topology.contacts
    for b in range(lane, n, lanes):
        rest = -coupling.guess[w * n + b]
        for i in range(count):
            k = first + contacts.order[first + i]
            if contacts.borne[k] == 1:
                rest += scalar(wp.dot(coupling.response[k * n + b], coupling.push[k]))
        coupling.step[w * n + b] = rest
    sync()


@wp.func
def write_system(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Write the matrix of the equations for y: 1 - sum R (dl/dq) J."""
    n = coupling.freedom
    first = w * topology.contacts
    for b in range(lane, n, lanes):
        for a in range(n):
            coupling.matrix[(w * n + a) * n + b] = wp.where(a == b, scalar(1.0), scalar(0.0))
        for i in range(count):
            k = first + contacts.order[first + i]
            if contacts.borne[k] == 1:
                slope = coupling.slope[k] @ coupling.jacobian[k * n + b]
                for a in range(n):
                    m = (w * n + a) * n + b
                    coupling.matrix[m] -= scalar(wp.dot(coupling.response[k * n + a], slope))
    sync()


@wp.func
def reach(topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int):
    """Largest displacement of a contact in the step of the joints in `coupling.step` [m]."""
    n = coupling.freedom
    first = w * topology.contacts
    most = scalar(0.0)
    for i in range(count):
        k = first + contacts.order[first + i]
        if contacts.borne[k] == 1:
            way = vec3()
            for j in range(n):
                way += coupling.step[w * n + j] * vec3(coupling.jacobian[k * n + j])
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
    eliminate(coupling.matrix, coupling.pivot, coupling.step, w, coupling.freedom, lane, lanes)
    for j in range(lane, coupling.freedom, lanes):
        coupling.way[w * coupling.freedom + j] = coupling.step[w * coupling.freedom + j]
    sync()
    return reach(topology, contacts, coupling, w, count)


@wp.func
def left(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Largest displacement of a contact in another step with the same matrix [m]: a measure of the remaining error."""
    write_rest(topology, contacts, coupling, w, count, lane, lanes)
    if lane == 0:
        solve(coupling.matrix, coupling.pivot, coupling.step, w, coupling.freedom)
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
def begin(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, w: int, count: int, lane: int,
    lanes: int,
):  # fmt: skip
    """Set the guess to zero; returns the number of active contacts that move only with bones."""
    for j in range(lane, coupling.freedom, lanes):
        coupling.guess[w * coupling.freedom + j] = scalar(0.0)
    sync()
    first = w * topology.contacts
    number = int(0)
    for i in range(count):
        number += contacts.borne[first + contacts.order[first + i]]
    return number


@wp.func
def respond_all(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, adjoint: bool, lane: int, lanes: int,
):  # fmt: skip
    """Call `respond`, or `adj_respond`, for all active contacts that move only with bones."""
    first = w * topology.contacts
    for i in range(lane, count, lanes):
        c = contacts.order[first + i]
        if contacts.borne[first + c] == 1:
            j = w * topology.stride + topology.first + c
            lam = at(z, j) + at(f, j)
            if adjoint:
                adj_respond(contacts, coupling, w, first + i, first + c, lam)
            else:
                respond(contacts, coupling, w, first + i, first + c, lam)
    sync()


@wp.func
def deepest(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int,
):  # fmt: skip
    """Largest compression c |lambda| of the skin of a contact at the present guess [m]."""
    first = w * topology.contacts
    most = real(0.0)
    for i in range(count):
        c = contacts.order[first + i]
        if contacts.borne[first + c] == 1:
            j = w * topology.stride + topology.first + c
            lam = at(z, j) + at(f, j) + coupling.change[first + c]
            most = wp.max(most, contacts.skin[first + c] * wp.length(lam))
    return scalar(most)


@wp.func
def accept(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, f: wp.array[NODE], w: int, count: int,
    lane: int, lanes: int,
):  # fmt: skip
    """Add the changes to forces and joint displacements; returns the number of contacts and the largest change [m]."""
    first = w * topology.contacts
    size = real(0.0)
    solved = int(0)
    for i in range(count):
        c = contacts.order[first + i]
        if contacts.borne[first + c] == 1:
            solved += 1
            size = wp.max(size, contacts.own[first + c] * wp.length(coupling.change[first + c]))
            if lane == 0:
                j = w * topology.stride + topology.first + c
                f[j] = f[j] + packed(coupling.change[first + c])
    for j in range(lane, coupling.freedom, lanes):
        m = w * coupling.freedom + j
        coupling.displacement[m] += real(coupling.guess[m])
    sync()
    return solved, size


@wp.func
def solve_borne(
    topology: ContactTopology, contacts: ContactArrays, coupling: JointCoupling, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, lane: int, lanes: int,
):  # fmt: skip
    """Solve for the forces of contacts that move only with bones; returns their number and the largest change [m].

    If Newton's method does not converge, no force changes and the number is 0.
    """
    if begin(topology, contacts, coupling, w, count, lane, lanes) == 0:
        return 0, real(0.0)
    for _step in range(_STEPS):
        respond_all(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
        before = find_step(topology, contacts, coupling, w, count, lane, lanes)
        close = before <= _CLOSE * deepest(topology, contacts, coupling, z, f, w, count)
        part = scalar(1.0)
        take(coupling, w, part, lane, lanes)
        if close:
            respond_all(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
            return accept(topology, contacts, coupling, f, w, count, lane, lanes)
        for _halving in range(_HALVINGS):
            respond_all(topology, contacts, coupling, z, f, w, count, False, lane, lanes)
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
    if begin(topology, contacts, coupling, w, count, lane, lanes) == 0:
        return 0, real(0.0)
    respond_all(topology, contacts, coupling, z, f, w, count, True, lane, lanes)
    find_step(topology, contacts, coupling, w, count, lane, lanes)
    take(coupling, w, scalar(1.0), lane, lanes)
    respond_all(topology, contacts, coupling, z, f, w, count, True, lane, lanes)
    return accept(topology, contacts, coupling, f, w, count, lane, lanes)
