"""L D L^T of the second derivative H of a world, on the device, by 3 x 3 blocks that couple coordinates of nodes.

The matrix A of the global step couples nodes but not their coordinates, so that it is far from H if matter resists
changes of volume, or if stiff cells rotate in soft surroundings. H depends on the point and on the parameters of a
world, but the pattern of H does not: the order of elimination and the pattern of L are determined once, on the host
(`elimination.py`), and the threads of a world compute the values of L, column after column (George & Liu 1981,
"Computer solution of large sparse positive definite systems"):

    D_j = H_jj - sum_k L_jk D_k L_jk^T,   L_rj = (H_rj - sum_k L_rk D_k L_jk^T) D_j^-1,   k < j < r.

For nodes that are held to lines or planes, the directions in which they cannot move are removed from H and replaced by
a stiffness.

MINRES needs a positive definite factor. The iteration of an unsymmetric adjoint does not, so there the pivots of the
symmetric part of H may have any sign.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, launch_lanes, matrix, real, real_numpy, sum_of_lanes
from warpbots.numerics.simd import dot, fetch, index, multiply_add
from warpbots.solvers.articulated.thread_team import WARP, sync
from warpbots.solvers.projective.iterate.elimination import Elimination
from warpbots.solvers.projective.iterate.krylov_arrays import KrylovArrays

__all__ = [
    "CoupledArrays",
    "block_of",
    "coupled_arrays",
    "factorise",
    "join_kernel",
    "leave_kernel",
    "part_kernel",
    "put",
    "set_aside",
    "solve",
]

_mat = matrix(3)
_sum = sum_of_lanes(NODE)
_PATIENCE = 1.0
"""Iterations of MINRES that take as long as a factorisation with one product for each entry of L."""


@wp.struct
class CoupledArrays:
    """L D L^T; rows are the nodes that move, in the order of elimination, and blocks are three columns.

    node: Node of a row, shape (rows,).
    diagonal: Index, among all pairs of nodes, of the pair of the node of each row with itself, shape (rows,).
    guide: Index of the node of each row among nodes that are held to lines or planes, -1 for other nodes, shape
        (rows,).
    free: Projection onto the directions in which each node held to a line or plane can move, shape (guided,).
    start: First entry of a column of L below the diagonal, and the end of the last column, shape (rows + 1,).
    row: Row of an entry, shape (entries,).
    pair: Index of the pair of nodes of an entry among all pairs, -1 for fill-in, shape (entries,).
    first: First item of each row in the lists `column` and `entry`, which are sorted by rows, and the end of the last
        row, shape (rows + 1,).
    column: Column of each item, shape (entries,).
    entry: Entry of L of each item, shape (entries,).
    value: L [1], shape (worlds * entries * 3,).
    pivot: D [N/m], shape (worlds * rows * 3,).
    inverse: D^-1 [m/N], shape (worlds * rows * 3,).
    left: Remainder of the column that is being computed [N/m], shape (worlds * rows * 3,).
    sought: Intermediate solutions in the order of elimination, shape (worlds * rows,).
    sound: 1 for a world whose matrix has a factor: it is positive definite, or no pivot is singular where any sign is
        allowed, shape (worlds,).
    others: 1 for an active world whose matrix has no factor, shape (worlds,).
    factored: 1 for a world without an active contact whose unsymmetric adjoint is solved with a factor, shape
        (worlds,).
    unsolved: 1 for an island that iterations without a factor have not solved, shape (worlds * components,).
    any: Number of islands with `unsolved` 1, shape (1,).
    solved: 1 for an island that iterations without a factor have solved, shape (worlds * components,).
    spent: Number of iterations without a factor, shape (worlds * components,).
    patience: Number of iterations without a factor that cost as much as a factor.
    """

    node: wp.array[int]
    diagonal: wp.array[int]
    guide: wp.array[int]
    free: wp.array[_mat]
    start: wp.array[int]
    row: wp.array[int]
    pair: wp.array[int]
    first: wp.array[int]
    column: wp.array[int]
    entry: wp.array[int]
    value: wp.array[NODE]
    pivot: wp.array[NODE]
    inverse: wp.array[NODE]
    left: wp.array[NODE]
    sought: wp.array[NODE]
    sound: wp.array[int]
    others: wp.array[int]
    factored: wp.array[int]
    unsolved: wp.array[int]
    any: wp.array[int]
    solved: wp.array[int]
    spent: wp.array[int]
    patience: int


def coupled_arrays(
    elimination: Elimination, guided: dict[int, np.ndarray], components: int, worlds: int, device: wp.Device
) -> CoupledArrays:
    """Arrays with the order of elimination, and memory for the values.

    Args:
        elimination: The order of elimination.
        guided: Orthonormal normals of nodes that are held to lines or planes, each of shape (1 or 2, 3).
        components: Components of one world.
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    rows, entries, by_row = len(elimination.node), len(elimination.row), elimination.by_row
    number = {node: i for i, node in enumerate(guided)}
    guide = np.array([number.get(node, -1) for node in elimination.node.tolist()])
    arrays = CoupledArrays()
    for name, values in (
        ("node", elimination.node), ("diagonal", elimination.diagonal), ("guide", guide), ("start", elimination.start),
        ("row", elimination.row), ("pair", elimination.pair), ("first", elimination.first),
        ("column", elimination.column[by_row]), ("entry", by_row),
    ):  # fmt: skip
        setattr(arrays, name, wp.array(values.astype(np.int32), dtype=int, device=device))
    free = np.array([np.eye(3) - n.T @ n for n in guided.values()]).reshape(-1, 3, 3)
    arrays.free = wp.array(free.astype(real_numpy), dtype=_mat, device=device)
    for name, size in (("value", 3 * entries), ("pivot", 3 * rows), ("inverse", 3 * rows), ("left", 3 * rows)):
        setattr(arrays, name, wp.zeros(worlds * size, dtype=NODE, device=device))
    arrays.sought = wp.zeros(worlds * rows, dtype=NODE, device=device)
    for name in ("sound", "others", "factored"):
        setattr(arrays, name, wp.zeros(worlds, dtype=int, device=device))
    for name in ("unsolved", "solved", "spent"):
        setattr(arrays, name, wp.zeros(worlds * components, dtype=int, device=device))
    arrays.any = wp.zeros(1, dtype=int, device=device)
    arrays.patience = 1 + round(_PATIENCE * elimination.products / max(1, entries + rows))  # 1 where all is held
    return arrays


