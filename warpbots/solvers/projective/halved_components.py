"""Which components of a world take shorter steps in the place of one, while others keep the end that they have found.

Components whose step was not found take shorter ones, and with them all that they might touch: those into whose box
they reach. The box of a component has in it where it begins, where it would fly and where its step has ended, and a few
edges around. Where one leaves its box after all, all of the world begins again in shorter steps.
"""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.step_clock import HALVED, LOST, StepClock

__all__ = ["REACH", "Boxes", "box_kernel", "choose_members_kernel", "join_kernel", "spread_kernel", "stray_kernel"]

_vec = vector(3)
REACH = 4.0
"""How far boxes reach beyond what is in them [mean edges]."""


@wp.struct
class Boxes:
    """Boxes of components, shape (worlds * components,).

    lower: Lower corners [m].
    upper: Upper corners [m].
    """

    lower: wp.array[_vec]
    upper: wp.array[_vec]


@wp.kernel(enable_backward=False)
def choose_members_kernel(
    # work
    islands: Islands,
    # out
    clock_out: StepClock,
):
    """Components whose step was not found; all of a world that is lost."""
    w, c = wp.tid()
    u = w * islands.count + c
    outcome = clock_out.outcome[w]
    member = int(0)
    if outcome == LOST or (outcome == HALVED and islands.sound[u] == 0):
        member = 1
    clock_out.members[u] = member


@wp.kernel(enable_backward=False)
def box_kernel(
    # model
    islands: Islands,
    points: int,
    reach: real,
    # state
    h: real,
    x: wp.array[_vec],
    v: wp.array[_vec],
    ended: wp.array[_vec],
    # out
    boxes_out: Boxes,
):
    """Boxes of components; `x`, `v` and `ended` are those of nodes, the first points."""
    w, c = wp.tid()
    low = _vec(real(1e30), real(1e30), real(1e30))
    high = -low
    for r in range(islands.first[c], islands.first[c + 1]):
        run = islands.run[r]
        for i in range(run[0], wp.min(run[1], points)):
            k = w * points + i
            low = wp.min(low, wp.min(x[k], wp.min(x[k] + h * v[k], ended[k])))
            high = wp.max(high, wp.max(x[k], wp.max(x[k] + h * v[k], ended[k])))
    around = _vec(reach, reach, reach)
    boxes_out.lower[w * islands.count + c] = low - around
    boxes_out.upper[w * islands.count + c] = high + around


@wp.func
def overlap(boxes: Boxes, a: int, b: int):
    """Whether two boxes have a place in common."""
    apart = bool(False)
    for k in range(3):
        if boxes.lower[a][k] > boxes.upper[b][k] or boxes.lower[b][k] > boxes.upper[a][k]:
            apart = True
    return not apart


@wp.kernel(enable_backward=False)
def join_kernel(
    # model
    islands: Islands,
    # work
    boxes: Boxes,
    # out
    clock_out: StepClock,
):
    """Add those whose box overlaps with that of a member, until there are none."""
    w = wp.tid()
    first = w * islands.count
    if clock_out.outcome[w] == HALVED:
        for _ in range(islands.count):
            joined = int(0)
            for a in range(islands.count):
                for b in range(islands.count):
                    if (
                        clock_out.members[first + a] == 1
                        and clock_out.members[first + b] == 0
                        and overlap(boxes, first + a, first + b)
                    ):
                        clock_out.members[first + b] = 1
                        joined = 1
            if joined == 0:
                break


@wp.kernel(enable_backward=False)
def stray_kernel(
    # model
    islands: Islands,
    points: int,
    # state
    x: wp.array[_vec],
    # work
    boxes: Boxes,
    clock: StepClock,
    # out
    strayed_out: wp.array[int],
):
    """Whether a node of a member has left the box of its component in a world in which others rest."""
    w, i = wp.tid()
    if clock.where[w] == 0:
        return
    u = w * islands.count + islands.component[i]
    y = x[w * points + i]
    if clock.members[u] == 1:
        for k in range(3):
            if y[k] < boxes.lower[u][k] or y[k] > boxes.upper[u][k]:
                strayed_out[w] = 1


@wp.kernel(enable_backward=False)
def spread_kernel(
    # model
    islands: Islands,
    nodes: int,
    bone: int,
    # work
    clock: StepClock,
    # out
    of_nodes_out: wp.array[int],
    of_others_out: wp.array[int],
    of_worlds_out: wp.array[int],
    of_joints_out: wp.array[int],
):
    """1 for nodes of members, and for others; for worlds with a member; for joints where the point `bone` is of one."""
    w, i = wp.tid()
    first = w * islands.count
    member = clock.members[first + islands.component[i]]
    of_nodes_out[w * nodes + i] = member
    of_others_out[w * nodes + i] = 1 - member
    if i == 0:
        some = int(0)
        for c in range(islands.count):
            some = wp.max(some, clock.members[first + c])
        of_worlds_out[w] = some
        of_joints_out[w] = clock.members[first + islands.component[bone]]
