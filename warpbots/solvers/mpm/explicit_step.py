"""One explicit step of MLS-MPM, and its adjoint: from particles to the grid, on the grid, and back to the particles."""

from typing import Protocol

import warp as wp

from warpbots.numerics import (
    Targets,
    chunk_length,
    clear_gradients,
    launch,
    launch_adjoints,
    launch_all,
    launch_slices,
    parallel,
    real,
    shared,
)
from warpbots.solvers.cable_forces import cable_adjoints, cable_launches
from warpbots.solvers.mpm.constituents import adj_load_constituents, clear_load_gradients, load_constituents
from warpbots.solvers.mpm.constraints import adj_hold_particles, hold_nodes, hold_particles, share_nodes
from warpbots.solvers.mpm.flow import adj_flow, flow
from warpbots.solvers.mpm.grid import clear_kernel, grid_kernel
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.moving_constraints import (
    adj_carry_nodes,
    adj_carry_particles,
    carry_nodes,
    carry_particles,
)
from warpbots.solvers.mpm.moving_faults import stop_impossible
from warpbots.solvers.mpm.moving_obstacles import adj_moving_contact, moving_contact
from warpbots.solvers.mpm.particle_forces import adj_force_kernel, force_kernel
from warpbots.solvers.mpm.retained_motion import add_residual, adj_residual, find_residual, without_residual
from warpbots.solvers.mpm.shared_grid import PARTS, planes_kernel
from warpbots.solvers.mpm.transfer import move_kernel, p2g_kernel
from warpbots.solvers.mpm.transfer_adjoint import adj_move_kernel, adj_p2g_kernel
from warpbots.solvers.mpm.workspace import Gathered

__all__ = [
    "NodeImpulses", "adj_free_velocities", "adj_gather", "clear", "free_velocities", "gather", "grid_threads", "step",
    "step_adjoint",
]  # fmt: skip


class NodeImpulses(Protocol):
    """Impulses on grid nodes from outside the solver in one step, such as those of rigid bodies."""

    def apply(self, gathered: Gathered) -> None:
        """Add the impulses to the momentum of the nodes, which includes all forces except gravity."""

    def apply_again(self, gathered: Gathered) -> None:
        """Add the same impulses as `apply` in this step, after the grid was filled again for the adjoint."""

    def adjoint(self, gathered: Gathered, momentum_adj: wp.array) -> None:
        """Replace the gradient by momentum and mass after the impulses by the gradient before the impulses."""


def step(
    model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float,
    impulses: NodeImpulses | None = None,
) -> None:  # fmt: skip
    """Advance by `dt` [s]; see `MPM.step`. `impulses` act on the nodes, if there are any."""
    gathered, velocity = model.workspace.gathered(state_out), model.workspace.velocity
    model.frames.place(model.frame_state(state, control), dt, 0.0)
    gather(model, state, control, gathered, dt)
    if impulses is not None:
        impulses.apply(gathered)
    _find_residual(model, state, gathered)
    _move_grid(model, state, gathered, dt)
    inputs = [model.geometry, state.motion, velocity, real(dt)]
    launch_slices(move_kernel(model.dim), state.position.size, inputs, [state_out.motion], model.device)
    flow(model, state, state_out, dt)
    for c in model.constraints:
        (hold_particles if c.frame < 0 else carry_particles)(model, c, state, state_out, dt)
    if model.fluid is not None:
        add_residual(model, state_out.motion, dt)
    if len(model.frames):
        _advance_frames(model, state, control, state_out, dt)


def step_adjoint(
    model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float,
    impulses: NodeImpulses | None = None,
) -> None:  # fmt: skip
    """Adjoint of `step`, from the gradients of `state_out`.

    The grid is filled again if the step did not keep it.
    """
    workspace, frame_state = model.workspace, model.frame_state(state, control)
    gathered = workspace.gathered(state_out)
    if len(model.frames):
        model.frames.clear_gradients()
        model.frames.place(frame_state, dt, 0.0)
        model.frames.adj_advance(frame_state, dt, state_out.travel)
        model.frames.adj_advance_time(frame_state, dt, state_out.time)
    if workspace.keeps(state_out):
        _load_particles(model, state, control)
    else:
        gather(model, state, control, gathered, dt)
        if impulses is not None:
            impulses.apply_again(gathered)
    moved = _adj_residual(model, state, state_out, gathered, dt)
    _move_grid(model, state, gathered, dt)
    clear(model, gathered.active, workspace.velocity_adj)
    clear(model, gathered.active, workspace.momentum_adj)
    moved_adj = adj_flow(model, state, moved, dt)
    _divide_planes(model, state)
    launch_slices(
        adj_move_kernel(model.dim), state.position.size,
        [model.geometry, state.motion, moved.motion, workspace.velocity, moved_adj, workspace.planes, real(dt)],
        [state.motion_adj, workspace.velocity_adj], model.device,
        Targets(adj_move_kernel(model.dim, shared=True), PARTS),
    )  # fmt: skip
    for c in model.constraints:
        (adj_hold_particles if c.frame < 0 else adj_carry_particles)(model, c, state, moved, moved_adj, dt)
    _adj_constrain(model, gathered)
    if len(model.moving):
        adj_moving_contact(model, gathered, grid_threads(model), dt)
    adj_free_velocities(model, gathered, dt)
    if impulses is not None:
        impulses.adjoint(gathered, workspace.momentum_adj)
    adj_gather(model, state, control, dt)
    model.frames.adj_place(frame_state, dt, 0.0)


