"""Newton's method: one kernel finds where a stage ends, one world for each thread or warp.

The trial point at the full correction, or the half, the quarter, ... is accepted when the correction that the old
factors give there is smaller than the one that led to it: the monotonicity test of Deuflhard (2011, "Newton Methods for
Nonlinear Problems", section 3.3), which compares displacements and needs no weights between newtons and newton metres.
Where none is down to a fiftieth, contact begins or ends on the way and the correction has no slope to follow: it is
taken in full, to the other side.
A stage has converged when a full correction is below the tolerance; it is added, so that what remains is of the order
of its square.
"""

import warp as wp

from warpbots.solvers.articulated.linear import factorise, solve, sync
from warpbots.solvers.articulated.machine import Machine, Work
from warpbots.solvers.articulated.scheme import Past, finish, inverse_length, predict, recall, stages
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.tangent import evaluate
from warpbots.solvers.articulated.touch import bound_group
from warpbots.solvers.articulated.tree import Stage

__all__ = ["Factors", "Options", "Report", "newton_kernel"]

_ZERO, _ONE, _TWO, _HALF = (wp.constant(scalar(c)) for c in (0.0, 1.0, 2.0, 0.5))
_QUARTER = wp.constant(scalar(0.25))
_LEAST = wp.constant(scalar(0.02))


@wp.struct
class Options:
    """How to search.

    tolerance: Size of a correction [m or rad] at which a stage has converged.
    limit: Number of corrections after which it has not.
    lanes: Number of threads for each world.
    """

    tolerance: scalar
    limit: int
    lanes: int


@wp.struct
class Factors:
    """Factors of the Jacobian at the end of a stage: what the adjoint needs.

    matrix: L and U of P J = L U, shape (worlds * freedom * freedom,).
    pivot: Rows that were exchanged, shape (worlds * freedom,).
    """

    matrix: wp.array[scalar]
    pivot: wp.array[int]


@wp.struct
class Report:
    """What Newton's method did in the last step of each world.

    found: Whether it converged, shape (worlds,).
    iterations: Number of corrections, shape (worlds,).
    correction: Size of the last one [m or rad], -1 where there is none, shape (worlds,).
    """

    found: wp.array[int]
    iterations: wp.array[int]
    correction: wp.array[scalar]


@wp.func
def correct(work: Work, factor: wp.array[scalar], pivot: wp.array[int], into: wp.array[scalar], w: int, n: int):
    """Write the correction of Newton's method at the current residual; its size, or -1 if it is not finite."""
    for i in range(n):
        into[w * n + i] = -work.residual[w * n + i]
    solve(factor, pivot, into, w, n)
    size = scalar(0.0)
    for i in range(n):
        d = wp.abs(into[w * n + i])
        if not wp.isfinite(d):
            size = -_ONE
        elif size >= _ZERO:
            size = wp.max(size, d)
    return size


@wp.func
def displace(stage: Stage, work: Work, share: scalar, w: int, n: int):
    """Displace the end of a stage by a share of the correction."""
    for i in range(n):
        stage.x[w * n + i] += share * work.step[w * n + i]


@wp.func
def start(machine: Machine, past: Past, first: Stage, stage: Stage, w: int, lane: int, lanes: int, number: int):
    """Write the history of a stage and where the search for its end begins."""
    tree = machine.tree
    if lane == 0:
        stage.c[w] = inverse_length(past, w)
    sync()
    for e in range(lane, tree.elements, lanes):
        recall(tree, past, first, stage, w, e, number)
    sync()
    for j in range(lane, tree.freedom, lanes):
        predict(tree, past, first, stage, w, j, number)
    sync()


@wp.func
def search(
    machine: Machine,
    options: Options,
    control: wp.array2d[scalar],
    work: Work,
    report: Report,
    stage: Stage,
    factors: Factors,
    w: int,
    lane: int,
):
    """Find the end of a stage; whether it was found."""
    n = machine.tree.freedom
    lanes = options.lanes
    found = int(0)
    iterations = int(0)
    size = scalar(0.0)
    share = scalar(0.0)  # of the last correction that the trial point is away; 0 where there is nothing to judge
    searching = int(1)
    while searching == 1:
        evaluate(machine, stage, work, control, w, lane, lanes)
        good = int(1)
        if share > _ZERO:
            if lane == 0:
                work.size[w] = correct(work, factors.matrix, factors.pivot, work.trial, w, n)
            sync()
            left = work.size[w]
            if left < _ZERO or left > (_ONE - _QUARTER * share) * size:
                good = 0
        if good == 0:
            away = -_HALF * share
            share = _HALF * share
            if share < _LEAST:
                away = _ONE - _TWO * share
                share = scalar(0.0)
            if lane == 0:
                displace(stage, work, away, w, n)
            sync()
        else:
            iterations += 1
            for i in range(lane, n * n, lanes):
                factors.matrix[w * n * n + i] = work.jacobian[w * n * n + i]
            sync()
            factorise(factors.matrix, factors.pivot, w, n, lane, lanes)
            if lane == 0:
                report.correction[w] = correct(work, factors.matrix, factors.pivot, work.step, w, n)
                report.iterations[w] = iterations
                displace(stage, work, _ONE, w, n)
            sync()
            size = report.correction[w]
            share = scalar(1.0)
            if size < _ZERO or iterations == options.limit:
                searching = 0
            if size >= _ZERO and size <= options.tolerance:
                searching = 0
                found = 1
    return found


@wp.kernel(enable_backward=False)
def newton_kernel(
    machine: Machine,
    past: Past,
    options: Options,
    control: wp.array2d[scalar],
    number: int,
    first: Stage,
    work_out: Work,
    report_out: Report,
    stage_out: Stage,
    factors_out: Factors,
    end_out: Past,
):
    """A stage of every world, number 0 for the first of two and 1 otherwise; the latter writes the end of the step.

    What does not converge is not a number.
    """
    w, lane = wp.tid()
    tree = machine.tree
    lanes = options.lanes
    count = stages(past, w)
    if number == 0 and count == 1:
        return
    found = int(1)
    if number == 1 and count == 2:
        found = report_out.found[w]
    if found == 1:
        for g in range(lane, machine.contacts.groups, lanes):
            bound_group(machine.contacts, work_out.pairs, w, g)
        start(machine, past, first, stage_out, w, lane, lanes, number)
        found = search(machine, options, control, work_out, report_out, stage_out, factors_out, w, lane)
    if lane == 0:
        report_out.found[w] = found
    if number == 0:
        return
    for e in range(lane, tree.elements, lanes):
        finish(tree, past, stage_out, end_out, w, e)
    sync()
    if found == 0:
        for i in range(lane, tree.coordinates, lanes):
            end_out.position[w * tree.coordinates + i] = scalar(wp.nan)
        for i in range(lane, tree.freedom, lanes):
            end_out.velocity[w * tree.freedom + i] = scalar(wp.nan)
    if lane == 0:
        end_out.previous_dt[w] = past.h
