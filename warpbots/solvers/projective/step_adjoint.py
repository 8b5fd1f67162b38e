"""The adjoint of a step by the implicit function theorem.

With the residual b(u, theta) = 0 at the end of the step, the gradient g with respect to u and H = -db/du,

    theta* += (db/dtheta)^T H^-1 g.
"""

import warp as wp

from warpbots.numerics import clear_gradients, copy, launch, launch_own_adjoint, real, while_loop
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.contact_step import ContactStep
from warpbots.solvers.projective.elements import nodes, oscillations
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_residual, evaluate_rest, residual_launches, rest_launches
from warpbots.solvers.projective.global_matrix import GlobalMatrix
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.islands import separate_kernel
from warpbots.solvers.projective.iterate.anderson import accelerate, begin
from warpbots.solvers.projective.iterate.error_estimate import criterion
from warpbots.solvers.projective.iterate.minres import hand_over
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.second_derivative import SecondDerivative
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.step_clock import move_all_kernel

__all__ = ["solve_adjoint", "step_adjoint"]


def step_adjoint(
    model: ProjectiveModel,
    state: ProjectiveState,
    control: wp.array,
    state_out: ProjectiveState,
    dt: float,
    tolerance: float,
    limit: int,
) -> None:
    """Propagate the gradients of `state_out` back through a step.

    Args:
        model: The model.
        state: The state at the start of the step.
        control: Control signals, shape (worlds, channels).
        state_out: The state at the end of the step.
        dt: Length of the step [s].
        tolerance: Relative tolerance of the adjoint.
        limit: Number of iterations after which the adjoint has failed.
    """
    workspace, sizes, device, h = model.workspace, model.topology.sizes, model.device, real(dt)
    matrix, x, v = model.matrices.of(dt), state.position.flatten(), state.velocity.flatten()
    it, each = matrix.iteration, (model.worlds, sizes.nodes)
    u, seed, everywhere = workspace.displacement, workspace.seed, workspace.everywhere
    ended = [state_out.velocity.flatten(), state_out.position.grad.flatten(), state_out.velocity.grad.flatten()]
    workspace.stepped.zero_()
    point = Point(everywhere, control, x, u, h, state.time)
    evaluate_rest(model, point)
    launch(nodes.seed_kernel, each, [model.nodes, h, *ended], [u, seed], device)
    end = workspace.end(state_out)
    if end is not None:
        copy(u, end.z)
    points = ContactPoints(model, state, dt)
    skeleton = Skeleton(model, state, points, control, dt)
    skeleton.recall(u, state_out, dt)
    launch(separate_kernel, (model.worlds, it.islands.count), [everywhere], [it.islands], device)
    launch(move_all_kernel, it.units, [], [it.islands], device)
    contact = ContactStep(model, skeleton, points, dt)
    contact.recall(end, u)
    global_step = GlobalStep(model, matrix, x)
    global_step.measure(v, point)
    global_step.place(everywhere, u)
    global_step.free_normals(point)
    it.history.z.zero_()
    if model.torque.size:
        evaluate_residual(model, point, v)  # the adjoint of motors reads their angles
    if model.skeleton is not None:
        evaluate_residual(model, point, v)
        contact.push(everywhere, u)
        skeleton.differentiate(it.history.z)
    contact.differentiate(u)
    solve_adjoint(model, matrix, global_step, point, skeleton, contact, tolerance, limit)
    contact.refuse_detached(u)
    contact.forbid_shortage()
    inputs = [sizes.stride, it.progress.found]
    launch(nodes.invalidate_kernel, (model.worlds, sizes.stride), inputs, [it.history.z], device)
    launch(nodes.weigh_kernel, each, [model.nodes, it.history.z], [workspace.residual.grad], device)
    clear_gradients([u, workspace.force, workspace.corner_mass, *workspace.rested, *workspace.evaluated])
    launches = rest_launches(model, point) + residual_launches(model, point, v)
    for kernel, dim, inputs in reversed(launches):
        launch_own_adjoint(kernel, dim, inputs, device)
    contact.adjoint(u, it.history.z)
    skeleton.adjoint(it.history.z)
    points.adjoint()
    inputs = [model.nodes, seed, u.grad, ended[1]]
    launch(nodes.settle_kernel, each, inputs, [x.grad, model.nodes.anchor.grad], device)
    if state.time.size:
        launch(oscillations.adj_pass_kernel, model.worlds, [state_out.time.grad], [state.time.grad], device)


def solve_adjoint(
    model: ProjectiveModel,
    matrix: GlobalMatrix,
    global_step: GlobalStep,
    point: Point,
    skeleton: Skeleton,
    contact: ContactStep,
    tolerance: float,
    limit: int,
) -> None:
    """Solve H a = u*: by MINRES if H is symmetric, otherwise by the iteration of the step.

    For this linear problem the iteration of the step is linear, too. H is symmetric if there is no contact, no fluid
    and no bone. The residual at nodes that are bound to bones stays in `Workspace.residual`.
    """
    workspace, it = model.workspace, matrix.iteration
    a, f = it.history.z, it.history.f
    a.zero_()
    second = SecondDerivative(model, global_step, point)
    second.evaluate()

    def evaluate(active: wp.array) -> None:
        skeleton.residual(active, a)
        second.residual(active, workspace.seed, a, workspace.residual)
        contact.pull(active, point.u, a)

    if second.symmetric:
        second.solve(it.islands.symmetric, workspace.seed, a, tolerance, limit, evaluated=True)
        begin(it, workspace.everywhere)
        hand_over(workspace.krylov, it.islands, it.progress)
    else:
        begin(it, workspace.everywhere)

    def move(where: wp.array) -> None:
        second.precondition(where, workspace.residual, f)
        skeleton.correct(where, f, transposed=True)
        global_step.guide(f)

    def iterate() -> None:
        active = it.progress.running
        evaluate(active)
        move(active)
        contact.solve_adjoint_forces(active, a, f)
        contact.follow_adjoint(point.u, f, move)
        accelerate(it, criterion(tolerance, limit))

    while_loop(it.progress.any, iterate)
    if model.skeleton is not None:
        evaluate(workspace.everywhere)