def gather(model: MPMModel, state: MPMState, control: wp.array, gathered: Gathered, dt: float) -> None:
    """Transfer mass and momentum of the particles to the grid, and add the impulses of forces over `dt` [s].

    All forces except gravity are included.
    """
    _load_particles(model, state, control)
    clear(model, gathered.active, gathered.momentum)
    gathered.active.zero_()
    _divide_planes(model, state)
    for group in model.groups:
        kind = model.kind(group)
        launch_slices(
            p2g_kernel(kind), len(group.rows),
            [
                model.material, model.actuation, model.geometry, group.range, state.motion, model.added_stress, control,
                model.workspace.planes, real(dt),
            ],
            [gathered.active, gathered.momentum], model.device, Targets(p2g_kernel(kind, shared=True), PARTS),
        )  # fmt: skip
    for particle, force in _forces(model):
        inputs = [particle, model.geometry, state.motion, force, real(dt)]
        launch(force_kernel(model.dim), force.shape, inputs, [gathered.momentum], model.device)


def _divide_planes(model: MPMModel, state: MPMState) -> None:
    """Divide the grid by the places of the particles, if threads are to share it."""
    if shared(state.position.size):
        work = model.workspace
        outputs = [work.particles_of_plane, work.planes]
        launch(planes_kernel(model.dim), 1, [model.geometry, state.motion], outputs, model.device)


def adj_gather(model: MPMModel, state: MPMState, control: wp.array, dt: float) -> None:
    """Adjoint of `gather`, from the gradient of the grid momentum in the workspace."""
    workspace, copies = model.workspace, model.workspace.signal_copies
    if workspace.n_cables:
        clear_gradients([workspace.cables.force, workspace.cables.tension, workspace.cables.length])
    for particle, force in _forces(model):
        launch(
            adj_force_kernel(model.dim), force.shape,
            [particle, model.geometry, state.motion, force, workspace.momentum_adj, real(dt)],
            [state.motion_adj, force.grad], model.device,
        )  # fmt: skip
    if workspace.n_cables:
        steps = cable_launches(model.cables, workspace.cables, control, state.position)
        launch_adjoints(steps, cable_adjoints(workspace.cables, control.grad, state.position.grad), model.device)
    control_adj = copies.gradient("control", control)
    clear_load_gradients(model)
    for group in model.groups:
        chunk = 1 if parallel(model.device) else chunk_length(group.count)
        launch_slices(
            adj_p2g_kernel(model.kind(group)), len(group.rows),
            [
                model.material, model.actuation, model.geometry, group.range, state.motion, model.added_stress, control,
                workspace.momentum_adj, real(dt), copies.count, chunk,
            ],
            [state.motion_adj, model.material_adj, model.added_stress_adj, control_adj], model.device,
            alone=control_adj is not None and model.worlds > 1,
        )  # fmt: skip
    adj_load_constituents(model, state)
    copies.collect("control", control)


def clear(model: MPMModel, active: wp.array, values: wp.array) -> None:
    """Set `values` to zero at the nodes of the active pencils."""
    threads = grid_threads(model)
    launch_slices(clear_kernel(), threads, [model.grid.resolution[-1], threads[1], active], [values], model.device)


def grid_threads(model: MPMModel) -> tuple[int, int]:
    """Number of pencils, and number of threads for each pencil: one thread for each node on a GPU, one on a CPU."""
    return model.workspace.pencils, model.grid.resolution[-1] if parallel(model.device) else 1


