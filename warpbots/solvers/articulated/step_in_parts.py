"""A step in parts, and its adjoint; a part ends at an instant impact or at the end of the step (`impacts`)."""

import warp as wp

from warpbots.numerics import clear_gradients, copy, launch, launch_all, launch_own_adjoint
from warpbots.solvers.articulated.impact_power import (
    arrive_kernel,
    gap_kernel,
    impact_power_kernel,
    impact_sweep_kernel,
    impulse_power_kernel,
    length_kernel,
    time_kernel,
)
from warpbots.solvers.articulated.impacts import CONTACTS, locate_kernel, prepare_kernel, release_kernel
from warpbots.solvers.articulated.implicit_integrators import Past
from warpbots.solvers.articulated.implicit_step import kept_stages, past_of, solve_stages, solve_stages_adjoint
from warpbots.solvers.articulated.impulses import impulse_kernel, weigh_impact_kernel
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.newton import Options
from warpbots.solvers.articulated.step_arrays import ImplicitStage
from warpbots.solvers.articulated.step_of_obstacles import StepOfObstacles
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.articulated.workspace import StoredPart

__all__ = ["step_in_parts", "step_in_parts_adjoint"]


def _bounds(
    parts: list[StoredPart], state: ArticulatedState, state_out: ArticulatedState
) -> list[tuple[wp.array, wp.array]]:
    """Coordinates and velocities at the start of each part and, as the last entry, at the end of the last part."""
    inner = [(part.q, part.qd) for part in parts[1:]]
    return [(state.q.flatten(), state.qd.flatten()), *inner, (state_out.q.flatten(), state_out.qd.flatten())]


def step_in_parts(step: StepOfObstacles, options: Options, state_out: ArticulatedState, impacts: int) -> None:
    """Take a step with instant impacts at up to `impacts` points in time.

    Args:
        step: Model, method, state, control and length of the step, and the motion of obstacles in it.
        options: Options of Newton's method.
        state_out: State at the end of the step.
        impacts: Largest number of points in time at which instant impacts occur.
    """
    model, method, dt, motion = step.model, step.method, step.h, step.motion()
    workspace, robot, worlds = model.workspace, model.robot_arrays, model.worlds
    parts, contacts = workspace.parts(state_out, impacts + 1), workspace.contact_list
    bounds = _bounds(parts, step.state, state_out)
    frames = model.frames.frames
    parts[0].impact.left.fill_(dt)
    for k, part in enumerate(parts):
        start, end, impact = bounds[k], bounds[k + 1], part.impact
        at_impact = workspace.resting(impact.q, impact.qd)
        inputs = [robot, motion, dt, int(k == impacts), workspace.resting(*start)]
        launch(prepare_kernel, worlds, inputs, [contacts, workspace.work.links, frames, impact], model.device)
        past = past_of(method, dt, *start, impact.length)
        lasts = impact.left, impact.length
        solve_stages(model, options, past, past_of(method, dt, *end), part.end, step.control, step, lasts)
        inputs = [robot, motion, dt, past, part.end.stages[1], at_impact, contacts, workspace.report]
        launch(locate_kernel, worlds, inputs, [workspace.work.links, frames, impact], model.device)
        left = parts[k + 1].impact.left if k < impacts else workspace.nothing_left
        inputs, outputs = [robot, at_impact, contacts, workspace.report], [workspace.work, workspace.impulses, impact]
        launch(impulse_kernel, worlds, inputs, [*outputs, *end, left], model.device)


def step_in_parts_adjoint(step: StepOfObstacles, state_out: ArticulatedState, impacts: int) -> None:
    """Adjoint of `step_in_parts`: propagate the gradients of `state_out` backwards through the parts of the step."""
    model = step.model
    parts = model.workspace.parts(state_out, impacts + 1)
    bounds = _bounds(parts, step.state, state_out)
    clear_gradients([array for part in parts for array in (part.q, part.qd)])
    left_adj = model.workspace.nothing_left
    for k in reversed(range(impacts + 1)):
        past = past_of(step.method, step.h, *bounds[k], parts[k].impact.length)
        _part_adjoint(step, int(k == impacts), past, parts[k], bounds[k + 1], left_adj)
        left_adj = parts[k].impact.left.grad
    model.workspace.contact_list.free.zero_()


