"""NumPy arrays on a device, in the type that kernels read."""

from collections.abc import Mapping

import numpy as np
import warp as wp

from warpbots.numerics import real
from warpbots.numerics.parameters import parameters_of

__all__ = ["device_array", "numpy_type", "shared", "tiled", "tiled_parameters"]


def numpy_type(dtype: type) -> type:
    """NumPy scalar type of a Warp scalar, vector, matrix or quaternion type."""
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    return np.int32 if scalar is int else wp.dtype_to_numpy(scalar)


def device_array(values: object, device: wp.Device, dtype: type = real, requires_grad: bool = False) -> wp.array:
    """An array of `dtype` from any values that NumPy can read as an array.

    Args:
        values: Values, shape (...,) followed by the shape of `dtype`.
        device: Device of the array.
        dtype: Warp type of an entry.
        requires_grad: Whether the array has a gradient.
    """
    values = np.asarray(values, dtype=numpy_type(dtype))
    return wp.array(values, dtype=dtype, device=device, requires_grad=requires_grad)


def tiled(values: object, worlds: int, device: wp.Device, dtype: type = real, requires_grad: bool = False) -> wp.array:
    """`device_array` of `values` repeated along a new first axis, once for each world."""
    values = np.asarray(values, dtype=numpy_type(dtype))
    return device_array(np.tile(values, (worlds, *(1,) * values.ndim)), device, dtype, requires_grad)


def tiled_parameters(
    declared: type, values: Mapping[str, object], worlds: int, device: wp.Device, entries: Mapping[str, type]
) -> dict[str, wp.array]:
    """The parameters that a class declares and `values` has, by name, repeated for each world.

    Args:
        declared: The class.
        values: Values of one world by name.
        worlds: Number of worlds.
        device: Device of the arrays.
        entries: Warp types by `Parameter.entry`.
    """
    specs = parameters_of(declared).items()
    return {n: tiled(values[n], worlds, device, entries[spec.entry]) for n, spec in specs if n in values}


def shared(array: wp.array, worlds: int) -> wp.array:
    """View of an array of shape (1, n) with shape (worlds, n); all rows share memory, so it is only for reading."""
    view = wp.array(
        ptr=array.ptr, dtype=array.dtype, shape=(worlds, array.shape[1]), strides=(0, array.strides[1]),
        device=array.device,
    )  # fmt: skip
    view._ref = array  # keeps the memory, as Warp does for its own views
    return view
