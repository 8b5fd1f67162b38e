"""Forces and torques of matter on obstacles and constraints, in a step of `MPMModel.contact_interval` from a state."""

import warp as wp

from warpbots.solvers.mpm.constraint_forces import adj_hold, hold
from warpbots.solvers.mpm.contact_forces import adj_press, press
from warpbots.solvers.mpm.explicit_step import (
    NodeImpulses,
    adj_free_velocities,
    adj_gather,
    clear,
    free_velocities,
    gather,
    grid_threads,
)
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.moving_obstacles import moving_contact

__all__ = ["adj_support", "support"]

Wrenches = tuple[wp.array, wp.array]
"""Forces [N] and torques about the origin [N m]."""


def support(
    model: MPMModel, state: MPMState, control: wp.array, contact: Wrenches, constraint: Wrenches,
    impulses: NodeImpulses | None = None,
) -> None:  # fmt: skip
    """Write the wrenches of matter on obstacles and constraints.

    Args:
        model: The model.
        state: State to measure.
        control: Control signals, shape (worlds, channels).
        contact: Forces and torques on obstacles, shape (worlds, n_obstacles).
        constraint: Forces and torques on constraints, shape (worlds, n_constraints).
        impulses: Impulses on the nodes from outside, before obstacles act; None if there are none.
    """
    work, dt = model.workspace, model.contact_interval
    gather(model, state, control, work.measured, dt)
    if impulses is not None:
        impulses.apply(work.measured)
    if _changes_velocities(model):
        model.frames.place(model.frame_state(state, control), dt, 0.0)
        free_velocities(model, work.measured, dt)
    if model.scene.obstacles:
        press(model, *contact)
    if model.constraints:
        hold(model, state, dt, *constraint)


def adj_support(
    model: MPMModel, state: MPMState, control: wp.array, contact: Wrenches, constraint: Wrenches,
    impulses: NodeImpulses | None = None,
) -> None:  # fmt: skip
    """Adjoint of `support`: adds the gradients with respect to its inputs, from the gradients of its outputs."""
    work, dt, frame_state = model.workspace, model.contact_interval, model.frame_state(state, control)
    gather(model, state, control, work.measured, dt)
    if impulses is not None:
        impulses.apply(work.measured)
    clear(model, work.measured.active, work.momentum_adj)
    if _changes_velocities(model):
        model.frames.clear_gradients()
        model.frames.place(frame_state, dt, 0.0)
        free_velocities(model, work.measured, dt)
        clear(model, work.measured.active, work.velocity_adj)
    if len(model.moving):
        moving_contact(model, work.measured, grid_threads(model), dt)
    if model.constraints:
        hold(model, state, dt, *constraint)
        adj_hold(model, state, dt, *constraint)
    if model.scene.obstacles:
        adj_press(model, *contact)
    if _changes_velocities(model):
        adj_free_velocities(model, work.measured, dt)
        model.frames.adj_place(frame_state, dt, 0.0)
    if impulses is not None:
        impulses.adjoint(work.measured, work.momentum_adj)
    adj_gather(model, state, control, dt)


def _changes_velocities(model: MPMModel) -> bool:
    """Whether wrenches need the velocities of nodes, not only their momentum."""
    return len(model.moving) > 0 or len(model.constraints) > 0
