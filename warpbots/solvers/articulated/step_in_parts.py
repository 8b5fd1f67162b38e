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
from warpbots.solvers.articulated.impulses import strike_kernel, weigh_impact_kernel
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.newton import Options
from warpbots.solvers.articulated.step_arrays import ImplicitStage
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.articulated.workspace import StoredPart

__all__ = ["step_in_parts", "step_in_parts_adjoint"]


def _bounds(
    parts: list[StoredPart], state: ArticulatedState, state_out: ArticulatedState
) -> list[tuple[wp.array, wp.array]]:
    """Coordinates and velocities at the start of each part and, as the last entry, at the end of the last part."""
    inner = [(part.q, part.qd) for part in parts[1:]]
    return [(state.q.flatten(), state.qd.flatten()), *inner, (state_out.q.flatten(), state_out.qd.flatten())]


def step_in_parts(
    model: ArticulatedModel, method: int, options: Options, state: ArticulatedState, control: wp.array,
    state_out: ArticulatedState, dt: float, impacts: int,
) -> None:  # fmt: skip
    """Advance by `dt` [s], with instant impacts at up to `impacts` points in time.

    Args:
        model: The model.
        method: Code of the integrator.
        options: Options of Newton's method.
        state: State at the start of the step.
        control: Control signals.
        state_out: State at the end of the step.
        dt: Time step [s].
        impacts: Largest number of points in time at which instant impacts occur.
    """
    workspace, robot, worlds = model.workspace, model.robot_arrays, model.worlds
    parts, listed = workspace.parts(state_out, impacts + 1), workspace.contact_list
    bounds = _bounds(parts, state, state_out)
    parts[0].impact.left.fill_(dt)
    for k, part in enumerate(parts):
        start, end, impact = bounds[k], bounds[k + 1], part.impact
        landing = workspace.resting(impact.q, impact.qd)
        inputs = [robot, dt, int(k == impacts), workspace.resting(*start)]
        launch(prepare_kernel, worlds, inputs, [listed, workspace.work.links, impact], model.device)
        past = past_of(method, dt, *start, impact.length)
        solve_stages(model, options, past, past_of(method, dt, *end), part.end, control)
        inputs = [robot, dt, past, part.end.stages[1], landing, listed, workspace.report]
        launch(locate_kernel, worlds, inputs, [workspace.work.links, impact], model.device)
        left = parts[k + 1].impact.left if k < impacts else workspace.nothing_left
        inputs, outputs = [robot, landing, listed, workspace.report], [workspace.work, workspace.strike, impact]
        launch(strike_kernel, worlds, inputs, [*outputs, *end, left], model.device)


def step_in_parts_adjoint(
    model: ArticulatedModel, method: int, state: ArticulatedState, control: wp.array, state_out: ArticulatedState,
    dt: float, impacts: int,
) -> None:  # fmt: skip
    """Adjoint of `step_in_parts`: propagate the gradients of `state_out` backwards through the parts of the step."""
    parts = model.workspace.parts(state_out, impacts + 1)
    bounds = _bounds(parts, state, state_out)
    clear_gradients([array for part in parts for array in (part.q, part.qd)])
    left_adj = model.workspace.nothing_left
    for k in reversed(range(impacts + 1)):
        past = past_of(method, dt, *bounds[k], parts[k].impact.length)
        _part_adjoint(model, int(k == impacts), past, parts[k], bounds[k + 1], left_adj, control)
        left_adj = parts[k].impact.left.grad
    model.workspace.contact_list.free.zero_()


def _part_adjoint(
    model: ArticulatedModel, last: int, past: Past, part: StoredPart, end: tuple[wp.array, wp.array],
    left_adj: wp.array, control: wp.array,
) -> None:  # fmt: skip
    """Adjoint of a part: propagate the gradients at the end of the part to its start.

    Gradients exist with respect to the state and to the time left until the end of the step.
    """
    workspace, impact, worlds, device = model.workspace, part.impact, model.worlds, model.device
    landing = workspace.resting(impact.q, impact.qd)
    stages = kept_stages(model, past.q, part.end)
    clear_gradients([impact.left, impact.length, impact.time])
    copy(impact.q.grad, end[0].grad)
    copy(impact.qd.grad, end[1].grad)
    _strike_adjoint(model, landing, part, end[1].grad)
    arrival = [model.tree, past, stages[1], impact]
    each = (worlds, model.tree.elements)
    launch_own_adjoint(arrive_kernel, each, arrival, device)
    inputs = [impact, left_adj, impact.time.grad]
    launch(time_kernel, worlds, inputs, [impact.left.grad, impact.length.grad, workspace.gap.grad], device)
    clear_gradients([impact.q, impact.qd])
    _gap_adjoint(model, landing, part)
    launch_own_adjoint(arrive_kernel, each, arrival, device)
    inputs = [model.robot_arrays, past.h, last, workspace.resting(past.q, past.qd), impact.left]
    launch(release_kernel, worlds, inputs, [workspace.contact_list, workspace.work.links], device)
    solve_stages_adjoint(model, past, part.end, stages, control)
    inputs = [impact, stages[1].c, stages[0].c.grad, stages[1].c.grad, impact.length.grad]
    launch(length_kernel, worlds, inputs, [impact.left.grad], device)


def _strike_adjoint(model: ArticulatedModel, landing: ImplicitStage, part: StoredPart, qd_adj: wp.array) -> None:
    """Adjoint of an impact, without the direct dependences of q on q and of v+ on v-, which the caller handles."""
    workspace, robot, worlds, device = model.workspace, model.robot_arrays, model.worlds, model.device
    strike, listed, impact = workspace.strike, workspace.contact_list, part.impact
    inputs, outputs = [robot, landing, listed, impact, qd_adj], [workspace.work, strike, workspace.weight]
    launch(weigh_impact_kernel, worlds, inputs, outputs, device)
    clear_gradients([*workspace.gradients(), workspace.changed])
    swept = [workspace.links, workspace.sweep, workspace.changed]
    each = (worlds, model.tree.elements)
    steps = [
        (impact_sweep_kernel, worlds, [robot, landing, workspace.weight, strike.change], swept),
        (impact_power_kernel, each, [robot, workspace.weight, strike.change, *swept], [workspace.power]),
        (
            impulse_power_kernel,
            (worlds, CONTACTS),
            [robot, listed, impact, strike.weight, *swept],
            [workspace.hit_power],
        ),
    ]
    workspace.power.grad.fill_(1.0)
    workspace.hit_power.grad.fill_(1.0)
    launch_all(steps[:1], device)
    adjoints(steps, device)


def _gap_adjoint(model: ArticulatedModel, landing: ImplicitStage, part: StoredPart) -> None:
    """Propagate the gradient of the vanishing gap to the coordinates at the impact and to all parameters."""
    workspace, impact, device = model.workspace, part.impact, model.device
    clear_gradients(workspace.gradients())
    steps = poses(model, landing)
    launch_all(steps, device)
    inputs = [model.robot_arrays, workspace.contact_list, impact, workspace.links]
    adjoints([*steps, (gap_kernel, model.worlds, inputs, [workspace.gap])], device)
