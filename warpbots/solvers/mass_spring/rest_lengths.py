"""Lengths at rest at a stage of a step, from controls, time and wear, and what their gradient is worth."""

import warp as wp

from warpbots.numerics import copy, launch, launch_adjoint, real
from warpbots.solvers.mass_spring.actuation import (
    adj_rest_kernel,
    drive_arrays,
    pass_kernel,
    rest_kernel,
    signal_kernel,
)
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.plasticity import deform_kernel, wear_arrays, wear_kernel

__all__ = ["drive", "drive_adjoint", "wear", "wear_adjoint", "worn", "worn_adjoint"]


def drive(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> None:
    """Lengths at rest under the signals `ahead` [s] of `state`, into ``model.scratch.rest_length``."""
    scratch, device = model.scratch, model.device
    launch(
        signal_kernel(), scratch.signal.shape, _signal_inputs(model, state, control, ahead), [scratch.signal], device
    )
    copy(scratch.rest_length, model.rest_length)
    inputs = [model.drive, model.rest_length, scratch.signal]
    launch(rest_kernel(), (model.worlds, model.drive.spring.size), inputs, [scratch.rest_length], device)


def drive_adjoint(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> None:
    """From the gradient of ``model.scratch.rest_length`` to those of controls, time and the model."""
    scratch, device = model.scratch, model.device
    scratch.signal.grad.zero_()
    copies = scratch.copies
    if model.rest_length.grad is not None:
        launch(pass_kernel(), model.rest_length.shape, [scratch.rest_length.grad], [model.rest_length.grad], device)
    launch(
        adj_rest_kernel(), (model.worlds, model.drive.spring.size),
        [model.drive, model.rest_length, scratch.signal, scratch.rest_length.grad, copies.count],
        [model.rest_length.grad, copies.gradient("signal", scratch.signal)], device,
    )  # fmt: skip
    copies.collect("signal", scratch.signal)
    launch_adjoint(
        signal_kernel(), scratch.signal.shape, _signal_inputs(model, state, control, ahead), [scratch.signal],
        [
            drive_arrays()(), model.amplitude.grad, model.frequency.grad, model.phase.grad, control.grad,
            state.time.grad, None,
        ],
        [scratch.signal.grad], device,
    )  # fmt: skip


def _signal_inputs(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> list:
    return [model.drive, model.amplitude, model.frequency, model.phase, control, state.time, real(ahead)]


def wear(model: MassSpringModel, state: MassSpringState, state_out: MassSpringState) -> None:
    """Which springs set and break where the first stage stands, into `state_out`."""
    outputs = [state_out.plastic, state_out.broken]
    launch(wear_kernel(), model.rest_length.shape, _wear_inputs(model, state), outputs, model.device)


def wear_adjoint(model: MassSpringModel, state: MassSpringState, state_out: MassSpringState) -> None:
    """From the gradients of plastic strains and broken springs to those of a stage, the state and the model."""
    scratch = model.scratch
    launch_adjoint(
        wear_kernel(), model.rest_length.shape, _wear_inputs(model, state), [state_out.plastic, state_out.broken],
        [
            wear_arrays()(), model.rest_length.grad, model.yield_strain.grad, scratch.x_adj, _unworn(model).grad,
            state.plastic.grad, state.broken.grad,
        ],
        [scratch.plastic_adj, scratch.broken_adj], model.device,
    )  # fmt: skip


def _wear_inputs(model: MassSpringModel, state: MassSpringState) -> list:
    limits = [model.wear, model.rest_length, model.yield_strain]
    return [*limits, model.scratch.x, _unworn(model), state.plastic, state.broken]


def worn(model: MassSpringModel, state_out: MassSpringState) -> None:
    """Lengths at rest of springs that have set, into ``model.scratch.worn_length``."""
    inputs = [model.rest_length, _unworn(model), state_out.plastic]
    launch(deform_kernel(), model.rest_length.shape, inputs, [model.scratch.worn_length], model.device)


def worn_adjoint(model: MassSpringModel, state_out: MassSpringState) -> None:
    """From the gradient of ``model.scratch.worn_length`` to those of plastic strains and lengths without them."""
    scratch = model.scratch
    launch_adjoint(
        deform_kernel(), model.rest_length.shape,
        [model.rest_length, _unworn(model), state_out.plastic], [scratch.worn_length],
        [model.rest_length.grad, _unworn(model).grad, scratch.plastic_adj], [scratch.worn_length.grad], model.device,
    )  # fmt: skip


def _unworn(model: MassSpringModel) -> wp.array:
    """Lengths at rest without wear."""
    return model.scratch.rest_length if model.driven else model.rest_length