def _part_adjoint(
    step: StepOfObstacles, last: int, past: Past, part: StoredPart, end: tuple[wp.array, wp.array], left_adj: wp.array
) -> None:
    """Adjoint of a part: propagate the gradients at the end of the part to its start.

    Gradients exist with respect to the state and to the time left until the end of the step.
    """
    model, impact = step.model, part.impact
    workspace, worlds, device = model.workspace, model.worlds, model.device
    at_impact, arrived = workspace.resting(impact.q, impact.qd), (impact.left, impact.time)
    stages = kept_stages(model, past.q, part.end)
    clear_gradients([impact.left, impact.length, impact.time])
    copy(impact.q.grad, end[0].grad)
    copy(impact.qd.grad, end[1].grad)
    step.place(1.0, *arrived)
    _impulse_adjoint(model, at_impact, part, end[1].grad)
    step.adj_place(1.0, *arrived)
    arrival = [model.tree, past, stages[1], impact]
    each = (worlds, model.tree.elements)
    launch_own_adjoint(arrive_kernel, each, arrival, device)
    inputs = [impact, left_adj, impact.time.grad]
    launch(time_kernel, worlds, inputs, [impact.left.grad, impact.length.grad, workspace.gap.grad], device)
    clear_gradients([impact.q, impact.qd])
    _gap_adjoint(model, at_impact, part)
    step.adj_place(1.0, *arrived)
    launch_own_adjoint(arrive_kernel, each, arrival, device)
    inputs = [model.robot_arrays, step.motion(), past.h, last, workspace.resting(past.q, past.qd), impact.left]
    outputs = [workspace.contact_list, workspace.work.links, model.frames.frames]
    launch(release_kernel, worlds, inputs, outputs, device)
    solve_stages_adjoint(model, past, part.end, stages, step.control, step, (impact.left, impact.length))
    inputs = [impact, stages[1].c, stages[0].c.grad, stages[1].c.grad, impact.length.grad]
    launch(length_kernel, worlds, inputs, [impact.left.grad], device)


def _impulse_adjoint(model: ArticulatedModel, at_impact: ImplicitStage, part: StoredPart, qd_adj: wp.array) -> None:
    """Adjoint of an impact, without the direct dependences of q on q and of v+ on v-, which the caller handles."""
    workspace, robot, worlds, device = model.workspace, model.robot_arrays, model.worlds, model.device
    impulses, contacts, impact = workspace.impulses, workspace.contact_list, part.impact
    inputs, outputs = [robot, at_impact, contacts, impact, qd_adj], [workspace.work, impulses, workspace.weight]
    launch(weigh_impact_kernel, worlds, inputs, outputs, device)
    clear_gradients([*workspace.gradients(), workspace.changed])
    swept = [workspace.links, workspace.sweep, workspace.changed]
    each = (worlds, model.tree.elements)
    steps = [
        (impact_sweep_kernel, worlds, [robot, at_impact, workspace.weight, impulses.change], swept),
        (impact_power_kernel, each, [robot, workspace.weight, impulses.change, *swept], [workspace.power]),
        (
            impulse_power_kernel,
            (worlds, CONTACTS),
            [robot, contacts, impact, impulses.weight, *swept],
            [workspace.hit_power],
        ),
    ]
    workspace.power.grad.fill_(1.0)
    workspace.hit_power.grad.fill_(1.0)
    launch_all(steps[:1], device)
    adjoints(steps, device)


def _gap_adjoint(model: ArticulatedModel, at_impact: ImplicitStage, part: StoredPart) -> None:
    """Propagate the gradient of the vanishing gap to the coordinates at the impact and to all parameters."""
    workspace, impact, device = model.workspace, part.impact, model.device
    clear_gradients(workspace.gradients())
    steps = poses(model, at_impact)
    launch_all(steps, device)
    inputs = [model.robot_arrays, workspace.contact_list, impact, workspace.links]
    adjoints([*steps, (gap_kernel, model.worlds, inputs, [workspace.gap])], device)
