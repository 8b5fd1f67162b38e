"""Newton's method: one kernel finds where a step ends, one world for each thread or warp.

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

_ZERO, _ONE, _HALF = (wp.constant(scalar(c)) for c in (0.0, 1.0, 0.5))
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

    iterations: Number of corrections, shape (worlds,).
    correction: Size of the last one [m or rad], shape (worlds,).
    """

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
def search(
    machine: Machine,
    past: Past,
    options: Options,
    control: wp.array2d[scalar],
    work: Work,
    report: Report,
    first: Stage,
    stage: Stage,
    factors: Factors,
    w: int,
    lane: int,
    number: int,
):
    """Find the end of a stage, number 0 for the first of two and 1 otherwise; whether it was found."""
    tree = machine.tree
    n = tree.freedom
    lanes = options.lanes
    if lane == 0:
        stage.c[w] = inverse_length(past, w)
    sync()
    for e in range(lane, tree.elements, lanes):
        recall(tree, past, first, stage, w, e, number)
    sync()
    for j in range(lane, n, lanes):
        predict(tree, past, first, stage, w, j, number)
    sync()
    evaluate(machine, stage, work, control, w, lane, lanes)
    found = int(0)
    iterations = int(0)
    searching = int(1)
    while searching == 1:
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
        if size < _ZERO or iterations == options.limit:
            searching = 0
        if size >= _ZERO and size <= options.tolerance:
            searching = 0
            found = 1
        share = scalar(1.0)
        trying = int(searching)
        while trying == 1:
            evaluate(machine, stage, work, control, w, lane, lanes)
            if lane == 0:
                work.size[w] = correct(work, factors.matrix, factors.pivot, work.trial, w, n)
            sync()
            left = work.size[w]
            if left >= _ZERO and left <= (_ONE - _QUARTER * share) * size:
                trying = 0
            elif share < _LEAST:
                trying = 0
                if lane == 0:
                    displace(stage, work, _ONE - share, w, n)
                sync()
                evaluate(machine, stage, work, control, w, lane, lanes)
            else:
                share = _HALF * share
                if lane == 0:
                    displace(stage, work, -share, w, n)
                sync()
    return found


@wp.kernel(enable_backward=False)
def newton_kernel(
    machine: Machine,
    past: Past,
    options: Options,
    control: wp.array2d[scalar],
    work_out: Work,
    report_out: Report,
    first_out: Stage,
    second_out: Stage,
    first_factors_out: Factors,
    second_factors_out: Factors,
    end_out: Past,
):
    """One step of every world; what does not converge is not a number."""
    w, lane = wp.tid()
    tree = machine.tree
    lanes = options.lanes
    for g in range(lane, machine.contacts.groups, lanes):
        bound_group(machine.contacts, work_out.pairs, w, g)
    found = int(1)
    if stages(past, w) == 2:
        found = search(
            machine, past, options, control, work_out, report_out, first_out, first_out, first_factors_out, w, lane, 0
        )
    if found == 1:
        found = search(
            machine, past, options, control, work_out, report_out, first_out, second_out, second_factors_out, w, lane, 1
        )
    for e in range(lane, tree.elements, lanes):
        finish(tree, past, second_out, end_out, w, e)
    sync()
    if found == 0:
        for i in range(lane, tree.coordinates, lanes):
            end_out.position[w * tree.coordinates + i] = scalar(wp.nan)
        for i in range(lane, tree.freedom, lanes):
            end_out.velocity[w * tree.freedom + i] = scalar(wp.nan)
    if lane == 0:
        end_out.previous_dt[w] = past.h
