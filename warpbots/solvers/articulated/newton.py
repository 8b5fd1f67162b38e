"""Newton's method: one kernel solves for the end of a stage, with one thread or one warp for each world.

Trial points at the full correction, a half, a quarter, ... of the correction are tested, and the first trial point with
a smaller residual is accepted. For this comparison, each entry of the residual is divided by the diagonal of the
Jacobian, so that newtons and newton metres are comparable. Below 1e-4 of the correction any trial point is accepted:
then the residual has a kink, and the next correction uses the Jacobian beyond the kink. A stage has converged if a full
correction is below the tolerance; this correction is still added, so that the remaining error is of the order of the
square of the correction.

The adjoint uses the Jacobian of the last iteration, which is one correction away from the solution. Where points of
matter press on bodies, their impulses are their masses times small differences of velocities, so that a correction
within the tolerance can change impulses, and with them this Jacobian, by many times the inertia of a body. There the
iteration goes on until a correction is below 1e-8 of the tolerance, or is not smaller than the one before because of
rounding errors, and this correction is not added.

Contacts stick within a range of sliding speeds whose width is inversely proportional to the viscosity, and the Jacobian
jumps at the edge of this range. The tolerance may be wider than the range. So in addition the last correction must be
too small to turn sticking into sliding, or sliding into sticking, or the friction of slow sliding by more than 1e-3
rad, and to move a joint across its limit, unless rounding errors leave no smaller residual.

Corrections can jump across a narrow range again and again, and so they do where points of matter are far heavier than
the body. An iteration that takes too long restarts with contacts a hundred, ten thousand, ... times less viscous and
points as many times lighter, until it converges. From this solution, continuation leads to the true viscosity and mass,
in steps that shrink if the iteration fails (Allgower & Georg 2003, "Introduction to Numerical Continuation Methods").
The result is a solution of the original equations.
"""

import warp as wp

from warpbots.solvers.articulated.cloud_contact import bound_group
from warpbots.solvers.articulated.exchange import is_pressed
from warpbots.solvers.articulated.implicit_integrators import (
    BDF1,
    SDIRK2,
    Past,
    finish,
    inverse_length,
    length_of,
    predict,
    recall,
)
from warpbots.solvers.articulated.joint_forces import limit_margin
from warpbots.solvers.articulated.lu import copy_entries, eliminate, factorise, solve
from warpbots.solvers.articulated.residual import evaluate, orient_frames
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.step_arrays import ImplicitStage, StepArrays
from warpbots.solvers.articulated.thread_team import sync

__all__ = ["Factors", "Options", "Report", "newton_kernel"]

# Functions of Warp take structs by value. A function that is not inlined copies 7 kB of addresses at each call, which
# took a sixth of the step of a chain and a quarter of the step of a hand.
wp.set_module_options(
    {
        "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=300000"
        " -mllvm=-inline-cold-callsite-threshold=300000 -mllvm=-slp-recursion-max-depth=4 -ffp-contract=fast"
    }
)

_ZERO, _ONE, _HALF = (wp.constant(scalar(c)) for c in (0.0, 1.0, 0.5))
_LEAST = wp.constant(scalar(1e-4))  # share of a correction below which any trial point is accepted
_SHARP = wp.constant(scalar(1e-8))  # share of the tolerance below which a stage with pressing matter has converged
_LITTLE = wp.constant(scalar(1e-3))  # least relative decrease of the residual, per share of the correction
_PATIENCE = wp.constant(40)  # iterations after which the viscosity is changed
_SOFTER, _SOFTEST = wp.constant(scalar(1e-2)), wp.constant(scalar(1e-7))  # factor of a restart, and the least
_LONGEST, _SHORTEST = wp.constant(scalar(10.0)), wp.constant(scalar(1.01))  # factors of the continuation


@wp.struct
class Options:
    """Options of Newton's method.

    tolerance: Size of the correction below which a stage has converged [m or rad].
    limit: Largest number of iterations in a stage.
    lanes: Number of threads for each world.
    """

    tolerance: scalar
    limit: int
    lanes: int


@wp.struct
class Factors:
    """LU factors of a matrix J of each world, such as the Jacobian at the end of a stage.

    matrix: L and U of P J = L U in one array, row by row, shape (worlds * freedom * freedom,).
    pivot: Index of the row with which each row was exchanged, shape (worlds * freedom,).
    """

    matrix: wp.array[scalar]
    pivot: wp.array[int]


