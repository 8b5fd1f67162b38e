"""The adjoint of a step by the implicit function theorem.

With the residual b(u, theta) = 0 at the end of the step, the gradient g with respect to u and H = -db/du,

    theta* += (db/dtheta)^T H^-1 g.
"""

from collections.abc import Callable

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_lanes, launch_own_adjoint, while_loop
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact_step import ContactStep
from warpbots.solvers.projective.elements import nodes, oscillations
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.end_of_step import recall_step
from warpbots.solvers.projective.forces import evaluate_residual, residual_launches, rest_launches
from warpbots.solvers.projective.global_matrix import GlobalMatrix
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.iterate.anderson import accelerate, begin
from warpbots.solvers.projective.iterate.anderson_arrays import LANES
from warpbots.solvers.projective.iterate.convergence import hold_kernel
from warpbots.solvers.projective.iterate.error_estimate import criterion
from warpbots.solvers.projective.iterate.minres import hand_over
from warpbots.solvers.projective.iterate.newton import forcing_kernel
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.second_derivative import SecondDerivative
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.wrench_seeds import WrenchSeeds

__all__ = ["solve_adjoint", "step_adjoint"]


def step_adjoint(
    model: ProjectiveModel,
    state: ProjectiveState,
    control: wp.array,
    state_out: ProjectiveState,
    dt: float,
    tolerance: float,
    limit: int,
    wrenches: WrenchSeeds | None = None,
    whole: bool = False,
) -> None:
    """Propagate the gradients of `state_out`, and of wrenches, back through a step.

    Args:
        model: The model.
        state: The state at the start of the step.
        control: Control signals, shape (worlds, channels).
        state_out: The state at the end of the step.
        dt: Length of the step [s].
        tolerance: Relative tolerance of the adjoint.
        limit: Number of iterations after which the adjoint has failed.
        wrenches: Gradients of wrenches in the step; None without any.
        whole: Whether this is a step of a motion, not a shorter step or a step for readings.
    """
    workspace, sizes, device = model.workspace, model.topology.sizes, model.device
    matrix, x, each = model.matrices.of(dt), state.position.flatten(), (model.worlds, sizes.nodes)
    it, u, seed, everywhere = matrix.iteration, workspace.displacement, workspace.seed, workspace.everywhere
    end = recall_step(model, state, control, state_out, dt)
    point, v, prescribed, skeleton, contact = end.point, end.velocity, end.prescribed, end.skeleton, end.contact
    global_step = GlobalStep(model, matrix, x)
    global_step.measure(v, point)
    global_step.place(everywhere, u)
    global_step.free_normals(point)
    it.history.z.zero_()
    if model.torque.size:
        evaluate_residual(model, point, v)  # the adjoint of motors reads their angles
    if model.skeleton is not None or prescribed.guides:
        evaluate_residual(model, point, v)
        contact.push(everywhere, u)
        prescribed.push(workspace.residual)
        skeleton.differentiate(it.history.z)
    contact.differentiate(u)
    if wrenches is not None:
        wrenches.seed(end)
    solve_adjoint(model, matrix, global_step, point, skeleton, contact, tolerance, limit, wrenches)
    contact.refuse_detached(u, tolerance)
    contact.forbid_shortage()
    contact.note_loss(u, dt, whole, tolerance)
    inputs = [sizes.stride, it.progress.found]
    launch(nodes.invalidate_kernel, (model.worlds, sizes.stride), inputs, [it.history.z], device)
    launch(nodes.weigh_kernel, each, [model.nodes, it.history.z], [workspace.residual.grad], device)
    clear_gradients([u, workspace.force, workspace.corner_mass, *workspace.rested, *workspace.evaluated])
    held = None
    if wrenches is not None:
        held = model.unheld
        wrenches.add_given(workspace.residual.grad)
        wrenches.adjoint(end)
    launches = rest_launches(model, point) + residual_launches(model, point, v, held)
    for kernel, dim, inputs in reversed(launches):
        launch_own_adjoint(kernel, dim, inputs, device)
    contact.adjoint(u, it.history.z)
    skeleton.adjoint(it.history.z)
    prescribed.adj_carry_edges(end.points.position, u)  # first: the adjoint of `points` clears gradients at edges
    end.points.adjoint()
    inputs = [model.nodes, seed, u.grad, state_out.position.grad.flatten()]
    launch(nodes.settle_kernel, each, inputs, [x.grad, model.nodes.anchor.grad], device)
    prescribed.adjoint(u, seed, it.history.z, state_out.travel, wrenches.velocity if wrenches else workspace.zero)
    if state.time.size:
        launch(oscillations.adj_pass_kernel, model.worlds, [state_out.time.grad], [state.time.grad], device)
    if wrenches is not None:
        wrenches.clear()


