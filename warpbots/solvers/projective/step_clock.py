"""Progress of worlds that take shorter steps: the time that each world has reached, and its next step."""

import warp as wp

from warpbots.numerics import real
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = [
    "FOUND",
    "HALVED",
    "LOST",
    "StepClock",
    "advance_kernel",
    "at_level_kernel",
    "back_at_level_kernel",
    "begin_kernel",
    "choose_kernel",
    "end_kernel",
    "end_of_motion_kernel",
    "judge_kernel",
    "move_all_kernel",
    "begin_shorter_kernel",
    "step_back_kernel",
    "step_clock",
    "turn_kernel",
]

FOUND, HALVED, LOST = (wp.constant(k) for k in range(3))
"""Outcomes of a step: it succeeded; shorter steps replaced it; these failed, or the world was lost before."""


@wp.struct
class StepClock:
    """Progress of all worlds; steps of level k have 2^-k of the length of the full step.

    outcome: `FOUND`, `HALVED` or `LOST`, shape (worlds,).
    unusual: Number of worlds whose outcome is `HALVED` or `LOST`, shape (1,).
    where: 1 for a world that takes the present step, shape (worlds,).
    here: Number of worlds that take the present step, shape (1,).
    going: 1 while a world has not reached the end of the full step, shape (worlds,).
    any: Number of worlds that have not reached the end of the full step, shape (1,).
    level: Level of the next step of a world, or of the last step that it tried, shape (worlds,).
    ticks: Time that a world has reached, in units of the shortest step, shape (worlds,).
    took: 1 for a world whose last step was accepted, shape (worlds,).
    taken: Level of the last accepted step, shape (worlds,).
    steps: Number of accepted steps so far, shape (worlds,).
    before: Number of steps accepted before the last step, shape (worlds,).
    iterations: Number of iterations so far, shape (worlds,).
    members: 1 for a component that takes shorter steps, shape (worlds * components,).
    again: 1 for a world that has just restarted with all of its components, shape (worlds,).
    """

    outcome: wp.array[int]
    unusual: wp.array[int]
    where: wp.array[int]
    here: wp.array[int]
    going: wp.array[int]
    any: wp.array[int]
    level: wp.array[int]
    ticks: wp.array[int]
    took: wp.array[int]
    taken: wp.array[int]
    steps: wp.array[int]
    before: wp.array[int]
    iterations: wp.array[int]
    members: wp.array[int]
    again: wp.array[int]


def step_clock(worlds: int, components: int, device: wp.Device) -> StepClock:
    """Arrays for `worlds` worlds with `components` components each."""
    clock = StepClock()
    for name in StepClock.vars:
        size = {"unusual": 1, "here": 1, "any": 1, "members": worlds * components}.get(name, worlds)
        setattr(clock, name, wp.zeros(size, dtype=int, device=device))
    return clock


@wp.kernel(enable_backward=False)
def begin_kernel(
    # state
    lost: wp.array[real],
    # out
    islands_out: Islands,
    clock_out: StepClock,
):
    """Let all worlds that are not lost try the full step."""
    w = wp.tid()
    clock_out.where[w] = wp.where(lost[w] == real(0.0), 1, 0)
    clock_out.level[w] = 0
    islands_out.strayed[w] = 0
    for c in range(islands_out.count):
        islands_out.moves[w * islands_out.count + c] = 1


@wp.kernel(enable_backward=False)
def end_of_motion_kernel(
    # model
    end: wp.float64,
    # state
    h: wp.float64,
    time: wp.array[wp.float64],
    # out
    clock_out: StepClock,
):
    """Skip the step in worlds in which it would end after the end of a prescribed motion: these worlds are lost."""
    w = wp.tid()
    if time[w] + h > end:
        clock_out.where[w] = 0


@wp.kernel(enable_backward=False)
def judge_kernel(
    # model
    halvings: int,
    # work
    progress: IterationState,
    missing: wp.array[int],
    outgrown: wp.array[int],
    # out
    clock_out: StepClock,
):
    """Write the outcome of the full step; a step without room for its contacts is not halved."""
    w = wp.tid()
    outcome = HALVED
    if progress.found[w] == 1:
        outcome = FOUND
    elif clock_out.where[w] == 0 or halvings == 0 or missing[0] + outgrown[0] > 0:
        outcome = LOST
    if outcome != FOUND:
        wp.atomic_add(clock_out.unusual, 0, 1)
    clock_out.outcome[w] = outcome
    clock_out.iterations[w] = progress.passes[w]
    clock_out.steps[w] = clock_out.where[w]


@wp.kernel(enable_backward=False)
def choose_kernel(
    # state
    first: int,
    last: int,
    # out
    clock_out: StepClock,
):
    """Choose the worlds whose outcome is between `first` and `last`."""
    w = wp.tid()
    outcome = clock_out.outcome[w]
    clock_out.where[w] = wp.where(outcome >= first and outcome <= last, 1, 0)


@wp.kernel(enable_backward=False)
def begin_shorter_kernel(
    # out
    islands_out: Islands,
    clock_out: StepClock,
):
    """Let worlds whose step failed start with steps of half the length, in which only members take part."""
    w = wp.tid()
    islands_out.strayed[w] = 0
    for c in range(islands_out.count):
        u = w * islands_out.count + c
        islands_out.moves[u] = clock_out.members[u]
    clock_out.going[w] = 0
    clock_out.took[w] = 0
    if clock_out.outcome[w] == HALVED:
        clock_out.going[w] = 1
        clock_out.level[w] = 1
        clock_out.ticks[w] = 0
        clock_out.steps[w] = 0
        wp.atomic_add(clock_out.any, 0, 1)


