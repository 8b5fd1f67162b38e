"""Forces of all contacts of a world, one contact after the other, each seeing what the others do (Gauss and Seidel)."""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.coulomb import (
    MeetingArrays,
    ReachArrays,
    TouchArrays,
    compliant,
    law,
)
from warpbots.solvers.projective.contact.free_rotation import TurningArrays, body_of
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = ["adj_list_kernel", "adj_sweep_kernel", "count_kernel", "list_kernel", "mutual_kernel", "sweep_kernel"]

_vec = vector(3)
_SWEEPS = wp.constant(300)
_INNER = wp.constant(20)  # steps towards the force of a contact that moves by different ways in different directions
_SETTLED = wp.constant(real(0.001))  # share of the first change in a step below which contacts are not swept again
_NEARLY = wp.constant(real(0.01))  # the same for the adjoint, whose iteration takes what is left for what it is


@wp.func
def moved(touch: TouchArrays, meeting: MeetingArrays, z: wp.array[NODE], f: wp.array[NODE], w: int, c: int):
    """Sum a_k u_k of a contact after a correction."""
    total = _vec()
    for p in range(4):
        i = meeting.node[c][p]
        if i >= 0:
            k = w * touch.stride + i
            total += meeting.weight[c][p] * (at(z, k) + at(f, k))
    return total


@wp.func
def part_of(touch: TouchArrays, meeting: MeetingArrays, part: int):
    """First contact of a part of those of a world, and the one after its last."""
    length = (touch.contacts + meeting.parts - 1) / meeting.parts
    return part * length, wp.min((part + 1) * length, touch.contacts)


@wp.kernel(enable_backward=False)
def count_kernel(touch: TouchArrays, active: wp.array[int], meeting_out: MeetingArrays):
    """Count the contacts of each part that count."""
    w, part = wp.tid()
    count = int(0)
    if active[w] == 1:
        start, end = part_of(touch, meeting_out, part)
        for c in range(start, end):
            count += meeting_out.listed[w * touch.contacts + c]
    meeting_out.part[w * meeting_out.parts + part] = count


@wp.func
def before(meeting: MeetingArrays, w: int, part: int):
    """Number of contacts that count in the parts before one."""
    count = int(0)
    for k in range(part):
        count += meeting.part[w * meeting.parts + k]
    return count


@wp.func
def press(meeting: MeetingArrays, w: int, part: int, count: int):
    """Note how many contacts of a world count, with its last part, and whether there are any."""
    if part == meeting.parts - 1:
        meeting.count[w] = count
        meeting.pressed[w] = wp.min(count, 1)
        wp.atomic_add(meeting.any, 0, wp.min(count, 1))


@wp.kernel(enable_backward=False)
def list_kernel(
    touch: TouchArrays, active: wp.array[int], z: wp.array[NODE], meeting_out: MeetingArrays, f_out: wp.array[NODE]
):  # fmt: skip
    """Put the contacts that count in a row, with their q; those that do not shall have no force."""
    w, part = wp.tid()
    count = int(0)
    if active[w] == 1:
        count = before(meeting_out, w, part)
        first = w * touch.contacts
        entry = w * touch.stride + touch.first
        start, end = part_of(touch, meeting_out, part)
        for c in range(start, end):
            f_out[entry + c] = NODE()
            if meeting_out.listed[first + c] == 1:
                u = moved(touch, meeting_out, z, f_out, w, first + c)
                m = meeting_out.normal[first + c]
                meeting_out.gap[first + count] = u - wp.dot(m, u) * m + meeting_out.distance[first + c] * m
                meeting_out.order[first + count] = c
                count += 1
            else:
                f_out[entry + c] = -z[entry + c]
    press(meeting_out, w, part, count)


@wp.kernel(enable_backward=False)
def adj_list_kernel(
    touch: TouchArrays, active: wp.array[int], z: wp.array[NODE], meeting_out: MeetingArrays, f_out: wp.array[NODE]
):  # fmt: skip
    """Put the contacts that count in a row, with their sums a_k a."""
    w, part = wp.tid()
    count = int(0)
    if active[w] == 1:
        count = before(meeting_out, w, part)
        first = w * touch.contacts
        start, end = part_of(touch, meeting_out, part)
        for c in range(start, end):
            f_out[w * touch.stride + touch.first + c] = NODE()
            if meeting_out.listed[first + c] == 1:
                meeting_out.gap[first + count] = moved(touch, meeting_out, z, f_out, w, first + c)
                meeting_out.order[first + count] = c
                count += 1
    press(meeting_out, w, part, count)


