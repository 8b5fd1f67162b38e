"""Copies of the data of chosen worlds between arrays.

The row of a world is all its entries in an array. A row is copied bit by bit, whatever its type, so that copies are
exact.
"""

from collections.abc import Sequence

import warp as wp

from warpbots.numerics import launch, real

__all__ = ["add_rows", "copy_rows", "load_rows", "rows_of", "store_rows"]


def rows_of(array: wp.array, worlds: int, slots: int = 1) -> wp.array:
    """A view of an array as 32-bit words, shape (slots * worlds, n), with one row for each slot and world."""
    rows = slots * worlds
    words = array.size * wp.types.type_size_in_bytes(array.dtype) // (4 * rows)
    return wp.array(ptr=array.ptr, dtype=wp.int32, shape=(rows, words), device=array.device, copy=False)


def _numbers(array: wp.array, worlds: int) -> wp.array:
    """A view of an array as scalars, shape (worlds, n), with one row for each world."""
    scalar = _scalar(array)
    count = array.size * wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(scalar)
    return wp.array(ptr=array.ptr, dtype=scalar, shape=(worlds, count // worlds), device=array.device, copy=False)


def _scalar(array: wp.array) -> type:
    return getattr(array.dtype, "_wp_scalar_type_", array.dtype)


def copy_rows(where: wp.array, source: Sequence[wp.array | None], destination: Sequence[wp.array]) -> None:
    """Copy the rows of chosen worlds from each array of `source` to the array of `destination` at the same index.

    Args:
        where: 1 for each chosen world, shape (worlds,).
        source: Arrays whose first axis is the world; None to set the rows of the destination to zero.
        destination: Arrays of the same shapes.
    """
    for a, b in zip(source, destination, strict=True):
        if b.size:
            kernel, inputs = (clear_kernel, [where]) if a is None else (copy_kernel, [where, rows_of(a, where.size)])
            _launch(kernel, where, inputs, rows_of(b, where.size))


def store_rows(where: wp.array, slot: wp.array, source: Sequence[wp.array], table: Sequence[wp.array]) -> None:
    """Copy the rows of chosen worlds into slots of tables; each table has several slots for every world.

    Args:
        where: 1 for each chosen world, shape (worlds,).
        slot: The slot to use in each world, shape (worlds,).
        source: Arrays whose first axis is the world.
        table: For each source, an array with room for its rows in every slot.
    """
    for a, b in zip(source, table, strict=True):
        if a.size:
            inputs = [where, slot, rows_of(a, where.size)]
            _launch(store_kernel, where, inputs, rows_of(b, where.size, b.size // a.size))


def load_rows(where: wp.array, slot: wp.array, table: Sequence[wp.array], destination: Sequence[wp.array]) -> None:
    """Copy the rows of chosen worlds from the slots of tables to arrays: the inverse of `store_rows`."""
    for a, b in zip(table, destination, strict=True):
        if b.size:
            inputs = [where, slot, rows_of(a, where.size, a.size // b.size)]
            _launch(load_kernel, where, inputs, rows_of(b, where.size))


def add_rows(where: wp.array, source: Sequence[wp.array], destination: Sequence[wp.array]) -> None:
    """Add the rows of chosen worlds in each array of `source` to the rows of `destination`; see `copy_rows`."""
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
    """Set the rows of chosen worlds to zero."""
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
    """Copy the rows of chosen worlds."""
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
    """Copy the rows of chosen worlds to the slots of a table."""
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
    """Copy the rows of chosen worlds from the slots of a table."""
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
    """Add the rows of chosen worlds to `row_out`."""
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
    """Add the rows of chosen worlds to `row_out`, in double precision."""
    w, i = wp.tid()
    if where[w] == 1:
        row_out[w, i] = row_out[w, i] + row[w, i]