def solve_adjoint(
    model: ProjectiveModel,
    matrix: GlobalMatrix,
    global_step: GlobalStep,
    point: Point,
    skeleton: Skeleton,
    contact: ContactStep,
    tolerance: float,
    limit: int,
    wrenches: WrenchSeeds | None = None,
) -> None:
    """Solve H a = u*: by MINRES if H is symmetric, otherwise by the iteration of the step.

    For this linear problem the iteration of the step is linear, too. H is symmetric if there is no contact, no fluid
    and no bone; without contact and bones, a factor of the symmetric part of H may replace A (`unsymmetric`). The
    residual at nodes that are bound to bones stays in `Workspace.residual`. Gradients of `wrenches` prescribe the
    adjoint displacements of held nodes; their product with H is part of the right-hand side.
    """
    workspace, it = model.workspace, matrix.iteration
    a, f = it.history.z, it.history.f
    a.zero_()
    second = SecondDerivative(model, global_step, point)
    second.evaluate()
    if wrenches is not None:
        second.residual(workspace.everywhere, workspace.seed, wrenches.given, workspace.residual)
        each, inputs = (model.worlds, model.topology.sizes.nodes), [model.topology.sizes.stride, workspace.residual]
        launch(nodes.take_kernel, each, inputs, [workspace.seed], model.device)

    def evaluate(active: wp.array) -> None:
        skeleton.residual(active, a)
        second.residual(active, workspace.seed, a, workspace.residual)
        contact.pull(active, point.u, a)

    def iterate_with(precondition: Callable, limit: int) -> None:
        def move(where: wp.array) -> None:
            precondition(where, workspace.residual, f)
            skeleton.correct(where, f, transposed=True)
            global_step.guide(f)

        def iterate() -> None:
            active = it.progress.running
            evaluate(active)
            move(active)
            launch_lanes(hold_kernel, it.units, LANES, inputs, [it.progress], model.device)
            contact.solve_adjoint_forces(active, a, f)
            contact.follow_adjoint(point.u, f, move)
            accelerate(it, criterion(tolerance, limit))

        inputs = [it.count, model.topology.sizes.nodes, it.islands, it.history]
        while_loop(it.progress.any, iterate)

    if second.symmetric:
        inputs = [it.islands, *(wp.float64(a) for a in (0.0, tolerance, tolerance)), it.progress]
        launch(forcing_kernel, it.units, inputs, [workspace.forcing], model.device)
        second.solve(it.islands.symmetric, workspace.seed, a, workspace.forcing, limit, evaluated=True)
        begin(it, workspace.everywhere)
        hand_over(workspace.krylov, it.islands, it.progress)
        iterate_with(second.precondition, limit)
    elif second.iterative:
        begin(it, workspace.everywhere)
        iterate_with(second.precondition, limit)
    else:
        second.solve_unsymmetric(iterate_with, limit)
    if model.skeleton is not None:
        evaluate(workspace.everywhere)
    if wrenches is not None:
        wrenches.keep_seed()
