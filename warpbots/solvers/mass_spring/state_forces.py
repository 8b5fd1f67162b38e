"""Rest lengths and forces at a state, computed as a stage of a step of length zero, and their adjoints."""

import warp as wp

from warpbots.numerics import NODE, launch, launch_slices, real
from warpbots.solvers.mass_spring.actuation import add_kernel
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.rest_lengths import add_plastic_strain, adj_add_plastic_strain, adj_drive, drive
from warpbots.solvers.mass_spring.stage_forces import add_forces, adj_add_forces
from warpbots.solvers.mass_spring.stages import adj_stage_kernel, stage_kernel

__all__ = ["adj_evaluate_forces", "adj_rest_at", "clear_stage_gradients", "evaluate_forces", "rest_at"]


def rest_at(model: MassSpringModel, state: MassSpringState, control: wp.array) -> None:
    """Compute spring constants from Young's moduli, and rest lengths from controls, time and plastic strains.

    The results are written to the workspace of the model.
    """
    if model.scaled:
        model.scaled.fill()
    if model.driven:
        drive(model, state, control, 0.0)
    if model.inelastic:
        add_plastic_strain(model, state)


def evaluate_forces(model: MassSpringModel, state: MassSpringState, control: wp.array) -> wp.array:
    """Forces on the masses without obstacles and constraints [N], shape (worlds * n_masses,).

    Call `rest_at` first: the function reads the rest lengths from the workspace.
    """
    work = model.workspace.stage
    force = work.scratch[: model.all_masses]
    inputs = [*_masses(model, model.load), len(model.lattice), *_NO_STEP, *state.motion(), force]
    launch_slices(stage_kernel(model.dim, 0), model.all_masses, inputs, [work.x, work.v, force], model.device)
    add_forces(model, control, state, force)
    return force


def clear_stage_gradients(model: MassSpringModel) -> wp.array:
    """Clear all gradients of the stage in the workspace.

    Returns:
        The cleared gradient with respect to the forces of the stage, shape (worlds * n_masses,).
    """
    work, rest_length = model.workspace.stage, model.workspace.rest_length
    force_adj = work.force_adj[: model.all_masses]
    cleared = [work.x_adj, work.v_adj, force_adj]
    if model.driven:
        cleared.append(rest_length.driven.grad)
    if model.inelastic:
        cleared += [rest_length.plastic.grad, rest_length.strain_adj, rest_length.broken_adj]
    for array in cleared:
        array.zero_()
    if model.scaled:
        model.scaled.clear_gradients()
    return force_adj


def adj_evaluate_forces(
    model: MassSpringModel, state: MassSpringState, control: wp.array, force: wp.array, force_adj: wp.array
) -> None:
    """Adjoint of `evaluate_forces`: add to the gradients of the state, the control, the model and the rest lengths.

    `force_adj` is the gradient with respect to the forces.
    """
    work, copies = model.workspace.stage, model.workspace.copies
    adj_add_forces(model, control, state, force_adj)
    if model.inelastic:
        broken = model.workspace.rest_length.broken_adj
        launch(add_kernel(), broken.shape, [broken], [state.broken.grad], model.device)
    mass_adj, drag_adj, load_adj = (
        None if a.grad is None else a.grad.flatten() for a in (model.mass, model.drag, model.load)
    )
    gravity_adj = copies.gradient("gravity", model.gravity)
    launch_slices(
        adj_stage_kernel(model.dim, 0), model.all_masses,
        [*_masses(model), len(model.lattice), copies.count, *_NO_STEP, work.v, force, work.x_adj, work.v_adj],
        [mass_adj, drag_adj, load_adj, gravity_adj, *state.motion_adj(), force_adj], model.device,
        alone=gravity_adj is not None,
    )  # fmt: skip
    copies.collect("gravity", model.gravity)


def adj_rest_at(model: MassSpringModel, state: MassSpringState, control: wp.array) -> None:
    """Adjoint of `rest_at`: add to the gradients of the state, the control and the model.

    The function starts from the gradients of the spring constants and rest lengths in the workspace.
    """
    if model.inelastic:
        adj_add_plastic_strain(model, state)
        strain = model.workspace.rest_length.strain_adj
        launch(add_kernel(), strain.shape, [strain], [state.plastic.grad], model.device)
    if model.driven:
        adj_drive(model, state, control, 0.0)
    if model.scaled:
        model.scaled.adjoint()


_NO_STEP = (real(0.0), NODE(), NODE())
"""Drift and weights of a stage at the start of its step."""


def _masses(model: MassSpringModel, *more: wp.array) -> list[wp.array]:
    """Inputs of a stage kernel in its order: mass, drag, the arrays `more` and gravity, flattened over all worlds."""
    return [a.flatten() for a in (model.mass, model.drag, *more, model.gravity)]
