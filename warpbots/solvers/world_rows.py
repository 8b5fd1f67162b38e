"""Copies of array rows, one row for each world, in the worlds that are chosen.

A row is copied bit by bit, whatever its type, so that the copy of a world is exact.
"""

from collections.abc import Sequence

import warp as wp

from warpbots.numerics import launch, real

__all__ = ["add_rows", "copy_rows", "load_rows", "rows_of", "store_rows"]


def rows_of(array: wp.array, worlds: int, slots: int = 1) -> wp.array:
    """The same memory as 32-bit words, shape (slots * worlds, n)."""
    rows = slots * worlds
    words = array.size * wp.types.type_size_in_bytes(array.dtype) // (4 * rows)
    return wp.array(ptr=array.ptr, dtype=wp.int32, shape=(rows, words), device=array.device, copy=False)


def _numbers(array: wp.array, worlds: int) -> wp.array:
    """The same memory as scalars, shape (worlds, n)."""
    scalar = _scalar(array)
    count = array.size * wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(scalar)
    return wp.array(ptr=array.ptr, dtype=scalar, shape=(worlds, count // worlds), device=array.device, copy=False)


def _scalar(array: wp.array) -> type:
    return getattr(array.dtype, "_wp_scalar_type_", array.dtype)


def copy_rows(where: wp.array, source: Sequence[wp.array | None], destination: Sequence[wp.array]) -> None:
    """Copy the rows of worlds where `where` is 1 from each array to its counterpart; without a source, clear them.

    Args:
        where: 1 for a world that is chosen, shape (worlds,).
        source: Arrays with a first axis, or a row, for each world.
        destination: As many arrays of the same shapes.
    """
    for a, b in zip(source, destination, strict=True):
        if b.size:
            kernel, inputs = (clear_kernel, [where]) if a is None else (copy_kernel, [where, rows_of(a, where.size)])
            _launch(kernel, where, inputs, rows_of(b, where.size))


def store_rows(where: wp.array, slot: wp.array, source: Sequence[wp.array], table: Sequence[wp.array]) -> None:
    """Copy the rows of chosen worlds into one slot of each table, which may differ from world to world.

    Args:
        where: 1 for a world that is chosen, shape (worlds,).
        slot: Slot of each world, shape (worlds,).
        source: Arrays with a first axis, or a row, for each world.
        table: For each source an array that is larger by a factor of the number of slots.
    """
    for a, b in zip(source, table, strict=True):
        if a.size:
            inputs = [where, slot, rows_of(a, where.size)]
            _launch(store_kernel, where, inputs, rows_of(b, where.size, b.size // a.size))


def load_rows(where: wp.array, slot: wp.array, table: Sequence[wp.array], destination: Sequence[wp.array]) -> None:
    """Copy the rows of chosen worlds back from one slot of each table: the inverse of `store_rows`."""
    for a, b in zip(table, destination, strict=True):
        if b.size:
            inputs = [where, slot, rows_of(a, where.size, a.size // b.size)]
            _launch(load_kernel, where, inputs, rows_of(b, where.size))


def add_rows(where: wp.array, source: Sequence[wp.array], destination: Sequence[wp.array]) -> None:
    """Add the rows of chosen worlds to those of each counterpart; see `copy_rows`."""
    for a, b in zip(source, destination, strict=True):
        if b.size:
            kernel = add_kernel if _scalar(b) == real else add_double_kernel
            _launch(kernel, where, [where, _numbers(a, where.size)], _numbers(b, where.size))


def _launch(kernel: wp.Kernel, where: wp.array, inputs: list, rows: wp.array) -> None:
    launch(kernel, (where.size, rows.shape[1]), inputs, [rows], where.device)


@wp.kernel(enable_backward=False)
def clear_kernel(
    # state
    where: wp.array[int],
    # out
    row_out: wp.array2d[int],
):
    """Zero in chosen worlds."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = 0


@wp.kernel(enable_backward=False)
def copy_kernel(
    # state
    where: wp.array[int],
    row: wp.array2d[int],
    # out
    row_out: wp.array2d[int],
):
    """Rows of chosen worlds."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = row[w, i]


@wp.kernel(enable_backward=False)
def store_kernel(
    # state
    where: wp.array[int],
    slot: wp.array[int],
    row: wp.array2d[int],
    # out
    table_out: wp.array2d[int],
):
    """Rows of chosen worlds into the slots of a table."""
    w, i = wp.tid()
    if where[w] == 1:
        table_out[slot[w] * where.shape[0] + w, i] = row[w, i]


@wp.kernel(enable_backward=False)
def load_kernel(
    # state
    where: wp.array[int],
    slot: wp.array[int],
    table: wp.array2d[int],
    # out
    row_out: wp.array2d[int],
):
    """Rows of chosen worlds from the slots of a table."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = table[slot[w] * where.shape[0] + w, i]


@wp.kernel(enable_backward=False)
def add_kernel(
    # state
    where: wp.array[int],
    row: wp.array2d[real],
    # out
    row_out: wp.array2d[real],
):
    """Sums of rows of chosen worlds."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = row_out[w, i] + row[w, i]


@wp.kernel(enable_backward=False)
def add_double_kernel(
    # state
    where: wp.array[int],
    row: wp.array2d[wp.float64],
    # out
    row_out: wp.array2d[wp.float64],
):
    """Sums of rows of chosen worlds in double precision."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = row_out[w, i] + row[w, i]