@wp.kernel(enable_backward=False)
def at_level_kernel(
    # state
    level: int,
    # out
    clock_out: StepClock,
):
    """Choose the worlds whose next step is of this level."""
    w = wp.tid()
    chosen = wp.where(clock_out.going[w] == 1 and clock_out.level[w] == level, 1, 0)
    clock_out.where[w] = chosen
    clock_out.took[w] = 0
    wp.atomic_add(clock_out.here, 0, chosen)


@wp.func
def some_rest(islands: Islands, w: int):
    """Whether some components of a world rest while other components take shorter steps."""
    rest = bool(False)
    for c in range(islands.count):
        if islands.moves[w * islands.count + c] == 0:
            rest = True
    return rest


@wp.func
def begin_again(islands: Islands, clock: StepClock, w: int):
    """Restart a world with all of its components."""
    islands.strayed[w] = 0
    for c in range(islands.count):
        islands.moves[w * islands.count + c] = 1
        clock.members[w * islands.count + c] = 1
    clock.again[w] = 1
    clock.level[w] = 1
    clock.ticks[w] = 0
    clock.steps[w] = 0


@wp.kernel(enable_backward=False)
def advance_kernel(
    # model
    level: int,
    halvings: int,
    # work
    progress: IterationState,
    missing: wp.array[int],
    outgrown: wp.array[int],
    # out
    islands_out: Islands,
    clock_out: StepClock,
):
    """Advance after a step of this level: to the next step of the halving, or to half the length if it failed."""
    w = wp.tid()
    clock_out.again[w] = 0
    if clock_out.where[w] == 0:
        return
    clock_out.iterations[w] = clock_out.iterations[w] + progress.passes[w]
    strayed = islands_out.strayed[w]
    if progress.found[w] == 1 and strayed == 0:
        ticks = clock_out.ticks[w] + (1 << (halvings - level))
        next = int(halvings)
        size = int(1)
        while next > 1 and ticks % (2 * size) == 0:
            size = 2 * size
            next = next - 1
        clock_out.took[w] = 1
        clock_out.taken[w] = level
        clock_out.before[w] = clock_out.steps[w]
        clock_out.steps[w] = clock_out.steps[w] + 1
        clock_out.ticks[w] = ticks
        if ticks == (1 << halvings):
            clock_out.going[w] = 0
        else:
            clock_out.level[w] = next
    elif (level == halvings or strayed == 1) and missing[0] + outgrown[0] == 0 and some_rest(islands_out, w):
        begin_again(islands_out, clock_out, w)
    elif level == halvings or missing[0] + outgrown[0] > 0:
        clock_out.going[w] = 0
        clock_out.outcome[w] = LOST
        for c in range(islands_out.count):
            clock_out.members[w * islands_out.count + c] = 1
    else:
        clock_out.level[w] = level + 1
    if clock_out.going[w] == 0:
        wp.atomic_sub(clock_out.any, 0, 1)


@wp.kernel(enable_backward=False)
def end_kernel(
    # work
    clock: StepClock,
    # state
    lost: wp.array[real],
    shorter_steps: wp.array[real],
    # out
    lost_out: wp.array[real],
    shorter_steps_out: wp.array[real],
):
    """Write the outcome of the step to the state."""
    w = wp.tid()
    taken = int(0)
    if clock.outcome[w] == HALVED:
        taken = clock.steps[w]
    lost_out[w] = wp.where(clock.outcome[w] == LOST, real(1.0), lost[w])
    shorter_steps_out[w] = shorter_steps[w] + real(taken)


@wp.kernel(enable_backward=False)
def turn_kernel(
    # out
    clock_out: StepClock,
):
    """Let worlds that have reached the end start to go back, for the adjoint."""
    w = wp.tid()
    if clock_out.outcome[w] == HALVED:
        clock_out.before[w] = clock_out.steps[w] - 1
        wp.atomic_add(clock_out.any, 0, 1)
    else:
        clock_out.steps[w] = 0


@wp.kernel(enable_backward=False)
def back_at_level_kernel(
    # state
    level: int,
    taken: wp.array2d[int],
    # out
    clock_out: StepClock,
):
    """Choose the worlds whose next step on the way back is of this level."""
    w = wp.tid()
    chosen = int(0)
    if clock_out.steps[w] > 0 and taken[clock_out.before[w], w] == level:
        chosen = 1
    clock_out.where[w] = chosen
    wp.atomic_add(clock_out.here, 0, chosen)


@wp.kernel(enable_backward=False)
def step_back_kernel(
    # out
    clock_out: StepClock,
):
    """Note that the chosen worlds have gone back by one step."""
    w = wp.tid()
    if clock_out.where[w] == 1:
        clock_out.steps[w] = clock_out.steps[w] - 1
        clock_out.before[w] = clock_out.steps[w] - 1
        if clock_out.steps[w] == 0:
            wp.atomic_sub(clock_out.any, 0, 1)


@wp.kernel(enable_backward=False)
def move_all_kernel(
    # out
    islands_out: Islands,
):
    """Let all components take part, as in an adjoint."""
    islands_out.moves[wp.tid()] = 1
