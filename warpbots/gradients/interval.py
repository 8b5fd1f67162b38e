"""The two kinds of replay: for the substeps of a control interval, and for readings of a single state."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import warp as wp

from warpbots.gradients.lost_worlds import FIELD
from warpbots.gradients.replay import Replay, Share
from warpbots.gradients.settled_worlds import SettledWorlds
from warpbots.numerics import clear_gradients, repeat
from warpbots.solvers import Model, Solver, State

__all__ = ["interval", "reading", "watched_fields"]

_LOST = 0.5
"""Largest entry of the field of lost worlds, 1 for lost worlds and 0 for others, that is not marked as a fault."""


def interval(
    solver: Solver,
    model: Model,
    dt: float,
    substeps: int,
    replaced: frozenset,
    wanted: frozenset,
    settled: bool = True,
    share: Share | None = None,
) -> Replay:
    """Make a replay of the substeps of one control interval.

    A world whose state is not finite at the end of the interval is lost. If the states of the solver have a field for
    lost worlds and `settled` is true, the state of a lost world at the end is replaced by its state at the start.

    Args:
        solver: The solver.
        model: The model.
        dt: Length of a substep [s].
        substeps: Number of substeps.
        replaced: Names of the model parameters that are replaced in each call.
        wanted: Names of the inputs with respect to which gradients are wanted; empty if only forward passes are wanted.
        settled: Whether the states of lost worlds are replaced by their states at the start of the interval.
        share: The worlds of the model, if it has only some of the worlds of a simulation.

    Returns:
        The replay. The first row of its marks belongs to the control; the other rows belong to the `watched_fields` of
        the state at the end of the interval.
    """
    gradient = bool(wanted)
    model, own = _with_own(model, replaced, wanted)
    # Without a gradient, the start and two alternating states suffice; with one, two alternating gradients do.
    states: list[State] = []
    for i in range(substeps + 1):
        if i > 2 and not gradient:
            states.append(states[i - 2])
            continue
        states.append(solver.state(model, requires_grad=gradient))
        if gradient and i >= 2:
            for array, earlier in zip(_named(states[i]).values(), _named(states[i - 2]).values(), strict=True):
                array.grad = earlier.grad
    control, start, end = _control(model, wanted), _named(states[0]), _named(states[-1])
    worlds = SettledWorlds(start, end, FIELD, [control, *own.values()]) if settled and FIELD in end else None

    steps, left = list(itertools.pairwise(states)), wp.zeros(1, dtype=int, device=model.device)

    def take(some: list[tuple[State, State]], tape: wp.Tape | None = None) -> None:
        for before, after in some:
            solver.step(model, before, control, after, dt)
            if tape:  # runs before the adjoint of the step, which adds to a buffer that the step after next used
                tape.record_func(lambda state=before: clear_gradients(_named(state).values()), [])

    def work(tape: wp.Tape | None) -> None:
        if tape and worlds:
            tape.record_func(worlds.pass_gradients, [])
        pairs, rest = (0, substeps - 1) if gradient else divmod(substeps - 1, 2)
        take(steps[:1], tape)
        repeat(lambda: take(steps[1:3]), pairs, left)
        take(steps[1 : 1 + rest], tape)
        if worlds:
            worlds.settle()
            if tape:
                tape.record_func(worlds.hold_gradients, [])

    fields = [(end[name], _LOST if name == FIELD else math.inf) for name in watched_fields(end, settled)]
    return Replay(
        model.device, start | {"control": control} | own, end, wanted, work, frozenset(start),
        [(control, 1.0), *fields], share,
    )  # fmt: skip


def watched_fields(names: Iterable[str], settled: bool = True) -> list[str]:
    """Names of the fields of a state in which an `interval` marks faults.

    Args:
        names: Names of all fields of the state.
        settled: Whether the states of lost worlds are replaced by their states at the start of the interval.

    Returns:
        Only the field of lost worlds, if there is one and `settled` is true; otherwise all fields.
    """
    names = list(names)
    return [FIELD] if settled and FIELD in names else names


def reading(
    solver: Solver,
    model: Model,
    make: Callable[..., Any],
    measure: Callable[..., None],
    replaced: frozenset,
    wanted: frozenset,
    share: Share | None = None,
) -> Replay:
    """Make a replay of a function of the solver that computes results, such as readings, from a single state.

    The replay marks controls outside [-1, 1].

    Args:
        solver: The solver.
        model: The model.
        make: Function that allocates the arrays of the results, such as `Senses.readings`.
        measure: Function that writes the results to these arrays, such as `Senses.sense`.
        replaced: Names of the model parameters that are replaced in each call.
        wanted: Names of the inputs with respect to which gradients are wanted.
        share: The worlds of the model, if it has only some of the worlds of a simulation.
    """
    model, own = _with_own(model, replaced, wanted)
    state, control = solver.state(model, requires_grad=bool(wanted)), _control(model, wanted)
    results = make(model, requires_grad=bool(wanted))
    inputs = _named(state) | {"control": control} | own

    def work(tape: wp.Tape | None) -> None:
        measure(model, state, control, results)

    return Replay(model.device, inputs, _named(results), wanted, work, watched=[(control, 1.0)], share=share)


def _with_own(model: Model, replaced: frozenset, wanted: frozenset) -> tuple[Model, dict[str, wp.array]]:
    own = {name: wp.clone(model.parameter(name), requires_grad=name in wanted) for name in replaced}
    return model.with_parameters(own), own


def _control(model: Model, wanted: frozenset) -> wp.array:
    shape, gradient = (model.worlds, model.channels), "control" in wanted
    return wp.zeros(shape, dtype=model.scalar, device=model.device, requires_grad=gradient)


def _named(state: State) -> dict[str, wp.array]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
