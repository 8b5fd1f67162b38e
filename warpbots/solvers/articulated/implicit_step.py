"""Kernel launches of a step of an integrator: its stages in order, and their adjoints in reverse order."""

from collections.abc import Sequence

import warp as wp

from warpbots.numerics import clear_gradients, copy, launch, launch_all, launch_own_adjoint
from warpbots.solvers.articulated.contact_list import list_contacts
from warpbots.solvers.articulated.exchange_step import ExchangeStep
from warpbots.solvers.articulated.implicit_integrators import BDF1, Past
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.newton import Options, newton_kernel
from warpbots.solvers.articulated.step_arrays import ImplicitStage
from warpbots.solvers.articulated.step_of_obstacles import STAGE_SHARES, StepOfObstacles
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.articulated.tree_passes import power_adjoint, sweeps
from warpbots.solvers.articulated.virtual_power import contact_power_kernel, recall_kernel, weigh_kernel
from warpbots.solvers.articulated.workspace import StoredStep

__all__ = ["kept_stages", "past_of", "solve_stages", "solve_stages_adjoint", "stages_from"]


def past_of(method: int, dt: float, q: wp.array, qd: wp.array, lengths: wp.array | None = None) -> Past:
    """Warp struct of the state at the start of a step.

    If `lengths` is given, it holds the length of the step in each world; otherwise all worlds take a step of `dt`.
    """
    past = Past()
    past.method, past.h = method, dt
    past.q, past.qd = q.flatten(), qd.flatten()
    if lengths is not None:
        past.lengths = lengths
    return past


def stages_from(q: wp.array, stages: tuple[ImplicitStage, ImplicitStage]) -> list[ImplicitStage]:
    """Copies of `stages` that displace the coordinates `q`; all other arrays are shared with `stages`."""
    placed = []
    for stage in stages:
        copied = ImplicitStage()
        for name in ImplicitStage.vars:
            if name != "q":
                setattr(copied, name, getattr(stage, name))
        copied.q = q.flatten()
        placed.append(copied)
    return placed


def kept_stages(model: ArticulatedModel, q: wp.array, end: StoredStep) -> list[ImplicitStage]:
    """Copy the stored stages `end` of a step to arrays of the workspace whose gradients are zero."""
    stages = stages_from(q, model.workspace.stages)
    for kept, stage in zip(end.stages, stages, strict=True):
        for name in ("x", "rate", "accel", "c"):
            copy(getattr(stage, name), getattr(kept, name))
        clear_gradients([stage.x, stage.rate, stage.accel, *([stage.c] if model.impacts else [])])
    return stages


def _numbers(past: Past) -> tuple[int, ...]:
    """Indices of the stages of a step; the only stage of BDF1 has index 1, like the last stage of SDIRK2."""
    return (1,) if past.method == BDF1 else (0, 1)


def solve_stages(
    model: ArticulatedModel, options: Options, past: Past, after: Past, end: StoredStep, control: wp.array,
    obstacles: StepOfObstacles, part: Sequence[wp.array] = (), exchange: ExchangeStep | None = None,
) -> None:  # fmt: skip
    """Solve the stages of a step, and write the state at its end.

    Args:
        model: The model.
        options: Options of Newton's method.
        past: State at the start of the step.
        after: State at the end of the step, which the function writes.
        end: Data for the adjoint, which the function writes.
        control: Control signals.
        obstacles: Motion of obstacles in the step.
        part: In a part of a step, the time left at its start and its length (`StepOfObstacles`).
        exchange: Points of matter that touch bodies, whose impulses act in the last stage; None without matter.
    """
    workspace, (first, second) = model.workspace, stages_from(past.q, end.stages)
    for number in _numbers(past):
        stage = (first, second)[number]
        obstacles.place(STAGE_SHARES[number], *part)
        inputs = [model.robot_arrays, past, options, number, first, control]
        work = exchange.work(model) if exchange is not None and number == 1 else workspace.work
        outputs = [work, workspace.report, stage, end.factors[number], after]
        launch(newton_kernel, (model.worlds, options.lanes), inputs, outputs, model.device, options.lanes)
    if exchange is not None:
        exchange.find_impulses(model, second)


def solve_stages_adjoint(
    model: ArticulatedModel, past: Past, end: StoredStep, stages: list[ImplicitStage], control: wp.array,
    obstacles: StepOfObstacles, part: Sequence[wp.array] = (), exchange: ExchangeStep | None = None,
) -> None:  # fmt: skip
    """Adjoint of the stages of a step: propagate their gradients to the start of the step and to all parameters.

    Args:
        model: The model.
        past: State at the start of the step.
        end: Data that the step stored for the adjoint.
        stages: Copies of the stages from `kept_stages`; their gradients must include all quantities that depend on the
            stages.
        control: Control signals.
        obstacles: Motion of obstacles in the step.
        part: As in `solve_stages`.
        exchange: As in `solve_stages`.
    """
    workspace, device, lanes = model.workspace, model.device, lanes_of(model.device)
    each = (model.worlds, model.tree.elements)
    if exchange is not None:
        exchange.adj_find_impulses(model, stages[1])
    for number in reversed(_numbers(past)):
        stage = stages[number]
        inputs = [model.tree, past, end.factors[number], lanes, stage.x.grad]
        launch(weigh_kernel, (model.worlds, lanes), inputs, [workspace.weight], device, lanes)
        obstacles.place(STAGE_SHARES[number], *part)
        _power_adjoint(model, stage, control, exchange if number == 1 else None)
        obstacles.adj_place(STAGE_SHARES[number], *part)
        launch_own_adjoint(recall_kernel, each, [model.tree, past, stages[0], number, stage], device)


def _power_adjoint(
    model: ArticulatedModel, stage: ImplicitStage, control: wp.array, exchange: ExchangeStep | None
) -> None:
    """Add the derivatives of the virtual power of a stage (`virtual_power`) to the gradients of its inputs."""
    workspace, device = model.workspace, model.device
    clear_gradients(workspace.gradients())
    launch_all(sweeps(model, stage), device)
    if exchange is not None:
        exchange.adj_power(model, stage)
    candidates = workspace.contact_list.pair.size
    if candidates:
        launch_all(list_contacts(model.robot_arrays, workspace.links, workspace.contact_list, device), device)
        contact = [
            model.robot_arrays, workspace.links, workspace.contact_list, candidates, workspace.sweep,
            workspace.contact_power,
        ]  # fmt: skip
        workspace.contact_power.grad.fill_(1.0)
        launch_own_adjoint(contact_power_kernel, (model.worlds, candidates), contact, device)
    power_adjoint(model, stage, control)