@wp.kernel(enable_backward=False)
def mutual_kernel(touch: TouchArrays, lanes: int, meeting: MeetingArrays, compliance_out: ComplianceArrays):
    """Write the compliances of all contacts that count, if there is room for them."""
    w, i, lane = wp.tid()
    count = meeting.count[w]
    if i >= count or count > compliance_out.side:
        return
    first = w * touch.contacts
    row = (w * compliance_out.side + i) * compliance_out.side
    c = first + meeting.order[first + i]
    for j in range(lane, count, lanes):
        d = first + meeting.order[first + j]
        compliance_out.mutual[row + j] = compliant(touch, meeting, compliance_out, c, d)


@wp.func
def between(
    touch: TouchArrays, meeting: MeetingArrays, compliance: ComplianceArrays, w: int, count: int, i: int, j: int
):  # fmt: skip
    """How far number j of the contacts that count moves per force of number i [m/N]: kept, if there was room."""
    share = real(0.0)
    if count <= compliance.side:
        share = compliance.mutual[(w * compliance.side + i) * compliance.side + j]
    else:
        first = w * touch.contacts
        c = first + meeting.order[first + i]
        share = compliant(touch, meeting, compliance, c, first + meeting.order[first + j])
    return share


@wp.func
def spread(
    touch: TouchArrays, meeting: MeetingArrays, compliance: ComplianceArrays, reach: ReachArrays,
    turning: TurningArrays, scaling: real, w: int, count: int, i: int, change: _vec, lane: int, lanes: int,
):  # fmt: skip
    """Move contacts that count, joints and bodies by what a change of one force, that of number i of them, does."""
    first = w * touch.contacts
    scaled = change / scaling
    for j in range(lane, count, lanes):
        share = between(touch, meeting, compliance, w, count, i, j)
        meeting.gap[first + j] = meeting.gap[first + j] + share * scaled
    k = (first + meeting.order[first + i]) * reach.freedom
    for j in range(lane, reach.freedom, lanes):
        reach.motion[w * reach.freedom + j] += wp.dot(reach.reply[k + j], change)
    if turning.count > 0 and lane == 0:
        c = first + meeting.order[first + i]
        for p in range(4):
            node = meeting.node[c][p]
            b = body_of(turning, node)
            if b >= 0:
                n = w * turning.count + b
                arm = meeting.weight[c][p] * turning.arm[w * turning.nodes + node]
                turning.turn[n] = turning.turn[n] + turning.gain[n] * wp.vec3d(wp.cross(arm, change))


@wp.func
def carried(
    touch: TouchArrays, meeting: MeetingArrays, reach: ReachArrays, turning: TurningArrays, w: int, i: int
):  # fmt: skip
    """How far joints, and bodies that turn, have moved number i of the contacts that count."""
    first = w * touch.contacts
    k = (first + meeting.order[first + i]) * reach.freedom
    total = _vec()
    for j in range(reach.freedom):
        total += reach.motion[w * reach.freedom + j] * reach.reach[k + j]
    if turning.count > 0:
        c = first + meeting.order[first + i]
        for p in range(4):
            node = meeting.node[c][p]
            b = body_of(turning, node)
            if b >= 0:
                arm = meeting.weight[c][p] * turning.arm[w * turning.nodes + node]
                total += wp.cross(_vec(turning.turn[w * turning.count + b]), arm)
    return total


@wp.func
def rest(reach: ReachArrays, turning: TurningArrays, w: int, lane: int, lanes: int):
    """No joint has moved yet, and no body has turned."""
    for j in range(lane, reach.freedom, lanes):
        reach.motion[w * reach.freedom + j] = real(0.0)
    for b in range(lane, turning.count, lanes):
        turning.turn[w * turning.count + b] = wp.vec3d()


