"""Launches whose adjoints a solver orchestrates itself, and the structs that go into them."""

from collections.abc import Iterable, Sequence

import warp as wp

__all__ = [
    "Launch",
    "clear_gradients",
    "launch",
    "launch_adjoint",
    "launch_adjoints",
    "launch_all",
    "launch_own_adjoint",
    "struct_of",
]

Launch = tuple[wp.Kernel, int | tuple, list, list]
"""A kernel, its size, its inputs and its outputs."""


def launch(
    kernel: wp.Kernel,
    dim: int | tuple,
    inputs: list,
    outputs: list,
    device: wp.Device,
    block_dim: int | None = None,
) -> None:
    """Launch a kernel; nothing of it goes to the tape. Threads wait for one another in blocks of `block_dim`."""
    wp.launch(kernel, dim, inputs, outputs, device=device, record_tape=False, block_dim=block_dim)


def launch_adjoint(
    kernel: wp.Kernel,
    dim: int | tuple,
    inputs: list,
    outputs: list,
    adj_inputs: list,
    adj_outputs: list,
    device: wp.Device,
) -> None:
    """Launch the adjoint that Warp generated for a kernel: gradients of inputs from those of outputs."""
    wp.launch(
        kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device=device, adjoint=True, record_tape=False
    )  # fmt: skip


def launch_own_adjoint(kernel: wp.Kernel, dim: int | tuple, inputs: list, device: wp.Device) -> None:
    """`launch_adjoint` of a kernel whose arrays, those in structs among them, own their gradients."""
    launch_adjoint(kernel, dim, inputs, [], [_gradient_of(a) for a in inputs], [], device)


def _gradient_of(argument: object) -> object:
    """What goes beside an argument in an adjoint: the gradient of an array, a struct of gradients, or nothing."""
    if isinstance(argument, wp.array):
        return argument.grad
    if not hasattr(argument, "_cls"):
        return None
    gradient = argument._cls()
    for name in argument._cls.vars:
        value = getattr(argument, name)
        own = _gradient_of(value)
        if own is not None:
            setattr(gradient, name, own)
    return gradient


def launch_all(steps: Sequence[Launch], device: wp.Device) -> None:
    """`launch` one after the other."""
    for kernel, dim, inputs, outputs in steps:
        launch(kernel, dim, inputs, outputs, device)


def launch_adjoints(steps: Sequence[Launch], adjoints: Sequence[tuple[list, list]], device: wp.Device) -> None:
    """`launch_adjoint` of `steps` backwards, each with the gradients of its inputs and outputs from `adjoints`."""
    for (kernel, dim, inputs, outputs), (adj_inputs, adj_outputs) in reversed(list(zip(steps, adjoints, strict=True))):
        launch_adjoint(kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device)


def clear_gradients(arrays: Iterable[wp.array]) -> None:
    """Gradients of `arrays` to zero."""
    for array in arrays:
        array.grad.zero_()


def struct_of(cls: type, arrays: Sequence[wp.array | None]) -> object:
    """A Warp struct with its fields set in order, all worlds in one row; a missing array stays null."""
    struct = cls()
    for name, array in zip(cls.vars, arrays, strict=True):
        if array is not None:
            setattr(struct, name, array.flatten())
    return struct
