"""One step of implicit Euler in chosen worlds; an iteration solves for the end of the step."""

import dataclasses

import warp as wp

from warpbots.numerics import launch, real, while_loop
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.contact_step import ContactStep
from warpbots.solvers.projective.elements import nodes, oscillations
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_residual, evaluate_rest
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.islands import conclude_kernel, rest_kernel, separate_kernel
from warpbots.solvers.projective.iterate.anderson import accelerate, begin
from warpbots.solvers.projective.iterate.convergence import Objective, gather_kernel
from warpbots.solvers.projective.iterate.error_estimate import criterion
from warpbots.solvers.projective.iterate.newton import forcing_kernel, take_newton_steps
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.prescribed_step import PrescribedStep
from warpbots.solvers.projective.second_derivative import SecondDerivative
from warpbots.solvers.projective.states import ProjectiveState

__all__ = ["implicit_step"]

_NEWTON_STEPS = 10
"""Newton steps that an iteration may take."""
_NEAR = 1e-3
"""Correction at which Newton steps begin [mean edges]."""
_NEAR_WITH_FACTOR = 0.1
"""The same for solids with a direct solver; sheets are too often near a saddle point, to which early steps lead."""
_EARLY = 1e-2
"""Correction above which a Newton step is early: terms of second order may exceed a tolerance of 1e-5 [mean edges]."""
_FORCING = 1e-4
"""Relative residual at which the linear solve of a Newton step ends."""
_EARLY_FORCING = 1e-3
"""The same for an early Newton step; another step follows it."""


def implicit_step(
    model: ProjectiveModel,
    state: ProjectiveState,
    control: wp.array,
    state_out: ProjectiveState,
    dt: float,
    where: wp.array,
    tolerance: float,
    limit: int,
) -> wp.array:
    """Take one step, without recording its adjoint.

    Worlds in which `where` is 0, and components that do not move or whose step fails, stay as they are.

    Args:
        model: The model.
        state: The state at the start; not changed.
        control: Control signals, shape (worlds, channels).
        state_out: The state to write; different arrays from `state`.
        dt: Length of the step [s].
        where: 1 for a world that takes the step, shape (worlds,).
        tolerance: Estimated error at which the step has converged [mean edges].
        limit: Number of iterations after which the step has failed.

    Returns:
        1 for a world whose step succeeded, shape (worlds,).
    """
    workspace, sizes, device, h = model.workspace, model.topology.sizes, model.device, real(dt)
    matrix, x, v = model.matrices.of(dt), state.position.flatten(), state.velocity.flatten()
    it, each = matrix.iteration, (model.worlds, sizes.nodes)
    z, f, progress = it.history.z, it.history.f, it.progress
    start = Point(workspace.everywhere, control, x, z, h, state.time)
    prescribed = PrescribedStep(model, state, control, dt)
    evaluate_rest(model, start)
    z.zero_()
    launch(nodes.start_kernel, each, [model.nodes, h, x, v], [z], device)
    global_step = GlobalStep(model, matrix, x)
    global_step.guide(z)
    points = ContactPoints(model, state, dt)
    skeleton = Skeleton(model, state, points, control, dt)
    skeleton.begin(z)
    launch(separate_kernel, (model.worlds, it.islands.count), [where], [it.islands], device)
    contact = ContactStep(model, skeleton, points, dt)
    contact.begin(where)
    global_step.measure(v, dataclasses.replace(start, u=workspace.zero))
    workspace.flight.fill_(1.0)
    skeleton.pose(workspace.everywhere, z)
    global_step.shorten_flight(z)
    prescribed.guide(z)
    if it.islands.count > 1:
        launch(rest_kernel, (model.worlds, sizes.first_contact), [it.islands, sizes.stride], [z], device)
    prescribed.carry_edges(points.position, z)
    begin(it, where)

    def move(where: wp.array) -> None:
        global_step.solve(where, workspace.residual, f, linear=False)
        skeleton.correct(where, f)
        global_step.guide(f)

    second = SecondDerivative(model, global_step, start)
    newton_steps = _NEWTON_STEPS if second.symmetric else 0
    needed = 0 if second.iterative else 1  # corrections of stiff cells say nothing of the error in soft ones
    near = _NEAR if second.iterative else _NEAR_WITH_FACTOR
    enough = criterion(tolerance, limit, True, newton_steps, needed, near, near_thin=_NEAR, telling=_EARLY)
    energy = Objective(workspace.residual, sizes.nodes) if second.symmetric and matrix.normals.count else None

    def iterate() -> None:
        active = progress.running
        skeleton.pose(active, z)
        skeleton.join(active)
        contact.detection.search(z, tolerance)
        global_step.place(active, z)
        global_step.free_normals(dataclasses.replace(start, active=active))
        evaluate_residual(model, dataclasses.replace(start, active=active), v)
        contact.push(active, z)
        global_step.guide(workspace.residual)
        move(active)
        contact.solve_forces(active, z, f)
        contact.follow(f, move)
        accelerate(it, enough, energy)
        contact.detection.ask(z, limit // 2)

    def newton() -> None:
        inputs = [it.islands, *(wp.float64(a) for a in (_EARLY, _EARLY_FORCING, _FORCING)), progress]
        launch(forcing_kernel, it.units, inputs, [workspace.forcing], device)
        second.solve(progress.waiting, workspace.residual, f, workspace.forcing, limit)
        take_newton_steps(it, workspace.krylov, newton_steps)
        while_loop(progress.any, iterate)

    while_loop(progress.any, iterate)
    while_loop(progress.any_waiting, newton)
    skeleton.pose(workspace.everywhere, z)
    for kind, elements in model.elements:
        if kind.forbid is not None:
            inputs = [elements, x, z, it.islands]
            launch(kind.forbid, (model.worlds, elements.place.count), inputs, [progress.converged], device)
    contact.forbid_embedded(where, z)
    contact.forbid_shortage()
    launch(gather_kernel, model.worlds, [it.islands, 1], [progress], device)
    launch(conclude_kernel, (model.worlds, it.islands.count), [progress.converged], [it.islands], device)
    end = workspace.end(state_out)
    if end is not None:
        contact.keep(end, z)
    ended = [state_out.position.flatten(), state_out.velocity.flatten()]
    launch(nodes.end_kernel, each, [model.nodes, h, it.islands, x, v, z], ended, device)
    if state.time.size:
        inputs = [model.frames.time_step(dt), progress.found, state.time]
        launch(oscillations.pass_kernel, model.worlds, inputs, [state_out.time], device)
    prescribed.advance(progress.found, state_out.travel)
    skeleton.finish(it.islands, state_out, dt)
    return progress.found
