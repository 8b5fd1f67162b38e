"""Copies of arrays that all threads read, so that their gradients can be summed fast.

A GPU executes additions to one address one after the other. Therefore each thread adds to the gradient of one of
several copies, and neighbouring threads add to neighbouring copies. At the end the gradients of all copies are summed.
"""

import dataclasses
import functools

import warp as wp

from warpbots.numerics.lanes import sum_of_lanes
from warpbots.numerics.launch import launch, launch_lanes
from warpbots.numerics.scalars import real
from warpbots.numerics.threads import parallel

__all__ = ["Copies"]

_COPIES = 256
_LANES = 64


@dataclasses.dataclass(frozen=True)
class Copies:
    """Copies of arrays that have one row for each world: copy c of row w is row w * count + c of the copied array.

    Attributes:
        device: Device of the arrays.
        count: Number of copies of each row, a power of two; if the number is 1, the arrays themselves are used.
    """

    device: wp.Device
    count: int

    @staticmethod
    def of(device: wp.Device) -> "Copies":
        """Create `Copies` with the number of copies that is fastest on a device."""
        return Copies(device, _COPIES if parallel(device) else 1)

    def wanted(self, *arrays: wp.array) -> "Copies":
        """Return `self` if any of the arrays has a gradient, otherwise `Copies` that use the arrays themselves."""
        return self if any(array.grad is not None for array in arrays) else Copies(self.device, 1)

    @functools.cached_property
    def _rows(self) -> dict[str, wp.array]:
        return {}

    def _of(self, name: str, array: wp.array) -> wp.array:
        shape = (array.shape[0] * self.count, *array.shape[1:])
        if name not in self._rows or self._rows[name].shape != shape:
            self._rows[name] = wp.zeros(shape, dtype=array.dtype, device=self.device, requires_grad=True)
        return self._rows[name]

    def values(self, name: str, array: wp.array) -> wp.array:
        """Array with `count` copies of each row of `array`, or `array` itself if `count` is 1.

        The array of copies is kept under `name` and used again in later calls.
        """
        if self.count == 1:
            return array
        rows = self._of(name, array)
        table = _table(rows)
        launch(_spread_kernel(array.dtype), table.shape, [_table(array), self.count], [table], self.device)
        return rows

    def gradient(self, name: str, array: wp.array) -> wp.array | None:
        """Array to which adjoints add the gradient with respect to `array`; None if `array` has no gradient.

        If `count` is above 1, the array has a row for each copy, and all its entries are set to zero.
        """
        if self.count == 1 or array.grad is None:
            return array.grad
        rows = self._of(name, array)
        rows.grad.zero_()
        return rows.grad

    def collect(self, name: str, array: wp.array) -> None:
        """Add the gradients of all copies of each row to the gradient of `array`."""
        if self.count > 1 and array.grad is not None:
            total, rows = _table(array.grad), _table(self._of(name, array).grad)
            launch_lanes(_collect_kernel(array.dtype), total.shape, _LANES, [rows, self.count], [total], self.device)


def _table(array: wp.array) -> wp.array:
    """Reshape an array to two axes, with all axes but the first combined."""
    return array if array.ndim == 2 else array.reshape((array.shape[0], 1))


@functools.cache
def _spread_kernel(dtype: type) -> wp.Kernel:
    @wp.kernel(module=wp.get_module(f"warpbots.copies_{dtype.__name__}"), enable_backward=False)
    def spread(values: wp.array2d[dtype], count: int, rows_out: wp.array2d[dtype]):
        """Write `count` copies of each row of `values` to `rows_out`."""
        r, j = wp.tid()
        rows_out[r, j] = values[r / count, j]

    return spread


@functools.cache
def _collect_kernel(dtype: type) -> wp.Kernel:
    total_of = sum_of_lanes(dtype)

    @wp.kernel(module=wp.get_module(f"warpbots.copies_{dtype.__name__}"), enable_backward=False)
    def collect(rows: wp.array2d[dtype], count: int, total_out: wp.array2d[dtype]):
        """Add the sum of the `count` copies of each row in `rows` to the row in `total_out`."""
        w, j, lane = wp.tid()
        total = dtype(real(0.0))
        for c in range(lane, count, wp.block_dim()):
            total += rows[w * count + c, j]
        added = total_of(total)
        if lane == 0:
            total_out[w, j] = total_out[w, j] + added

    return collect
