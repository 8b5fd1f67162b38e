"""Launches whose adjoints a solver orchestrates itself, and the structs that go into them."""

from collections.abc import Sequence

import warp as wp

__all__ = ["launch", "launch_adjoint", "struct_of"]


def launch(kernel: wp.Kernel, dim: int | tuple, inputs: list, outputs: list, device: wp.Device) -> None:
    """Launch a kernel; nothing of it goes to the tape."""
    wp.launch(kernel, dim, inputs, outputs, device=device, record_tape=False)


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


def struct_of(cls: type, arrays: Sequence[wp.array | None]) -> object:
    """A Warp struct with its fields set in order, all worlds in one row; a missing array stays null."""
    struct = cls()
    for name, array in zip(cls.vars, arrays, strict=True):
        if array is not None:
            setattr(struct, name, array.flatten())
    return struct