def _find_residual(model: MPMModel, state: MPMState, gathered: Gathered) -> None:
    """Compute the part of the motion of fluids that the grid does not resolve, and store it in the workspace."""
    if model.fluid is not None:
        clear(model, gathered.active, model.workspace.retained.momentum)
        find_residual(model, state, gathered.active, grid_threads(model))


def _adj_residual(model: MPMModel, state: MPMState, state_out: MPMState, gathered: Gathered, dt: float) -> MPMState:
    """Add the gradients through the retained residual of fluids; returns the state before the residual was added."""
    if model.fluid is None:
        return state_out
    _find_residual(model, state, gathered)
    clear(model, gathered.active, model.workspace.velocity_adj)
    clear(model, gathered.active, model.workspace.momentum_adj)
    adj_residual(model, state, state_out.motion_adj, gathered, grid_threads(model), dt)
    return without_residual(model, state_out, dt)


def _load_particles(model: MPMModel, state: MPMState, control: wp.array) -> None:
    """Compute the stress of fibres and branches, and the forces of the cables at their waypoints."""
    load_constituents(model, state)
    if model.workspace.n_cables:
        work = model.workspace.cables
        work.length.zero_()
        launch_all(cable_launches(model.cables, work, control, state.position), model.device)


def _forces(model: MPMModel) -> list[tuple[wp.array, wp.array]]:
    """Forces of cables, and forces of loads: each as the indices of the particles in a world, and the forces [N]."""
    cables = [(model.cables.particle, model.workspace.cables.force)] if model.workspace.n_cables else []
    return cables + ([(model.workspace.every_particle, model.load)] if model.loaded else [])


def _advance_frames(model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float) -> None:
    """Write the time and the coordinates of drives after a step; time becomes NaN in worlds that cannot go on."""
    frame_state = model.frame_state(state, control)
    model.frames.advance(frame_state, dt, state_out.travel)
    model.frames.advance_time(frame_state, dt, state_out.time)
    model.frames.end_runs(dt, state_out.time)
    if len(model.moving):
        stop_impossible(model, state, state_out.time, dt)


def _move_grid(model: MPMModel, state: MPMState, gathered: Gathered, dt: float) -> None:
    """Compute the velocity of the grid from its momentum and mass."""
    free_velocities(model, gathered, dt)
    if len(model.moving):
        moving_contact(model, gathered, grid_threads(model), dt)
    for c in model.constraints:
        clear(model, gathered.active, c.share)
        share_nodes(model, c, state)
        if c.frame < 0:
            hold_nodes(model, c, gathered.active, model.workspace.velocity, grid_threads(model))
        else:
            carry_nodes(model, c, gathered.active, grid_threads(model))


def _adj_constrain(model: MPMModel, gathered: Gathered) -> None:
    """Replace the gradient of the velocities of nodes by the gradient of their velocities before constraints."""
    for c in reversed(model.constraints):
        if c.frame < 0:
            hold_nodes(model, c, gathered.active, model.workspace.velocity_adj, grid_threads(model))
        else:
            adj_carry_nodes(model, c, gathered.active, grid_threads(model))


def free_velocities(model: MPMModel, gathered: Gathered, dt: float) -> None:
    """Compute the velocities of nodes after gravity and contact with obstacles that do not move."""
    inputs = _grid_inputs(model, model.friction, model.gravity, 1, gathered, dt)
    launch_slices(grid_kernel(model.dim), grid_threads(model), inputs, [model.workspace.velocity], model.device)


def _grid_inputs(
    model: MPMModel, friction: wp.array, gravity: wp.array, copies: int, gathered: Gathered, dt: float
) -> list:
    sizes = [model.grid.resolution[-1], model.grid.pencils, grid_threads(model)[1], copies]
    return [*model.contacts.surfaces, friction, gravity, *sizes, gathered.active, gathered.momentum, real(dt)]


def adj_free_velocities(model: MPMModel, gathered: Gathered, dt: float) -> None:
    """Adjoint of `free_velocities`: gradients with respect to momentum and mass, friction and gravity."""
    work, shared = model.workspace, {"friction": model.friction, "gravity": model.gravity}
    copies = work.copies.wanted(*shared.values())
    values = [copies.values(name, array) for name, array in shared.items()]
    gradients = [copies.gradient(name, array) for name, array in shared.items()]
    launch_slices(
        grid_kernel(model.dim), grid_threads(model), _grid_inputs(model, *values, copies.count, gathered, dt),
        [work.velocity], model.device, alone=any(g is not None for g in gradients),
        gradients=([None] * 5 + gradients + [None] * 5 + [work.momentum_adj, None], [work.velocity_adj]),
    )  # fmt: skip
    for name, array in shared.items():
        copies.collect(name, array)
