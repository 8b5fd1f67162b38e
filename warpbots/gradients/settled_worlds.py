"""Reset of lost worlds to their states at the start of a control interval, with the adjoint of the reset."""

import functools
from collections.abc import Sequence

import torch
import warp as wp

from warpbots.gradients.finite_checks import threads_for, within_of
from warpbots.gradients.tensors import tensor_of
from warpbots.numerics import Launch, launch_all

__all__ = ["SettledWorlds"]


class SettledWorlds:
    """Resets lost worlds to their states at the start of an interval, and passes their gradients from end to start.

    A world is lost in an interval if any number in its state at the end of the interval is not finite. Worlds never
    interact, so a lost world does not affect the other worlds. The interval does not change the state of a lost world:
    the gradient with respect to the state at the start equals the gradient with respect to the state at the end, and
    the gradients with respect to control and parameters are zero.

    Attributes:
        marked: The field of lost worlds in the state at the end of the interval, shape (worlds,).
    """

    def __init__(self, start: dict[str, wp.array], end: dict[str, wp.array], marked: str, others: Sequence[wp.array]):
        """Prepare the launches; nothing runs yet.

        Args:
            start: Fields of the state at the start of the interval, by name.
            end: Fields of the state at the end of the interval, by name.
            marked: Name of the field of lost worlds.
            others: Control and parameters, each of shape (worlds, ...).
        """
        worlds, self._device = end[marked].shape[0], end[marked].device
        self.marked = end[marked]
        self._kept = wp.zeros(worlds, dtype=int, device=self._device)
        moving = [name for name in end if name != marked]
        before, after = ([fields[name] for name in moving] for fields in (start, end))
        self._begin = [(_begin_kernel(self.marked.dtype), worlds, [start[marked]], [self._kept])]
        self._find = self._launches(_find_kernel, [(a, a) for a in after], [self._kept])
        self._mark = [(_mark_kernel(self.marked.dtype), worlds, [self._kept], [self.marked])]
        self._restore = self._launches(_copy_kernel, zip(before, after, strict=True))
        if any(array.grad is not None for array in after):
            self._held = [wp.zeros_like(array, requires_grad=False) for array in after]
            self._hold = self._launches(_copy_kernel, [(a.grad, h) for a, h in zip(after, self._held, strict=True)])
            self._pass = self._launches(_copy_kernel, [(h, b.grad) for h, b in zip(self._held, before, strict=True)])
            self._clear = self._launches(_clear_kernel, [(a.grad, a.grad) for a in others if a.grad is not None])

    def settle(self) -> None:
        """Mark the worlds that were lost in the interval, and reset all lost worlds to their states at its start."""
        launch_all([*self._begin, *self._find, *self._mark, *self._restore], self._device)

    def hold_gradients(self) -> None:
        """Store the gradients with respect to the end states of lost worlds.

        Call this method before the adjoints of the steps.
        """
        launch_all(self._hold, self._device)

    def pass_gradients(self) -> None:
        """Write the stored gradients to the gradients of the start states of lost worlds.

        Call this method after the adjoints of the steps. The gradients with respect to control and parameters of lost
        worlds are set to zero.
        """
        launch_all([*self._pass, *self._clear], self._device)

    def _launches(self, kernel_of, pairs, outputs: Sequence[wp.array] = ()) -> list[Launch]:
        """List the launches of a kernel over (arrays, worlds, threads): one launch for each precision of the arrays.

        On a GPU, several threads share the entries of a world.

        Args:
            kernel_of: Function that makes the kernel for a precision.
            pairs: Pairs (source, target) of arrays.
            outputs: Output arrays of the kernel.
        """
        tables: dict[type, list] = {}
        for source, target in pairs:
            if source.size:
                flat = [tensor_of(a).view(-1) for a in (source, target)]
                row = _row(wp.dtype_from_torch(flat[0].dtype))()
                row.source, row.target = map(wp.from_torch, flat)
                row.size = flat[0].numel() // len(self._kept)
                row.most = torch.finfo(flat[0].dtype).max
                tables.setdefault(row.source.dtype, []).append(row)
        launches = []
        for scalar, table in tables.items():
            threads = threads_for(max(row.size for row in table), self._device)
            inputs = [wp.array(table, dtype=_row(scalar), device=self._device), threads]
            inputs += [] if outputs else [self._kept]
            launches.append((kernel_of(scalar), (len(table), len(self._kept), threads), inputs, [*outputs]))
        return launches


