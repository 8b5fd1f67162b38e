"""Columns of the compliance C = A^-1 of the global matrix, for nodes in contact.

A column is computed when its node comes into contact, and is kept until its place is needed: if all places are taken, a
new column replaces the column of a node without contact. Memory holds one column for each place; a step needs as many
places as it has nodes in contact at once.
"""

import math

import warp as wp

from warpbots.numerics import parallel, real
from warpbots.solvers.articulated.thread_team import lanes_of, sync
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.iterate.sparse_cholesky import FactorArrays

__all__ = ["ComplianceArrays", "ask", "compliance_arrays", "comply_kernel", "forbid_kernel", "place_kernel"]

_SIDE = 512
"""Number of contacts of a world up to which their compliances are stored during Gauss-Seidel sweeps."""
_ENTRIES = {False: 1 << 31, True: 1 << 27}
"""Limit for the entries of all columns, and of stored compliances, with one thread and with many: memory that is never
written to costs a CPU nothing, but a GPU its full size."""
_AT_ONCE = 128
"""Columns that many threads compute at the same time."""


@wp.struct
class ComplianceArrays:
    """Columns of the inverse of the global matrix, the same for all worlds.

    column: Column of a point that may be in contact, -1 for none, shape (n,).
    asked: Index of the last iteration in which a point was in contact, shape (n,).
    iteration: Number of iterations so far, shape (1,).
    value: Displacement of each point per force on the point that owns a column [m/N], shape (room, n).
    owner: Point of a column, -1 for none, shape (room,).
    placed: Number of places so far that were given to columns or skipped, shape (1,).
    fresh: Points whose columns are computed next, shape (n,).
    count: Number of points in `fresh`, shape (1,).
    missing: Number of points without room for a column since a step began, shape (1,).
    work: Columns in computation, shape (threads * rows,).
    partial: Partial sums of the threads of a column, two for each thread, shape (threads * 2 * lanes,).
    threads: Number of columns that are computed at the same time.
    lanes: Number of threads for each of these columns.
    side: Number of contacts of a world up to which their compliances are stored during Gauss-Seidel sweeps.
    mutual: Displacement of each active contact per force of each other one [m/N], in the order of
        `ContactArrays.order`, shape (worlds * side * side,).
    """

    column: wp.array[int]
    asked: wp.array[int]
    iteration: wp.array[int]
    value: wp.array2d[real]
    owner: wp.array[int]
    placed: wp.array[int]
    fresh: wp.array[int]
    count: wp.array[int]
    missing: wp.array[int]
    work: wp.array[real]
    partial: wp.array[real]
    threads: int
    lanes: int
    side: int
    mutual: wp.array[real]


