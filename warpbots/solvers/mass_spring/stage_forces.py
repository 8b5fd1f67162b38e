"""Forces on the masses at a stage besides weight, load and drag: springs, collisions, motors, cables, constraints."""

import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.mass_spring.cable_forces import adj_draw, draw
from warpbots.solvers.mass_spring.constraints import restrain_kernel
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.motors import adj_turn, turn
from warpbots.solvers.mass_spring.self_collision import adj_collide_kernel, collide_kernel, point_kernel
from warpbots.solvers.mass_spring.springs import adj_pull_kernel, pull_kernel

__all__ = ["add_forces", "adj_forces", "refuse_captured_grid"]


def add_forces(model: MassSpringModel, control: wp.array, state_out: MassSpringState, force: wp.array) -> None:
    """Add all forces where ``model.scratch.x`` and ``model.scratch.v`` are, and restrict the sum by the constraints.

    Args:
        model: What moves.
        control: Control signals, shape (worlds, channels).
        state_out: Knows which springs are broken.
        force: Forces of the stage [N], shape (worlds * n_masses,).
    """
    scratch = model.scratch
    inputs = [model.rows, model.springs, scratch.x, scratch.v, state_out.broken.flatten()]
    kernel = pull_kernel(model.damped, model.gather, model.wears)
    launch(kernel, scratch.masses, inputs, [force], model.device)
    if model.collides:
        launch(collide_kernel(), scratch.masses, _near(model), [force], model.device)
    if model.torque.size:
        turn(model.motors, scratch.motors, _of_motors(model), control, scratch.x, scratch.v, force)
    if scratch.cable_count:
        draw(model.cables, scratch.cables, control, scratch.x, force)
    _restrain(model, force)


def adj_forces(model: MassSpringModel, control: wp.array, state_out: MassSpringState, force_adj: wp.array) -> None:
    """Add to the gradients of ``model.scratch.x`` and ``model.scratch.v``, of lengths, controls and the model.

    Args:
        model: What moves.
        control: Control signals, shape (worlds, channels).
        state_out: Knows which springs are broken.
        force_adj: Gradient to the forces of the stage, shape (worlds * n_masses,); restricted by the constraints.
    """
    scratch = model.scratch
    _restrain(model, force_adj)
    constants = any(a.grad is not None for a in (model.stiffness, model.length, model.damping))
    kernel = adj_pull_kernel(model.damped, model.gather, model.wears, constants)
    inputs = [model.rows, model.springs, scratch.x, scratch.v, state_out.broken.flatten(), force_adj]
    broken_adj = scratch.broken_adj.flatten() if model.wears else None
    outputs = [model.springs_adj(), broken_adj, scratch.x_adj, scratch.v_adj]
    launch(kernel, scratch.masses, inputs, outputs, model.device)
    if model.collides:
        launch(adj_collide_kernel(), scratch.masses, [*_near(model), force_adj], [scratch.x_adj], model.device)
    if model.torque.size:
        moving = [scratch.x, scratch.v, scratch.x_adj, scratch.v_adj]
        adj_turn(model.motors, scratch.motors, _of_motors(model), control, *moving, force_adj)
    if scratch.cable_count:
        adj_draw(model.cables, scratch.cables, control, scratch.x, scratch.x_adj, force_adj)


def _restrain(model: MassSpringModel, force: wp.array) -> None:
    """What constraints leave of forces, or of the gradient to them."""
    if model.held.size:
        held = (model.worlds, model.held.size)
        launch(restrain_kernel(model.dim), held, model.constraints, [force], model.device)


def _near(model: MassSpringModel) -> list:
    """What collisions need to know, with the grid of neighbours as it is now."""
    scratch = model.scratch
    launch(point_kernel(), scratch.masses, [scratch.x], [scratch.point], model.device)
    refuse_captured_grid(model.device)
    scratch.grid.build(scratch.point, model.reach)
    masses = [model.radius, model.collision, len(model.lattice)]
    return [*masses, model.reach, scratch.grid.id, scratch.point, scratch.x]


def refuse_captured_grid(device: wp.Device) -> None:
    """Raise within a capture on a GPU: the graph would not know its own grid, and the step runs without one.

    Warp copies the description of a grid to the device from one place on the host that all grids share
    (``hash_grid_update_device_impl``). A graph reads that place when it is replayed, where another simulation may have
    left the description of its own.

    Raises:
        RuntimeError: `device` is a GPU that is capturing.
    """
    if device.is_cuda and device.is_capturing:
        raise RuntimeError("a hash grid, by which colliding masses are found, cannot be part of a graph")


def _of_motors(model: MassSpringModel) -> list[wp.array]:
    return [model.mass, model.torque, model.speed]