def factorise(
    factor: CoupledArrays,
    mass: wp.array,
    h: float,
    column: wp.array,
    active: wp.array,
    device: wp.Device,
    definite: bool = True,
) -> None:
    """Factor H = M / h^2 + K in worlds that are active, and note where there is a factor.

    Args:
        factor: The factor to write.
        mass: Masses of the nodes [kg], shape (worlds * nodes,).
        h: Length of the step [s].
        column: K: three columns for each pair of nodes [N/m], shape (worlds * pairs * 3,).
        active: Worlds with a 1 are factored, shape (worlds,).
        device: Device of all arrays.
        definite: Whether H has to be positive definite; otherwise its pivots may have any sign.
    """
    launch_lanes(factorise_kernel, active.size, WARP, [mass, h, column, active, int(definite)], [factor], device)


def solve(factor: CoupledArrays, active: wp.array, b: wp.array, x_out: wp.array, device: wp.Device) -> None:
    """Solve H x = b in worlds that are active and whose H has a factor; write nothing in other worlds.

    Args:
        factor: The factor of H.
        active: Worlds with a 1 are solved, shape (worlds,).
        b: Right-hand sides [N], shape (worlds * stride,).
        x_out: Solutions [m], shape (worlds * stride,); nothing is written for nodes that do not move.
        device: Device of all arrays.
    """
    launch_lanes(solve_kernel, active.size, WARP, [active, b], [factor, x_out], device)


@wp.func
def times(A0: NODE, A1: NODE, A2: NODE, x: NODE):
    """A x for the matrix A with the columns A0, A1, A2."""
    y = multiply_add(NODE(), x[0], A0)
    y = multiply_add(y, x[1], A1)
    return multiply_add(y, x[2], A2)


@wp.func
def less(y: NODE, A0: NODE, A1: NODE, A2: NODE, x: NODE):
    """y - A x."""
    y = multiply_add(y, -x[0], A0)
    y = multiply_add(y, -x[1], A1)
    return multiply_add(y, -x[2], A2)


@wp.func
def transposed_times(A0: NODE, A1: NODE, A2: NODE, x: NODE):
    """A^T x."""
    return NODE(dot(A0, x), dot(A1, x), dot(A2, x), real(0.0))


