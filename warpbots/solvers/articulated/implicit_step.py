"""Launches for a step of an integrator: the stages in order, and the adjoints of the stages in reverse order."""

import warp as wp

from warpbots.numerics import clear_gradients, copy, launch, launch_all, launch_own_adjoint
from warpbots.solvers.articulated.contact_list import list_contacts
from warpbots.solvers.articulated.implicit_integrators import BDF1, Past
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.newton import Options, newton_kernel
from warpbots.solvers.articulated.step_arrays import ImplicitStage
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.articulated.tree_passes import power_adjoint, sweeps
from warpbots.solvers.articulated.virtual_power import contact_power_kernel, recall_kernel, weigh_kernel
from warpbots.solvers.articulated.workspace import StoredStep

__all__ = ["kept_stages", "past_of", "solve_stages", "solve_stages_adjoint", "stages_from"]


def past_of(method: int, dt: float, q: wp.array, qd: wp.array, lengths: wp.array | None = None) -> Past:
    """State at the start of a step as a Warp struct; `lengths`, if given, has the step length of each world."""
    past = Past()
    past.method, past.h = method, dt
    past.q, past.qd = q.flatten(), qd.flatten()
    if lengths is not None:
        past.lengths = lengths
    return past


def stages_from(q: wp.array, stages: tuple[ImplicitStage, ImplicitStage]) -> list[ImplicitStage]:
    """Copies of `stages` (with the same arrays) that displace the coordinates `q`."""
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
    """Copies, in the workspace, of the stages that the step `end` stored, with gradients set to zero."""
    stages = stages_from(q, model.workspace.stages)
    for kept, stage in zip(end.stages, stages, strict=True):
        for name in ("x", "rate", "accel", "c"):
            copy(getattr(stage, name), getattr(kept, name))
        clear_gradients([stage.x, stage.rate, stage.accel, *([stage.c] if model.impacts else [])])
    return stages


def _numbers(past: Past) -> tuple[int, ...]:
    """Numbers of the stages of a step; the only stage of BDF1 has number 1, because it is the last one."""
    return (1,) if past.method == BDF1 else (0, 1)


def solve_stages(
    model: ArticulatedModel, options: Options, past: Past, after: Past, end: StoredStep, control: wp.array
) -> None:
    """Solve for the stages of a step.

    Args:
        model: The model.
        options: Options of Newton's method.
        past: Start of the step.
        after: End of the step.
        end: Storage for the adjoint.
        control: Control signals.
    """
    workspace, (first, second) = model.workspace, stages_from(past.q, end.stages)
    for number in _numbers(past):
        stage = (first, second)[number]
        inputs = [model.robot_arrays, past, options, number, first, control]
        outputs = [workspace.work, workspace.report, stage, end.factors[number], after]
        launch(newton_kernel, (model.worlds, options.lanes), inputs, outputs, model.device, options.lanes)


def solve_stages_adjoint(
    model: ArticulatedModel, past: Past, end: StoredStep, stages: list[ImplicitStage], control: wp.array
) -> None:
    """Adjoint of a step: gradients with respect to its start and all parameters, from the gradients of its stages.

    Args:
        model: The model.
        past: Start of the step.
        end: Data that the step stored.
        stages: From `kept_stages`; their gradients must include everything that depends on the stages.
        control: Control signals.
    """
    workspace, device, lanes = model.workspace, model.device, lanes_of(model.device)
    each = (model.worlds, model.tree.elements)
    for number in reversed(_numbers(past)):
        stage = stages[number]
        inputs = [model.tree, past, end.factors[number], lanes, stage.x.grad]
        launch(weigh_kernel, (model.worlds, lanes), inputs, [workspace.weight], device, lanes)
        _power_adjoint(model, stage, control)
        launch_own_adjoint(recall_kernel, each, [model.tree, past, stages[0], number, stage], device)


def _power_adjoint(model: ArticulatedModel, stage: ImplicitStage, control: wp.array) -> None:
    """Gradients of the virtual power of a stage with respect to the inputs of the stage (`virtual_power`)."""
    workspace, device = model.workspace, model.device
    clear_gradients(workspace.gradients())
    launch_all(sweeps(model, stage), device)
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
