"""Forces on the masses at a stage: springs, self-contact, motors, cables and constraints.

Weight, load and drag are computed in `stages`.
"""

import warp as wp

from warpbots.numerics import Edges, launch, launch_slices
from warpbots.solvers.mass_spring.cable_forces import add_cable_forces, adj_cable_forces
from warpbots.solvers.mass_spring.constraints import project_forces_kernel
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.motor_forces import add_motor_forces, adj_motor_forces
from warpbots.solvers.mass_spring.self_contact import adj_contact_kernel, contact_kernel, point_kernel
from warpbots.solvers.mass_spring.springs import adj_pull_kernel, pull_kernel

__all__ = ["add_forces", "adj_add_forces", "project_forces", "refuse_captured_grid"]


def add_forces(model: MassSpringModel, control: wp.array, state_out: MassSpringState, force: wp.array) -> None:
    """Add the forces at the positions and velocities of ``model.workspace.stage``; constraints are not applied.

    Args:
        model: The model.
        control: Control signals, shape (worlds, channels).
        state_out: State at the end of the step; the function reads its broken springs.
        force: Forces of the stage to add to [N], shape (worlds * n_masses,).
    """
    work, stage = model.workspace, model.workspace.stage
    inputs = [model.rows, model.springs, stage.x, stage.v, state_out.broken.flatten()]
    kind = (model.damped, model.gather, model.inelastic)
    edges = Edges(pull_kernel(*kind, edge=True), model.edges)
    launch_slices(pull_kernel(*kind), model.all_masses, inputs, [force], model.device, edges)
    if model.self_contact:
        launch(contact_kernel(), model.all_masses, _near(model), [force], model.device)
    if model.torque.size:
        add_motor_forces(model.motors, work.motors, _of_motors(model), control, stage.x, stage.v, force)
    if model.cables.stiffness.size:
        add_cable_forces(model.cables, work.cables, control, stage.x, force)


def adj_add_forces(model: MassSpringModel, control: wp.array, state_out: MassSpringState, force_adj: wp.array) -> None:
    """Adjoint of `add_forces`: add to the gradients of the stage, the rest lengths, the controls and the model.

    Args:
        model: The model.
        control: Control signals, shape (worlds, channels).
        state_out: State at the end of the step; the function reads its broken springs.
        force_adj: Gradient with respect to the forces of the stage, shape (worlds * n_masses,).
    """
    work, stage = model.workspace, model.workspace.stage
    constants = any(a.grad is not None for a in (*model.constants, model.length))
    kind = (model.damped, model.gather, model.inelastic, constants)
    edges = Edges(adj_pull_kernel(*kind, edge=True), model.edges)
    inputs = [model.rows, model.springs, stage.x, stage.v, state_out.broken.flatten(), force_adj]
    broken_adj = work.rest_length.broken_adj.flatten() if model.inelastic else None
    outputs = [model.springs_adj(), broken_adj, stage.x_adj, stage.v_adj]
    launch_slices(adj_pull_kernel(*kind), model.all_masses, inputs, outputs, model.device, edges)
    if model.self_contact:
        launch(adj_contact_kernel(), model.all_masses, [*_near(model), force_adj], [stage.x_adj], model.device)
    if model.torque.size:
        motion = [stage.x, stage.v, stage.x_adj, stage.v_adj]
        adj_motor_forces(model.motors, work.motors, _of_motors(model), control, *motion, force_adj)
    if model.cables.stiffness.size:
        adj_cable_forces(model.cables, work.cables, control, stage.x, stage.x_adj, force_adj)


def project_forces(model: MassSpringModel, force: wp.array) -> None:
    """Project forces of a stage, or a gradient with respect to them, onto the constraints, in place.

    The projection removes the components along which a constraint allows no motion; it is its own adjoint.
    """
    held = model.held_at_stages
    if held.size:
        inputs = [held, model.freedom, model.direction]
        launch(project_forces_kernel(model.dim), (model.worlds, held.size), inputs, [force], model.device)


def _near(model: MassSpringModel) -> list:
    """Build the hash grid for the positions of the stage, and return the inputs of the kernels of self-contact."""
    stage = model.workspace.stage
    launch(point_kernel(), model.all_masses, [stage.x], [stage.point], model.device)
    refuse_captured_grid(model.device)
    stage.grid.build(stage.point, model.reach)
    masses = [model.radius, model.collision, len(model.lattice)]
    return [*masses, model.reach, stage.grid.id, stage.point, stage.x]


def refuse_captured_grid(device: wp.Device) -> None:
    """Raise an error if a CUDA graph is being captured; the step then runs without a graph.

    A graph cannot contain a hash grid. Warp copies the description of a grid to the device from a host buffer that all
    grids share (``hash_grid_update_device_impl``). A graph reads this buffer when it is replayed, and by then another
    simulation may have written the description of another grid to the buffer.

    Raises:
        RuntimeError: `device` is a GPU that is capturing.
    """
    if device.is_cuda and device.is_capturing:
        raise RuntimeError("a hash grid, by which masses in contact are detected, cannot be part of a graph")


def _of_motors(model: MassSpringModel) -> list[wp.array]:
    return [model.mass, model.torque, model.speed]