def compliance_arrays(n: int, rows: int, contacts: int, worlds: int, device: wp.Device) -> ComplianceArrays:
    """Arrays without columns.

    Args:
        n: Number of points that may be in contact.
        rows: Number of rows of the factored matrix.
        contacts: Number of contacts of one world.
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    many = parallel(device)
    entries = _ENTRIES[many]
    room = min(n, entries // max(n, 1))
    arrays = ComplianceArrays()
    arrays.threads, arrays.lanes = min(room, _AT_ONCE) if many else 1, lanes_of(device)
    arrays.column, arrays.owner = (wp.full(k, -1, dtype=int, device=device) for k in (n, room))
    arrays.asked = wp.full(n, -1, dtype=int, device=device)
    for name in ("iteration", "placed", "count", "missing"):
        setattr(arrays, name, wp.zeros(1, dtype=int, device=device))
    arrays.fresh = wp.zeros(n, dtype=int, device=device)
    arrays.value = wp.empty((room, n), dtype=real, device=device)
    arrays.work = wp.zeros(arrays.threads * rows, dtype=real, device=device)
    arrays.partial = wp.zeros(arrays.threads * 2 * arrays.lanes, dtype=real, device=device)
    arrays.side = min(contacts, _SIDE, math.isqrt(entries // worlds))
    arrays.mutual = wp.empty(worlds * arrays.side**2, dtype=real, device=device)
    return arrays


@wp.func
def ask(compliance: ComplianceArrays, i: int):
    """Request the column of a point; the first request in an iteration lists the point if it has no column."""
    now = compliance.iteration[0]
    if wp.atomic_exch(compliance.asked, i, now) != now and compliance.column[i] < 0:
        compliance.fresh[wp.atomic_add(compliance.count, 0, 1)] = i


@wp.kernel(enable_backward=False)
def place_kernel(
    # out
    compliance_out: ComplianceArrays,
):
    """Find a place for each requested column: a free place, or the place of a point without contact."""
    room = compliance_out.owner.shape[0]
    now = compliance_out.iteration[0]
    for k in range(compliance_out.count[0]):
        i = compliance_out.fresh[k]
        column = int(-1)
        for _ in range(room):
            c = compliance_out.placed[0] % room
            compliance_out.placed[0] = c + 1
            j = compliance_out.owner[c]
            if j < 0 or compliance_out.asked[j] != now:
                column = c
                if j >= 0:
                    compliance_out.column[j] = -1
                compliance_out.owner[c] = i
                break
        compliance_out.column[i] = column
        if column < 0:
            compliance_out.missing[0] = compliance_out.missing[0] + 1
    compliance_out.iteration[0] = now + 1


@wp.kernel(enable_backward=False)
def comply_kernel(
    # model
    row: wp.array[int],
    factor: FactorArrays,
    # out
    compliance_out: ComplianceArrays,
):
    """Compute the columns that have just been given a place, each by the threads of a warp or by one thread.

    Rows of points that may be in contact are -1 for points bound to bones.
    """
    t, lane = wp.tid()
    n = row.shape[0]
    rows = factor.node.shape[0]
    lanes = compliance_out.lanes
    first = t * rows
    for k in range(t, compliance_out.count[0], compliance_out.threads):
        node = compliance_out.fresh[k]
        column = compliance_out.column[node]
        if column >= 0:
            for j in range(lane, rows, lanes):
                compliance_out.work[first + j] = real(0.0)
            sync()
            if lane == 0:
                compliance_out.work[first + row[node]] = real(1.0)
            sync()
            down(factor, compliance_out, first, row[node], lane, lanes)
            up(factor, compliance_out, first, 2 * t * lanes, lane, lanes)
            sync()
            for i in range(lane, n, lanes):
                displacement = real(0.0)
                if row[i] >= 0:
                    displacement = compliance_out.work[first + row[i]]
                compliance_out.value[column, i] = displacement
            sync()


@wp.func
def down(factor: FactorArrays, compliance: ComplianceArrays, first: int, start: int, lane: int, lanes: int):
    """Solve L y = e for a unit vector e that begins at the row `start`."""
    for j in range(start, factor.node.shape[0]):
        y = compliance.work[first + j]
        if y != real(0.0):
            for p in range(factor.start[j] + lane, factor.start[j + 1], lanes):
                i = first + factor.row[p]
                compliance.work[i] = compliance.work[i] - factor.value[p] * y
            sync()


@wp.func
def up(factor: FactorArrays, compliance: ComplianceArrays, first: int, sums: int, lane: int, lanes: int):
    """Solve D L^T x = y. Every thread forms the sum over all threads; two rows of partial sums alternate."""
    rows = factor.node.shape[0]
    for m in range(rows):
        j = rows - 1 - m
        y = real(0.0)
        if lane == 0:
            y = factor.inverse[j] * compliance.work[first + j]
        for p in range(factor.start[j] + lane, factor.start[j + 1], lanes):
            y -= factor.value[p] * compliance.work[first + factor.row[p]]
        turn = sums + (m % 2) * lanes
        compliance.partial[turn + lane] = y
        sync()
        y = compliance.partial[turn]
        for k in range(1, lanes):
            y += compliance.partial[turn + k]
        if lane == 0:
            compliance.work[first + j] = y
        sync()


@wp.kernel(enable_backward=False)
def forbid_kernel(
    # work
    compliance: ComplianceArrays,
    # out
    progress_out: IterationState,
):
    """Mark all worlds as not converged if a column had no room."""
    u = wp.tid()
    if compliance.missing[0] > 0:
        progress_out.converged[u] = 0
        progress_out.found[u * progress_out.found.shape[0] / progress_out.converged.shape[0]] = 0