@wp.func
def settle(meeting: MeetingArrays, k: int, q: _vec, lam: _vec):
    """By how much the force of a contact changes until it obeys the law, if all others stay as they are."""
    change = _vec()
    for _ in range(_INNER):
        l = law(
            q + meeting.response[k] @ change, meeting.normal[k], lam + change, meeting.own[k], meeting.skin[k],
            meeting.condition[k], meeting.friction[k], meeting.extra[k], meeting.touched[k],
        )  # fmt: skip
        step = l - (lam + change)
        change += step
        if wp.length(step) <= _SETTLED * wp.length(change):
            break
    return change


@wp.kernel(enable_backward=False)
def sweep_kernel(
    touch: TouchArrays, lanes: int, scaling: wp.array[real], active: wp.array[int], z: wp.array[NODE],
    compliance: ComplianceArrays, reach_out: ReachArrays, turning_out: TurningArrays, meeting_out: MeetingArrays,
    f_out: wp.array[NODE],
):  # fmt: skip
    """Find forces that obey the law, contact after contact, and write how they change.

    Every thread of a world finds the change of a force, and moves a share of the contacts by it.
    """
    w, lane = wp.tid()
    count = meeting_out.count[w]
    if active[w] == 0 or count == 0:
        return
    first = w * touch.contacts
    start = w * touch.stride + touch.first
    rest(reach_out, turning_out, w, lane, lanes)
    sync()
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        for i in range(count):
            c = meeting_out.order[first + i]
            k = first + c
            lam = at(z, start + c) + at(f_out, start + c)
            q = meeting_out.gap[first + i] + carried(touch, meeting_out, reach_out, turning_out, w, i)
            change = settle(meeting_out, k, q, lam)
            sync()
            if wp.dot(change, change) > real(0.0):
                size = wp.max(size, meeting_out.own[k] * wp.length(change))
                if lane == 0:
                    f_out[start + c] = f_out[start + c] + packed(change)
                spread(
                    touch, meeting_out, compliance, reach_out, turning_out, scaling[w], w, count, i, change, lane, lanes
                )  # fmt: skip
            sync()
        if sweep == 0:
            largest = size
        if size <= _SETTLED * largest:
            break


@wp.func
def settle_adjoint(meeting: MeetingArrays, k: int, lacking: _vec):
    """By how much nu of a contact changes until it lacks nothing, if all others stay as they are."""
    K = wp.transpose(meeting.by_force[k]) + meeting.response[k] @ wp.transpose(meeting.by_displacement[k])
    return wp.inverse(wp.identity(n=3, dtype=real) - K) @ lacking


@wp.kernel(enable_backward=False)
def adj_sweep_kernel(
    touch: TouchArrays, lanes: int, scaling: wp.array[real], active: wp.array[int], z: wp.array[NODE],
    compliance: ComplianceArrays, reach_out: ReachArrays, turning_out: TurningArrays, meeting_out: MeetingArrays,
    f_out: wp.array[NODE],
):  # fmt: skip
    """Find nu = sum a_k a + L^T nu of all contacts, one after the other, and write how they change."""
    w, lane = wp.tid()
    count = meeting_out.count[w]
    if active[w] == 0 or count == 0:
        return
    first = w * touch.contacts
    start = w * touch.stride + touch.first
    rest(reach_out, turning_out, w, lane, lanes)
    sync()
    largest = real(0.0)
    for sweep in range(_SWEEPS):
        size = real(0.0)
        for i in range(count):
            c = meeting_out.order[first + i]
            k = first + c
            nu = at(z, start + c) + at(f_out, start + c)
            gap = meeting_out.gap[first + i] + carried(touch, meeting_out, reach_out, turning_out, w, i)
            change = settle_adjoint(meeting_out, k, gap + wp.transpose(meeting_out.by_force[k]) @ nu - nu)
            force = wp.transpose(meeting_out.by_displacement[k]) @ change
            size = wp.max(size, wp.length(change))
            sync()
            if lane == 0:
                f_out[start + c] = f_out[start + c] + packed(change)
            spread(
                touch, meeting_out, compliance, reach_out, turning_out, scaling[w], w, count, i, force, lane, lanes
            )  # fmt: skip
            sync()
        if sweep == 0:
            largest = size
        if size <= _NEARLY * largest:
            break
