"""Control intervals one after the other."""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch

from warpbots.gradients import Checkpoints, Losses, Segment, Tensors, Watch
from warpbots.numerics import parallel
from warpbots.scene.field_types import shown
from warpbots.simulation.solver_operations import SolverOperations
from warpbots.simulation.states import fields_of
from warpbots.trajectory import Trajectory

__all__ = ["Rollout", "innermost_rollout", "replaced_parameters", "roll_out", "step"]

_UNREAD = 16
"""A rollout on a GPU checks for faults at least once in this number of control intervals."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rollout:
    """A rollout in progress, of any simulation; observers keep one memory for each.

    Attributes:
        dt: Length of its control intervals [s].
    """

    dt: float


_innermost: ContextVar[Rollout | None] = ContextVar("innermost rollout", default=None)
_replaced: ContextVar[Tensors | None] = ContextVar("replaced parameters", default=None)


def innermost_rollout() -> Rollout | None:
    """The innermost rollout in progress in this thread; None outside of rollouts."""
    return _innermost.get()


def replaced_parameters() -> Tensors:
    """Tensors with which the innermost rollout in progress replaces parameters, by name; empty outside of rollouts."""
    return _replaced.get() or {}


@contextlib.contextmanager
def _in_progress(dt: float, parameters: Tensors) -> Iterator[None]:
    outside, before = _innermost.set(Rollout(dt)), _replaced.set(parameters)
    try:
        yield
    finally:
        _innermost.reset(outside)
        _replaced.reset(before)


def step(solver: SolverOperations, state: Any, control: torch.Tensor, parameters: Tensors) -> Any:
    """The state after one control interval; see `Simulation.step`.

    Args:
        solver: The solver.
        state: State at the start of the interval.
        control: Control signal, shape (worlds, channels) or (channels,).
        parameters: Tensors instead of the model's parameters, by name.
    """
    inputs, bridge, device = solver.inputs, solver.control_interval, solver.inputs.model.device
    parameters = inputs.parameters(parameters)
    solver.time_step.judge(inputs, parameters)
    given = fields_of(state) | {"control": inputs.control(control)} | parameters
    outputs, marks = bridge.run(given, Segment(bridge, keep=True), 0)
    losses = Losses(inputs.model.worlds)
    Watch(device, 1).note(marks, functools.partial(solver.diagnosis.refuse, given, 0, outputs, losses))
    return type(state)(**outputs)


def roll_out(
    simulation: Any,
    solver: SolverOperations,
    checkpoints: Checkpoints,
    controller: Any,
    steps: int,
    state: Any,
    begun: Any,
    observe: Callable[[Any], torch.Tensor] | None,
    parameters: Tensors,
) -> Trajectory:
    """The trajectory of `steps` control intervals; see `Simulation.rollout`.

    Args:
        simulation: The simulation, to which the trajectory refers.
        solver: The solver.
        checkpoints: Rule that says which states are kept for the backward pass.
        controller: A callable (state, time) -> control, a table of controls, or None.
        steps: Number of control intervals.
        state: State at the start.
        begun: Age of the worlds at the start [s]: a number, or a tensor of shape (worlds,).
        observe: A function of the state, called after each interval, or None.
        parameters: Tensors instead of the model's parameters, by name.
    """
    inputs, time_step, bridge, model = solver.inputs, solver.time_step, solver.control_interval, solver.inputs.model
    controller, parameters, start = inputs.controller(controller, steps), inputs.parameters(parameters), state
    time_step.judge(inputs, parameters)
    lengths = checkpoints.segments(steps, time_step.substeps)
    controls, observations, losses = [], [], Losses(model.worlds)
    checked_every = min(lengths[-1], _UNREAD) if parallel(model.device) else 1
    with _in_progress(time_step.dt, parameters), Watch(model.device, checked_every) as watch:
        for first, count in zip(itertools.accumulate(lengths, initial=0), lengths, strict=False):
            segment = Segment(bridge, keep=checkpoints.keeps_all or first + count == steps, first=first)
            with segment.saving_places():
                for i in range(count):
                    u = inputs.control(controller(state, begun + (first + i) * time_step.dt))
                    controls.append(u.clone())  # a controller may fill the same tensor again
                    given = fields_of(state) | {"control": u} | parameters
                    outputs, marks = bridge.run(given, segment, i)
                    given = given | {"control": controls[-1]}
                    watch.note(marks, functools.partial(solver.diagnosis.refuse, given, first + i, outputs, losses))
                    state = type(state)(**outputs)
                    if observe is not None:
                        observations.append(_observed(observe(state), observations, model.worlds))
    return Trajectory(
        simulation=simulation,
        start=start.mapped(lambda field: field.detach().clone()),
        final=state,
        control=torch.stack(controls, dim=1),
        observation=torch.stack(observations, dim=1) if observations else None,
        parameters={n: p.detach().clone() for n, p in parameters.items()},
        lost=losses.interval,
    )


def _observed(value: Any, before: list[torch.Tensor], worlds: int) -> torch.Tensor:
    """A copy of what `observe` returned, checked to be a tensor with a row for each world, shaped like the first."""
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"rollout: observe must return a torch tensor of shape (worlds, ...), got {shown(value)}")
    if value.shape[:1] != (worlds,):
        raise ValueError(
            f"rollout: observe must return a tensor of shape ({worlds}, ...), with the worlds first, got "
            f"{tuple(value.shape)}; leave the first axis of the state out of means and indices"
        )
    if before and value.shape != before[0].shape:
        raise ValueError(
            f"rollout: observe must return tensors of one shape, got {tuple(before[0].shape)} and then "
            f"{tuple(value.shape)}"
        )
    return value.clone()  # an observer may fill the same tensor again