@wp.func
def block_of(column: wp.array[NODE], n: int):
    """Three columns as a matrix."""
    a = column[n]
    b = column[n + 1]
    c = column[n + 2]
    return _mat(a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])


@wp.func
def projection(factor: CoupledArrays, j: int):
    """Projection onto the directions in which the node of row j can move."""
    P = wp.identity(n=3, dtype=real)
    if factor.guide[j] >= 0:
        P = factor.free[factor.guide[j]]
    return P


@wp.func
def put(column: wp.array[NODE], n: int, A: _mat):
    """Write a matrix as three columns."""
    for c in range(3):
        column[n + c] = NODE(A[0, c], A[1, c], A[2, c], real(0.0))


@wp.kernel(enable_backward=False)
def factorise_kernel(
    # model
    mass: wp.array[real],
    # state
    h: real,
    column: wp.array[NODE],
    active: wp.array[int],
    definite: int,
    # out
    factor_out: CoupledArrays,
):
    """Factor H column after column: all threads of a world compute the pivot of a column, and divide its entries."""
    w, lane = wp.tid()
    if active[w] == 0:
        return
    rows = factor_out.node.shape[0]
    first = w * rows
    entries = w * factor_out.row.shape[0]
    pairs = w * (column.shape[0] / active.shape[0] / 3)
    sound = int(1)
    for j in range(rows):
        P = projection(factor_out, j)
        for p in range(factor_out.start[j] + lane, factor_out.start[j + 1], wp.block_dim()):
            r = factor_out.row[p]
            K = _mat()
            if factor_out.pair[p] >= 0:
                K = projection(factor_out, r) @ block_of(column, 3 * (pairs + factor_out.pair[p])) @ P
            put(factor_out.left, 3 * (first + r), K)
        if lane == 0:
            K = block_of(column, 3 * (pairs + factor_out.diagonal[j]))
            m = mass[w * (mass.shape[0] / active.shape[0]) + factor_out.node[j]] / (h * h)
            one = wp.identity(n=3, dtype=real)
            K = P @ K @ P + wp.trace(K) * (one - P) + m * one
            put(factor_out.left, 3 * (first + j), K)
        sync()
        for q in range(factor_out.first[j], factor_out.first[j + 1]):
            subtract_column(factor_out, first, entries, factor_out.column[q], factor_out.entry[q], lane)
            sync()
        D = block_of(factor_out.left, 3 * (first + j))
        inverse = wp.inverse(D)
        det = wp.determinant(D)
        # the minors of a positive definite matrix, one of them as an entry of its inverse
        positive = D[0, 0] > real(0.0) and det > real(0.0) and inverse[2, 2] > real(0.0)
        regular = wp.isfinite(det) and det != real(0.0)
        if not (positive or (definite == 0 and regular)):
            sound = 0
            break
        if lane == 0:
            put(factor_out.pivot, 3 * (first + j), D)
            put(factor_out.inverse, 3 * (first + j), inverse)
        for p in range(factor_out.start[j] + lane, factor_out.start[j + 1], wp.block_dim()):
            rest = block_of(factor_out.left, 3 * (first + factor_out.row[p]))
            put(factor_out.value, 3 * (entries + p), rest @ inverse)
        sync()
    if lane == 0:
        factor_out.sound[w] = sound


@wp.func
def subtract_column(factor: CoupledArrays, first: int, entries: int, k: int, e: int, lane: int):
    """Subtract L_rk D_k L_jk^T from the remainder of column j, in rows r from j on; L_jk is entry e."""
    n = 3 * (first + k)
    D0 = fetch(factor.pivot, n)
    D1 = fetch(factor.pivot, n + 1)
    D2 = fetch(factor.pivot, n + 2)
    n = 3 * (entries + e)
    L0 = fetch(factor.value, n)
    L1 = fetch(factor.value, n + 1)
    L2 = fetch(factor.value, n + 2)
    a = times(D0, D1, D2, NODE(L0[0], L1[0], L2[0], real(0.0)))
    b = times(D0, D1, D2, NODE(L0[1], L1[1], L2[1], real(0.0)))
    c = times(D0, D1, D2, NODE(L0[2], L1[2], L2[2], real(0.0)))
    for p in range(e + lane, factor.start[k + 1], wp.block_dim()):
        n = 3 * (entries + p)
        L0 = fetch(factor.value, n)
        L1 = fetch(factor.value, n + 1)
        L2 = fetch(factor.value, n + 2)
        r = 3 * (first + index(factor.row, p))
        factor.left[r] = less(fetch(factor.left, r), L0, L1, L2, a)
        factor.left[r + 1] = less(fetch(factor.left, r + 1), L0, L1, L2, b)
        factor.left[r + 2] = less(fetch(factor.left, r + 2), L0, L1, L2, c)


