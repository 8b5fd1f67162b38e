"""Which components of a world take shorter steps, while the others keep the end of the full step.

Components whose step failed take shorter steps, together with all components that they might touch. These have a box
that overlaps with the box of a component whose step failed, or of one that joins it in this way. The box of a component
contains its positions at the start of the step, after free flight and at the end of the step, with a margin of a few
edges. If a component leaves its box nevertheless, the whole world starts again in shorter steps.
"""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.step_clock import HALVED, LOST, StepClock

__all__ = [
    "Boxes",
    "box_kernel",
    "choose_members_kernel",
    "join_kernel",
    "members_kernel",
    "others_kernel",
    "stray_kernel",
]

_vec = vector(3)
_REACH = wp.constant(wp.float64(4.0))
"""Margin of a box around its contents [mean edges of the component]."""


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
    """Mark the components whose step failed, and all components of a lost world."""
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
    # state
    h: real,
    x: wp.array[_vec],
    v: wp.array[_vec],
    ended: wp.array[_vec],
    # out
    boxes_out: Boxes,
):
    """Write the boxes of components; `x`, `v` and `ended` are given for nodes only, which are the first points."""
    w, c = wp.tid()
    low = _vec(real(1e30), real(1e30), real(1e30))
    high = -low
    for r in range(islands.first[c], islands.first[c + 1]):
        run = islands.run[r]
        for i in range(run[0], wp.min(run[1], points)):
            k = w * points + i
            low = wp.min(low, wp.min(x[k], wp.min(x[k] + h * v[k], ended[k])))
            high = wp.max(high, wp.max(x[k], wp.max(x[k] + h * v[k], ended[k])))
    reach = real(_REACH * islands.own_length[c])
    around = _vec(reach, reach, reach)
    boxes_out.lower[w * islands.count + c] = low - around
    boxes_out.upper[w * islands.count + c] = high + around


@wp.func
def overlap(boxes: Boxes, a: int, b: int):
    """Whether two boxes overlap."""
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
    """Make each component whose box overlaps with the box of a member a member, too, until no more are found."""
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
    """Note whether a node of a member has left the box of its component in a world in which other components rest."""
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
def members_kernel(
    # model
    islands: Islands,
    component: wp.array[int],
    # work
    clock: StepClock,
    # out
    members_out: wp.array[int],
):
    """Write 1 for entries of components that are members, else 0."""
    w, i = wp.tid()
    members_out[w * component.shape[0] + i] = clock.members[w * islands.count + component[i]]


@wp.kernel(enable_backward=False)
def others_kernel(members: wp.array[int], others_out: wp.array[int]):
    """Write 1 for all entries that are not of members, else 0."""
    i = wp.tid()
    others_out[i] = 1 - members[i]