@wp.struct
class Report:
    """Convergence of Newton's method in the last step of each world.

    found: 1 for a world in which the iteration converged, else 0, shape (worlds,).
    iterations: Number of iterations in the last stage, shape (worlds,).
    correction: Size of the last correction [m or rad], or -1 if the correction is not finite, shape (worlds,).
    """

    found: wp.array[int]
    iterations: wp.array[int]
    correction: wp.array[scalar]


@wp.func
def correct(work: StepArrays, factors: Factors, w: int, n: int, lane: int, lanes: int):
    """Write the correction of Newton's method for the current residual, and the LU factors of the Jacobian."""
    copy_entries(work.jacobian, factors.matrix, w * n * n, n * n, lane, lanes)
    for i in range(lane, n, lanes):
        work.scale[w * n + i] = _ONE / work.jacobian[(w * n + i) * n + i]
        work.step[w * n + i] = -work.residual[w * n + i]
    sync()
    if lanes == 1:
        factorise(factors.matrix, factors.pivot, w, n)
        solve(factors.matrix, factors.pivot, work.step, w, n)
    else:
        eliminate(factors.matrix, factors.pivot, work.step, w, n, lane, lanes)


@wp.func
def measure(work: StepArrays, w: int, n: int):
    """Largest absolute entry of the correction, or -1 if an entry is not finite."""
    size = scalar(0.0)
    total = scalar(0.0)  # not finite if an entry is not
    for i in range(n):
        d = wp.abs(work.step[w * n + i])
        size = wp.max(size, d)
        total += _ZERO * d
    return wp.where(total == _ZERO, size, -_ONE)


@wp.func
def weigh(work: StepArrays, w: int, n: int):
    """Norm of the residual, with each entry divided by the diagonal entry of the Jacobian.

    All threads of a world compute the same number.
    """
    m = scalar(0.0)
    for i in range(n):
        r = work.residual[w * n + i] * work.scale[w * n + i]
        m += r * r
    return wp.sqrt(m)


@wp.func
def sufficient(robot: RobotArrays, options: Options, stage: ImplicitStage, work: StepArrays, pressed: int, w: int):
    """Size of the correction below which a stage has converged, after an evaluation.

    All threads of a world compute the same number.
    """
    enough = wp.where(pressed == 1, _SHARP * options.tolerance, options.tolerance)
    enough = wp.min(enough, limit_margin(robot.tree, robot.design, stage, w))
    if robot.contacts.pairs > 0:
        for i in range(options.lanes):
            enough = wp.min(enough, work.pairs.margin[w * options.lanes + i] / stage.c[w])
    return enough


@wp.func
def displace(stage: ImplicitStage, work: StepArrays, share: scalar, w: int, n: int, lane: int, lanes: int):
    """Add a fraction `share` of the correction to the displacement of a stage."""
    for i in range(lane, n, lanes):
        stage.x[w * n + i] += share * work.step[w * n + i]
    sync()