@wp.kernel(enable_backward=False)
def solve_kernel(
    # state
    active: wp.array[int],
    b: wp.array[NODE],
    # out
    factor_out: CoupledArrays,
    x_out: wp.array[NODE],
):
    """L D L^T x = b: down the columns of L, then up."""
    w, lane = wp.tid()
    if active[w] * factor_out.sound[w] == 0:
        return
    rows = factor_out.node.shape[0]
    first = w * rows
    entries = w * factor_out.row.shape[0]
    nodes = w * (b.shape[0] / active.shape[0])
    for j in range(lane, rows, wp.block_dim()):
        factor_out.sought[first + j] = b[nodes + factor_out.node[j]]
    sync()
    for j in range(rows):
        y = fetch(factor_out.sought, first + j)
        for p in range(factor_out.start[j] + lane, factor_out.start[j + 1], wp.block_dim()):
            r = first + index(factor_out.row, p)
            n = 3 * (entries + p)
            L0 = fetch(factor_out.value, n)
            L1 = fetch(factor_out.value, n + 1)
            L2 = fetch(factor_out.value, n + 2)
            factor_out.sought[r] = less(fetch(factor_out.sought, r), L0, L1, L2, y)
        sync()
    for m in range(rows):
        j = rows - 1 - m
        x = NODE()
        for p in range(factor_out.start[j] + lane, factor_out.start[j + 1], wp.block_dim()):
            n = 3 * (entries + p)
            L0 = fetch(factor_out.value, n)
            L1 = fetch(factor_out.value, n + 1)
            L2 = fetch(factor_out.value, n + 2)
            below = fetch(factor_out.sought, first + index(factor_out.row, p))
            x = multiply_add(x, real(-1.0), transposed_times(L0, L1, L2, below))
        total = _sum(x)
        if lane == 0:
            n = 3 * (first + j)
            D0 = fetch(factor_out.inverse, n)
            D1 = fetch(factor_out.inverse, n + 1)
            D2 = fetch(factor_out.inverse, n + 2)
            x = total + times(D0, D1, D2, fetch(factor_out.sought, first + j))
            factor_out.sought[first + j] = x
            x_out[nodes + factor_out.node[j]] = x
        sync()


@wp.kernel(enable_backward=False)
def part_kernel(
    # state
    active: wp.array[int],
    # out
    factor_out: CoupledArrays,
):
    """Mark the active worlds whose H has no factor."""
    w = wp.tid()
    factor_out.others[w] = active[w] * (1 - factor_out.sound[w])


@wp.func
def set_aside(factor: CoupledArrays, u: int, sought: int, converged: int, iterations: int):
    """Leave an island whose solution is sought to a factor unless iterations have converged; note their number."""
    unsolved = sought * (1 - converged)
    factor.unsolved[u] = unsolved
    factor.solved[u] = converged
    factor.spent[u] = iterations
    wp.atomic_add(factor.any, 0, unsolved)


@wp.kernel(enable_backward=False)
def leave_kernel(
    # work
    krylov: KrylovArrays,
    where: wp.array[int],
    # out
    factor_out: CoupledArrays,
):
    """Write which islands MINRES has not solved yet, and the number of its iterations so far."""
    u = wp.tid()
    set_aside(factor_out, u, where[u], krylov.converged[u], krylov.iterations[u])


@wp.kernel(enable_backward=False)
def join_kernel(
    # out
    krylov_out: KrylovArrays,
    factor_out: CoupledArrays,
):
    """Write all islands that are solved, with or without a factor, and the total number of iterations."""
    w = wp.tid()
    krylov_out.converged[w] = wp.max(krylov_out.converged[w], factor_out.solved[w])
    krylov_out.iterations[w] = krylov_out.iterations[w] + factor_out.spent[w]
    wp.atomic_sub(factor_out.any, 0, factor_out.unsolved[w])
