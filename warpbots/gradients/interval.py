"""The two kinds of replay: the substeps of a control interval, and what is computed of a single state."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import warp as wp

from warpbots.gradients.lost_worlds import FIELD
from warpbots.gradients.replay import Replay
from warpbots.numerics import clear_gradients
from warpbots.solvers import Model, Solver, State

__all__ = ["interval", "reading"]

_MOST = {FIELD: 0.5}
"""Largest magnitudes in fields of a state, where any finite number will not do: no world may be lost."""


def interval(solver: Solver, model: Model, dt: float, substeps: int, replaced: frozenset, wanted: frozenset) -> Replay:
    """The substeps of one control interval.

    Args:
        solver: The solver.
        model: The model.
        dt: Length of a substep [s].
        substeps: Number of substeps.
        replaced: Names of model parameters that calls will pass.
        wanted: Names of inputs with respect to which gradients are wanted; empty for a forward pass only.

    Returns:
        The interval, which watches the control and then the fields of the state at its end.
    """
    gradient = bool(wanted)
    model, own = _with_own(model, replaced, wanted)
    # Without a gradient, two alternating states suffice; with one, two alternating gradients do.
    count = substeps + 1 if gradient else 2
    states: list[State] = []
    for i in range(count):
        states.append(solver.state(model, requires_grad=gradient))
        if i >= 2:
            for array, earlier in zip(_named(states[i]).values(), _named(states[i - 2]).values(), strict=True):
                array.grad = earlier.grad
    states = [states[i % count] for i in range(substeps + 1)]
    control = _control(model, wanted)

    def work(tape: wp.Tape | None) -> None:
        for before, after in zip(states, states[1:], strict=False):
            solver.step(model, before, control, after, dt)
            if tape:  # runs before the adjoint of the step, which adds to the buffer last used by the step after next
                tape.record_func(lambda state=before: clear_gradients(_named(state).values()), [])

    inputs, outputs = _named(states[0]) | {"control": control} | own, _named(states[-1])
    watched = [(control, 1.0), *((array, _MOST.get(name, math.inf)) for name, array in outputs.items())]
    return Replay(model.device, inputs, outputs, wanted, work, frozenset(_named(states[0])), watched)


def reading(
    solver: Solver,
    model: Model,
    make: Callable[..., Any],
    measure: Callable[..., None],
    replaced: frozenset,
    wanted: frozenset,
) -> Replay:
    """What a solver computes of a state, such as its readings, with a check of the control; see `interval`.

    Args:
        solver: The solver.
        model: The model.
        make: Makes arrays for the results, such as `Senses.readings`.
        measure: Writes them, such as `Senses.sense`.
        replaced: Names of model parameters that calls will pass.
        wanted: Names of inputs with respect to which gradients are wanted.
    """
    model, own = _with_own(model, replaced, wanted)
    state, control = solver.state(model, requires_grad=bool(wanted)), _control(model, wanted)
    results = make(model, requires_grad=bool(wanted))
    inputs = _named(state) | {"control": control} | own

    def work(tape: wp.Tape | None) -> None:
        measure(model, state, control, results)

    return Replay(model.device, inputs, _named(results), wanted, work, watched=[(control, 1.0)])


def _with_own(model: Model, replaced: frozenset, wanted: frozenset) -> tuple[Model, dict[str, wp.array]]:
    own = {name: wp.clone(model.parameter(name), requires_grad=name in wanted) for name in replaced}
    return model.with_parameters(own), own


def _control(model: Model, wanted: frozenset) -> wp.array:
    shape, gradient = (model.worlds, model.channels), "control" in wanted
    return wp.zeros(shape, dtype=model.scalar, device=model.device, requires_grad=gradient)


def _named(state: State) -> dict[str, wp.array]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
