"""Arrays of Warp as tensors of torch."""

import torch
import warp as wp

__all__ = ["tensor_of"]


def tensor_of(array: wp.array) -> torch.Tensor:
    """The tensor that shares the memory of an array, without its gradient.

    ``warp.to_torch`` views an array of a CPU through NumPy, and torch copies what comes from NumPy if the user has
    chosen another default device. The tensor would be a copy that nobody writes to, on a device whose pointers a CPU
    cannot read.
    """
    with torch.device(wp.device_to_torch(array.device)):
        return wp.to_torch(array, requires_grad=False)
