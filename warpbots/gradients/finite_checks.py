"""Checks of arrays for invalid entries, whose indices are marked on the device and read on demand."""

import functools
import itertools
from collections.abc import Sequence

import torch
import warp as wp

from warpbots.gradients.tensors import tensor_of
from warpbots.numerics import Launch, launch_all, parallel

__all__ = ["Field", "Marks", "flaw", "threads_for", "within_of"]

Field = tuple[wp.array, float]
"""An array and the largest allowed magnitude of its entries; infinity allows any finite number."""

_NONE = 2**31 - 1
_KINDS = ("nan", "inf", "-inf")
_LENGTH = 256
"""Entries per thread on a GPU."""


class Marks:
    """Marks of the entries at which arrays leave their ranges.

    The marks of an array are the index of its first NaN, of its first entry that is too large, and of its first entry
    that is too small. Arrays are checked in groups, with one launch for each group and precision.
    """

    def __init__(self, device: wp.Device, first: int, *groups: Sequence[Field]):
        """Prepare the launches; nothing runs yet.

        Args:
            device: Device of the arrays.
            first: Index of the first world of the arrays, shape (worlds, ...), in arrays of more worlds. The marks are
                indices in the latter.
            groups: Groups of arrays; one call of `look` checks the arrays of one group. The table of marks has one row
                for each array, in the order of the groups and of the arrays within each group.
        """
        self._device, self._first = device, first
        self._marks = wp.empty((sum(map(len, groups)), len(_KINDS)), dtype=int, device=device)
        self._tensor, rows = tensor_of(self._marks), itertools.count()
        self._launches = [self._launches_of([(*field, next(rows)) for field in group]) for group in groups]

    def _launches_of(self, fields: list[tuple[wp.array, float, int]]) -> list[Launch]:
        tables: dict[type, list] = {}
        for array, most, index in fields:
            if array.size:
                row = _row(array, most, index, self._first)
                tables.setdefault(row.value.dtype, []).append(row)
        launches = []
        for scalar, table in tables.items():
            Row, kernel = _kernel(scalar)
            longest = max(row.value.size for row in table)
            threads = threads_for(longest, self._device)
            inputs = [wp.array(table, dtype=Row, device=self._device), threads]
            launches.append((kernel, (len(table), threads), inputs, [self._marks]))
        return launches

    def clear(self) -> None:
        """Clear all marks."""
        self._marks.fill_(_NONE)

    def look(self, group: int = 0) -> None:
        """Mark the faults of the arrays of a group."""
        launch_all(self._launches[group], self._device)

    def taken(self) -> torch.Tensor:
        """A copy of the marks, shape (arrays, 3), int: one row for each array, one column for each kind of fault."""
        return self._tensor.clone()


def flaw(mark: Sequence[int]) -> tuple[int, str] | None:
    """Index of the first invalid entry of an array, and its fault in words; None if all entries are valid.

    Args:
        mark: A row of `Marks.taken`.
    """
    at, kind = min(zip(mark, _KINDS, strict=True))
    return None if at == _NONE else (at, kind)


def _row(array: wp.array, most: float, index: int, first: int) -> object:
    """Build the `Row` of an array for the kernel; entries of any element type are viewed as scalars.

    Args:
        array: The array.
        most: Largest allowed magnitude of an entry.
        index: Row of the array in the table of marks.
        first: Index of its first world.
    """
    flat = tensor_of(array).view(-1)
    row = _kernel(wp.dtype_from_torch(flat.dtype))[0]()
    row.value, row.most = wp.from_torch(flat), min(most, torch.finfo(flat.dtype).max)
    row.index, row.first = index, first * (flat.numel() // array.shape[0])
    return row


def threads_for(entries: int, device: wp.Device) -> int:
    """Number of threads that share the entries of an array: one on a CPU."""
    return -(-entries // _LENGTH) if parallel(device) else 1


@functools.cache
def within_of(scalar: type) -> wp.Function:
    """Warp function within(a, most, first, end, step) that checks entries of an array of type `scalar`."""

    # without a branch, so that the compiler vectorises it: fifteen times as fast on a CPU
    @wp.func_native(
        """
        bool within = true;
        for (int i = first; i < end; i += step)
            within &= fabs(a.data[i]) <= most;
        return within;
        """
    )
    def within(a: wp.array[scalar], most: scalar, first: int, end: int, step: int) -> bool:
        """Whether the entries `first`, `first + step`, ... before `end` have a magnitude of at most `most`."""

    return within


@functools.cache
def _kernel(scalar: type) -> tuple[type, wp.Kernel]:
    """Struct of a row of a table of arrays of precision `scalar`, and the kernel that checks all arrays of a table."""
    module = wp.get_module(f"warpbots.gradients.finite_checks.{scalar.__name__}")

    @wp.struct
    class Row:
        """An array, the largest magnitude of its entries that is allowed, its row of marks, and its first index."""

        value: wp.array[scalar]
        most: scalar
        index: int
        first: int

    within = within_of(scalar)

    @wp.kernel(module=module, enable_backward=False)
    def mark(table: wp.array[Row], threads: int, marks_out: wp.array2d[int]):
        """Write three indices for each array: of its first NaN, first entry too large, and first entry too small."""
        r, t = wp.tid()
        row = table[r]
        if not within(row.value, row.most, t, row.value.shape[0], threads):
            for i in range(t, row.value.shape[0], threads):
                x = row.value[i]
                if not wp.abs(x) <= row.most:
                    kind = 0
                    if x > row.most:
                        kind = 1
                    if x < -row.most:
                        kind = 2
                    wp.atomic_min(marks_out, row.index, kind, row.first + i)

    return Row, mark