@wp.func
def start(
    robot: RobotArrays,
    past: Past,
    first: ImplicitStage,
    stage: ImplicitStage,
    w: int,
    lane: int,
    lanes: int,
    number: int,
):
    """Write those terms of a stage that depend on the start of the step, and the initial guess of the displacement."""
    tree = robot.tree
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
def solve_stage(
    robot: RobotArrays,
    options: Options,
    control: wp.array2d[scalar],
    work: StepArrays,
    report: Report,
    stage: ImplicitStage,
    factors: Factors,
    w: int,
    lane: int,
):
    """Solve for the displacement of a stage; return 1 if the iteration converged, else 0."""
    n = robot.tree.freedom
    lanes = options.lanes
    found = int(0)
    iterations = int(0)
    tries = int(0)  # iterations since the hardness was changed
    hardness = scalar(1.0)
    ratio = _LONGEST * scalar(1.0)
    reached = scalar(0.0)  # hardness of the solution in `work.good`
    before = scalar(0.0)
    share = scalar(0.0)  # share of the last correction at the trial point; 0 without one
    pressed = is_pressed(robot, work, w)
    enough = scalar(0.0)
    small = scalar(0.0)  # size of the last correction if it was below the tolerance at the true hardness, else 0
    if lane == 0:
        work.pairs.hardness[w] = hardness
    for i in range(lane, n, lanes):
        work.good[w * n + i] = stage.x[w * n + i]
    sync()
    iterating = int(1)
    while iterating == 1:
        evaluate(robot, stage, work, control, w, lane, lanes)
        rest = scalar(0.0)
        if share > _LEAST:
            rest = weigh(work, w, n)
        sync()
        if share > _LEAST and not (rest <= (_ONE - _LITTLE * share) * before):
            share = _HALF * share
            displace(stage, work, -share, w, n, lane, lanes)
        else:
            iterations += 1
            tries += 1
            correct(work, factors, w, n, lane, lanes)
            before = weigh(work, w, n)
            size = measure(work, w, n)
            solved = int(0)
            if size >= _ZERO and size <= options.tolerance:
                solved = 1
            near = int(0)
            if solved == 1 and hardness == _ONE:
                near = 1
                enough = sufficient(robot, options, stage, work, pressed, w)
            ends = int(0)
            stalls = int(0)
            if small > _ZERO and size >= small and share <= _LEAST:
                stalls = 1
            if near == 1 and (size <= enough or stalls == 1 or iterations == options.limit):
                ends = 1
            if ends == 0 or pressed == 0:
                displace(stage, work, _ONE, w, n, lane, lanes)
            if lane == 0:
                report.correction[w] = size
                report.iterations[w] = iterations
            share = scalar(1.0)
            if ends == 1:
                found = 1
                iterating = 0
            elif iterations == options.limit:
                iterating = 0
            elif near == 1:
                if pressed == 1:
                    share = scalar(0.0)  # the residual may be as small as its rounding errors, and grow
            elif solved == 1 or size < _ZERO or tries == _PATIENCE:
                if solved == 1:
                    reached = hardness
                    for i in range(lane, n, lanes):
                        work.good[w * n + i] = stage.x[w * n + i]
                    hardness = wp.min(_ONE, ratio * hardness)
                else:
                    for i in range(lane, n, lanes):
                        stage.x[w * n + i] = work.good[w * n + i]
                    if reached > _ZERO:
                        ratio = wp.sqrt(ratio)
                        hardness = wp.min(_ONE, ratio * reached)
                    else:
                        hardness = hardness * _SOFTER
                if hardness < _SOFTEST or ratio < _SHORTEST:
                    iterating = 0
                if lane == 0:
                    work.pairs.hardness[w] = hardness
                sync()
                tries = 0
                share = scalar(0.0)
            small = wp.where(near == 1, size, _ZERO)
    if lane == 0:
        work.pairs.hardness[w] = _ONE
    sync()
    return found


@wp.kernel(enable_backward=False)
def newton_kernel(
    # model
    robot: RobotArrays,
    # step
    past: Past,
    options: Options,
    number: int,
    first: ImplicitStage,
    # state
    control: wp.array2d[scalar],
    # out
    work_out: StepArrays,
    report_out: Report,
    stage_out: ImplicitStage,
    factors_out: Factors,
    end_out: Past,
):
    """Solve a stage of each world; after the last stage, write the state at the end of the step.

    `number` is 0 for the first of two stages, and 1 for the second stage or a single stage. In a world in which a stage
    does not converge, the state at the end is NaN.
    """
    w, lane = wp.tid()
    tree = robot.tree
    lanes = options.lanes
    if length_of(past, w) == scalar(0.0):
        return
    found = int(1)
    if number == 1 and past.method == SDIRK2:
        found = report_out.found[w]
    if found == 1:
        for g in range(lane, robot.contacts.groups, lanes):
            bound_group(robot.contacts, work_out.pairs, w, g)
        if number == 0 or past.method == BDF1:
            orient_frames(robot, work_out, w, lane, lanes)
        start(robot, past, first, stage_out, w, lane, lanes, number)
        found = solve_stage(robot, options, control, work_out, report_out, stage_out, factors_out, w, lane)
    if lane == 0:
        report_out.found[w] = found
    if number == 0:
        return
    for e in range(lane, tree.elements, lanes):
        finish(tree, past, stage_out, end_out, w, e)
    sync()
    if found == 0:
        for i in range(lane, tree.coordinates, lanes):
            end_out.q[w * tree.coordinates + i] = scalar(wp.nan)
        for i in range(lane, tree.freedom, lanes):
            end_out.qd[w * tree.freedom + i] = scalar(wp.nan)
