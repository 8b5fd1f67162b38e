"""Rest lengths at a stage of a step, from controls, time and plastic strains, and their adjoints."""

import warp as wp

from warpbots.numerics import copy, launch, launch_adjoint, real
from warpbots.solvers.mass_spring.actuation import (
    add_kernel,
    adj_rest_length_kernel,
    drive_arrays,
    rest_length_kernel,
    signal_kernel,
)
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.plasticity import fracture_arrays, plastic_length_kernel, yield_kernel

__all__ = [
    "add_plastic_strain",
    "adj_add_plastic_strain",
    "adj_drive",
    "adj_yield_and_break",
    "drive",
    "yield_and_break",
]


def drive(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> None:
    """Write the rest lengths that follow from the signals to ``model.workspace.rest_length.driven``.

    The signals are evaluated at the time `ahead` [s] after the time of `state`.
    """
    work, device = model.workspace.rest_length, model.device
    inputs = _signal_inputs(model, state, control, ahead)
    launch(signal_kernel(), work.signal.shape, inputs, [work.signal], device)
    copy(work.driven, model.rest_length)
    inputs = [model.drive, model.rest_length, _ratio(model), work.signal]
    launch(rest_length_kernel(), (model.worlds, model.drive.spring.size), inputs, [work.driven], device)


def adj_drive(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> None:
    """Adjoint of `drive`: add to the gradients with respect to the control, the time and the model."""
    work, copies, device, ratio = model.workspace.rest_length, model.workspace.copies, model.device, _ratio(model)
    work.signal.grad.zero_()
    if model.rest_length.grad is not None:
        launch(add_kernel(), model.rest_length.shape, [work.driven.grad], [model.rest_length.grad], device)
    launch(
        adj_rest_length_kernel(), (model.worlds, model.drive.spring.size),
        [model.drive, model.rest_length, ratio, copies.count, work.signal, work.driven.grad],
        [model.rest_length.grad, None if ratio is None else ratio.grad, copies.gradient("signal", work.signal)], device,
    )  # fmt: skip
    copies.collect("signal", work.signal)
    launch_adjoint(
        signal_kernel(), work.signal.shape, _signal_inputs(model, state, control, ahead), [work.signal],
        [
            drive_arrays()(), model.amplitude.grad, model.frequency.grad, model.phase.grad, control.grad,
            state.time.grad, None,
        ],
        [work.signal.grad], device,
    )  # fmt: skip


def _ratio(model: MassSpringModel) -> wp.array | None:
    """Ratio of the new Young's moduli to the moduli of the scene, or None if the moduli were not replaced."""
    return None if model.scaled is None else model.scaled.ratio


def _signal_inputs(model: MassSpringModel, state: MassSpringState, control: wp.array, ahead: float) -> list:
    return [model.drive, model.amplitude, model.frequency, model.phase, control, state.time, real(ahead)]


def yield_and_break(model: MassSpringModel, state: MassSpringState, state_out: MassSpringState) -> None:
    """Write the plastic strains and the broken springs that follow from the first stage to `state_out`."""
    outputs = [state_out.plastic, state_out.broken]
    launch(yield_kernel(), model.rest_length.shape, _yield_inputs(model, state), outputs, model.device)


def adj_yield_and_break(model: MassSpringModel, state: MassSpringState, state_out: MassSpringState) -> None:
    """Adjoint of `yield_and_break`: add to the gradients of the first stage, of the state and of the model."""
    work = model.workspace
    launch_adjoint(
        yield_kernel(), model.rest_length.shape, _yield_inputs(model, state), [state_out.plastic, state_out.broken],
        [
            fracture_arrays()(), model.rest_length.grad, model.yield_strain.grad, work.stage.x_adj,
            model.elastic_length.grad, state.plastic.grad, state.broken.grad,
        ],
        [work.rest_length.strain_adj, work.rest_length.broken_adj], model.device,
    )  # fmt: skip


def _yield_inputs(model: MassSpringModel, state: MassSpringState) -> list:
    constants = [model.fracture, model.rest_length, model.yield_strain]
    return [*constants, model.workspace.stage.x, model.elastic_length, state.plastic, state.broken]


def add_plastic_strain(model: MassSpringModel, state_out: MassSpringState) -> None:
    """Write the rest lengths that include the plastic strains to ``model.workspace.rest_length.plastic``."""
    inputs = [model.rest_length, model.elastic_length, state_out.plastic]
    outputs = [model.workspace.rest_length.plastic]
    launch(plastic_length_kernel(), model.rest_length.shape, inputs, outputs, model.device)


def adj_add_plastic_strain(model: MassSpringModel, state_out: MassSpringState) -> None:
    """Adjoint of `add_plastic_strain`: add to the gradients of the plastic strains and of the elastic rest lengths."""
    work = model.workspace.rest_length
    launch_adjoint(
        plastic_length_kernel(), model.rest_length.shape,
        [model.rest_length, model.elastic_length, state_out.plastic], [work.plastic],
        [model.rest_length.grad, model.elastic_length.grad, work.strain_adj], [work.plastic.grad], model.device,
    )  # fmt: skip