def _module(scalar: type) -> wp.Module:
    return wp.get_module(f"warpbots.gradients.settled_worlds.{scalar.__name__}")


@functools.cache
def _row(scalar: type) -> type:
    @wp.struct
    class SettledRow:
        """A pair of arrays that have `size` entries for each world.

        source: Array that kernels read, shape (worlds * size,).
        target: Array that kernels write, shape (worlds * size,).
        size: Number of entries of each world.
        most: Largest finite number of the precision of the arrays.
        """

        source: wp.array[scalar]
        target: wp.array[scalar]
        size: int
        most: scalar

    return SettledRow


@functools.cache
def _begin_kernel(scalar: type) -> wp.Kernel:
    """Kernel over worlds that flags the worlds that were lost before the interval."""

    @wp.kernel(module=_module(scalar), enable_backward=False)
    def begin(lost: wp.array[scalar], kept_out: wp.array[int]):
        """Set `kept_out` to 1 for worlds that are marked as lost in `lost`, and to 0 for all other worlds."""
        w = wp.tid()
        kept_out[w] = wp.where(lost[w] == scalar(0.0), 0, 1)

    return begin


@functools.cache
def _find_kernel(scalar: type) -> wp.Kernel:
    """Kernel over (arrays, worlds, threads) that flags worlds with a number that is not finite."""
    SettledRow, within = _row(scalar), within_of(scalar)

    @wp.kernel(module=_module(scalar), enable_backward=False)
    def find(table: wp.array[SettledRow], threads: int, kept_out: wp.array[int]):
        """Set `kept_out` to 1 for each world in which an entry of a source array is infinite or NaN."""
        r, w, t = wp.tid()
        row = table[r]
        if not within(row.source, row.most, w * row.size + t, (w + 1) * row.size, threads):
            kept_out[w] = 1

    return find


@functools.cache
def _mark_kernel(scalar: type) -> wp.Kernel:
    """Kernel over worlds that writes the field of lost worlds of the state."""

    @wp.kernel(module=_module(scalar), enable_backward=False)
    def mark(kept: wp.array[int], lost_out: wp.array[scalar]):
        """Set `lost_out` to 1 for the worlds with kept = 1; all other worlds keep the value that the solver wrote."""
        w = wp.tid()
        if kept[w] == 1:
            lost_out[w] = scalar(1.0)

    return mark


@functools.cache
def _copy_kernel(scalar: type) -> wp.Kernel:
    """Kernel over (arrays, worlds, threads) that copies the entries of flagged worlds."""
    SettledRow = _row(scalar)

    @wp.kernel(module=_module(scalar), enable_backward=False)
    def copy_rows(table: wp.array[SettledRow], threads: int, kept: wp.array[int]):
        """target = source, for all entries of the worlds with kept = 1."""
        r, w, t = wp.tid()
        if kept[w] == 1:
            row = table[r]
            for i in range(w * row.size + t, (w + 1) * row.size, threads):
                row.target[i] = row.source[i]

    return copy_rows


@functools.cache
def _clear_kernel(scalar: type) -> wp.Kernel:
    """Kernel over (arrays, worlds, threads) that clears the entries of flagged worlds."""
    SettledRow = _row(scalar)

    @wp.kernel(module=_module(scalar), enable_backward=False)
    def clear_rows(table: wp.array[SettledRow], threads: int, kept: wp.array[int]):
        """target = 0, for all entries of the worlds with kept = 1."""
        r, w, t = wp.tid()
        if kept[w] == 1:
            row = table[r]
            for i in range(w * row.size + t, (w + 1) * row.size, threads):
                row.target[i] = scalar(0.0)

    return clear_rows
