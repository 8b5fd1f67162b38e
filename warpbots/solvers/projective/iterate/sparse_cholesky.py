"""The constant matrix A = M / h^2 + C / h + L of projective dynamics, factored once (Bouaziz et al. 2014).

A is the matrix of the global step, with the masses M, the resistance C of viscous elements and the stiffness L. A
couples nodes but not their coordinates, so that three right-hand sides share one factor of n rows. It is factored on
the host by SuperLU in its symmetric mode, A = L D L^T after a permutation. Systems are solved on the device: by one
thread for each world, or by blocks (`block_cholesky.py`) if there are many threads. With splitting, L is replaced by a
diagonal (eq. 21 of the soft multi-body paper), and nodes are independent.
"""

import dataclasses

import numpy as np
import warp as wp
from scipy.sparse import csc_matrix, csr_matrix, dia_matrix, diags
from scipy.sparse.linalg import SuperLU, splu

from warpbots.numerics import NODE, launch, parallel, real, real_numpy
from warpbots.numerics.simd import deposit, fetch, index, item, multiply_add, scale
from warpbots.solvers.projective.iterate.block_cholesky import Blocks, eliminate, solve_blocks

__all__ = ["Factor", "factorise", "solve", "split"]


@wp.struct
class FactorArrays:
    """L D L^T of the matrix of one world, whose rows are the free nodes, in the order of elimination.

    panel: First column of each panel, and the end of the last panel, shape (panels + 1,); a panel is one column, or
        four columns with the same rows below them.
    node: Node of a row, shape (rows,).
    start: First entry of a column of L below the diagonal, and the end of the last column, shape (rows + 1,).
    row: Row of an entry, shape (entries,).
    value: Value of an entry [1], shape (entries,).
    inverse: Inverse of the diagonal of D [m/N], shape (rows,).
    """

    panel: wp.array[int]
    node: wp.array[int]
    start: wp.array[int]
    row: wp.array[int]
    value: wp.array[real]
    inverse: wp.array[real]


@dataclasses.dataclass(frozen=True)
class Factor:
    """A factored matrix.

    Attributes:
        arrays: L and D.
        diagonal: Diagonal of the matrix for all nodes [N/m], on the host, shape (nodes,).
        row: Row of each node, -1 for one that is not free, on the host, shape (nodes,).
        free: Which nodes are free, on the host, shape (nodes,), bool.
        lu: The factors of SciPy.
        sought: Intermediate solutions in the order of elimination, shape (worlds * rows,).
        blocks: The matrix factored once more, by blocks, for many threads; None for one thread, or a diagonal.
    """

    arrays: FactorArrays
    diagonal: np.ndarray
    row: np.ndarray
    free: np.ndarray
    lu: SuperLU
    sought: wp.array
    blocks: Blocks | None


def factorise(A: csc_matrix, free: np.ndarray, position: np.ndarray, worlds: int, device: wp.Device) -> Factor:
    """Factor the rows and columns of A that belong to free nodes.

    Args:
        A: Symmetric positive definite matrix [N/m], shape (nodes, nodes).
        free: Which nodes are neither fixed nor bound to bones, shape (nodes,), bool.
        position: Positions of the nodes [m], shape (nodes, 3).
        worlds: Number of worlds that will solve with it.
        device: Device of the arrays.
    """
    nodes = np.flatnonzero(free)
    symmetric = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    A_free = A[nodes][:, nodes].tocsc()
    lu = splu(A_free, **symmetric)
    order = np.argsort(lu.perm_c)
    if not np.array_equal(lu.perm_r, lu.perm_c):
        raise ValueError("projective dynamics: the matrix of the global step is not positive definite")
    lower = lu.L.tocsc()
    lower.sort_indices()
    lower = (lower - diags(lower.diagonal())).tocsc()
    lower.eliminate_zeros()
    arrays = FactorArrays()

    def array(values: np.ndarray, dtype: type) -> wp.array:
        return wp.array(values.astype(np.int32 if dtype is int else real_numpy), dtype=dtype, device=device)

    arrays.node, arrays.start, arrays.row = (array(a, int) for a in (nodes[order], lower.indptr, lower.indices))
    arrays.panel = array(_panels(lower), int)
    arrays.value, arrays.inverse = array(lower.data, real), array(1.0 / lu.U.diagonal(), real)
    sought = wp.zeros(worlds * len(nodes), dtype=NODE, device=device)
    row = np.full(len(free), -1)
    row[nodes[order]] = np.arange(len(nodes))
    blocks = None
    if parallel(device) and lower.nnz:
        blocks = eliminate(A_free, position[nodes], nodes, worlds, device)
    return Factor(arrays, A.diagonal(), row, free, lu, sought, blocks)


def split(L: csr_matrix) -> dia_matrix:
    """A diagonal D' that replaces L, and with which the iteration converges for every time step and on every mesh.

    D'_ii = max(L_ii, sum_j |L_ij| / 2): 2 D' - L is diagonally dominant, so that the spectral radius of
    (M / h^2 + D')^-1 (D' - L) is below 1. With D' = diag L, as in eq. 21 of the soft multi-body paper, it is not below
    1 on meshes with obtuse angles.
    """
    return diags(np.maximum(L.diagonal(), np.abs(L).sum(axis=1).A1 / 2.0))


def _panels(lower: csc_matrix) -> np.ndarray:
    """First columns of panels; four columns form a panel if each has as rows the next column and the rows of that."""
    start, rows = lower.indptr, lower.indices
    length = np.diff(start)
    follows = np.zeros(len(length), dtype=bool)  # a column continues the one before
    for j in np.flatnonzero(length[:-1] == length[1:] + 1) + 1:
        follows[j] = np.array_equal(rows[start[j - 1] + 1 : start[j]], rows[start[j] : start[j + 1]])
        follows[j] &= rows[start[j - 1]] == j
    first, j = [], 0
    while j < len(length):
        first.append(j)
        j += 4 if j + 4 <= len(length) and follows[j + 1 : j + 4].all() else 1
    return np.array([*first, len(length)])


def solve(factor: Factor, scaling: wp.array, active: wp.array, b: wp.array, x_out: wp.array, device: wp.Device) -> None:
    """Solve (s A) x = b in all worlds that are active.

    Args:
        factor: The factor of A.
        scaling: The number s of every world, shape (worlds,).
        active: Worlds with a 1 are solved, shape (worlds,).
        b: Right-hand sides [N], all worlds in one row; entries after the nodes of a world are ignored.
        x_out: The solution [m], all worlds in one row; nothing is written for nodes that are not free.
        device: Device of all arrays.
    """
    worlds = active.size
    inputs = [factor.arrays, scaling, active, b]
    if factor.blocks is not None:
        solve_blocks(factor.blocks, scaling, active, b, x_out, device)
    elif factor.arrays.row.size:
        launch(solve_kernel, worlds, inputs, [factor.sought, x_out], device)
    else:
        launch(divide_kernel, (worlds, factor.arrays.node.size), inputs, [x_out], device)


@wp.kernel(enable_backward=False)
def divide_kernel(
    # model
    factor: FactorArrays,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    b: wp.array[NODE],
    # out
    x_out: wp.array[NODE],
):
    """D x = b / s, for a matrix that is diagonal."""
    w, j = wp.tid()
    if active[w] == 0:
        return
    k = w * (b.shape[0] / active.shape[0]) + factor.node[j]
    x_out[k] = (factor.inverse[j] / scaling[w]) * b[k]


@wp.kernel(enable_backward=False)
def solve_kernel(
    # model
    factor: FactorArrays,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    b: wp.array[NODE],
    # out
    sought_out: wp.array[NODE],
    x_out: wp.array[NODE],
):
    """L D L^T x = b / s: down the columns of L, then up."""
    w = wp.tid()
    if active[w] == 0:
        return
    rows = factor.node.shape[0]
    first = w * rows
    nodes = b.shape[0] / active.shape[0]
    for j in range(rows):
        sought_out[first + j] = b[w * nodes + factor.node[j]]
    panels = factor.panel.shape[0] - 1
    for k in range(panels):
        j = factor.panel[k]
        if factor.panel[k + 1] - j == 4:
            down_four(factor, first, j, sought_out)
        else:
            for c in range(j, factor.panel[k + 1]):
                down_one(factor, first, c, sought_out)
    for n in range(panels):
        k = panels - 1 - n
        j = factor.panel[k]
        if factor.panel[k + 1] - j == 4:
            up_four(factor, first, j, sought_out)
        else:
            for c in range(factor.panel[k + 1] - j):
                up_one(factor, first, factor.panel[k + 1] - 1 - c, sought_out)
    share = real(1.0) / scaling[w]
    for j in range(rows):
        x_out[w * nodes + factor.node[j]] = scale(share, sought_out[first + j])


@wp.func
def down_one(factor: FactorArrays, first: int, j: int, x: wp.array[NODE]):
    """Subtract column j times unknown j from all rows below."""
    y = x[first + j]
    for p in range(factor.start[j], factor.start[j + 1]):
        deposit(x, first + index(factor.row, p), -item(factor.value, p), y)


@wp.func
def up_one(factor: FactorArrays, first: int, j: int, x: wp.array[NODE]):
    """Unknown j from the unknowns below it."""
    y = scale(factor.inverse[j], x[first + j])
    for p in range(factor.start[j], factor.start[j + 1]):
        y = multiply_add(y, -item(factor.value, p), fetch(x, first + index(factor.row, p)))
    x[first + j] = y


@wp.func
def down_four(factor: FactorArrays, first: int, j: int, x: wp.array[NODE]):
    """`down_one` of the four columns of a panel at once: each row below is read and written only once for all four."""
    p0 = factor.start[j]
    p1 = factor.start[j + 1]
    p2 = factor.start[j + 2]
    p3 = factor.start[j + 3]
    y0 = fetch(x, first + j)
    y1 = multiply_add(fetch(x, first + j + 1), -item(factor.value, p0), y0)
    y2 = multiply_add(fetch(x, first + j + 2), -item(factor.value, p0 + 1), y0)
    y2 = multiply_add(y2, -item(factor.value, p1), y1)
    y3 = multiply_add(fetch(x, first + j + 3), -item(factor.value, p0 + 2), y0)
    y3 = multiply_add(y3, -item(factor.value, p1 + 1), y1)
    y3 = multiply_add(y3, -item(factor.value, p2), y2)
    x[first + j + 1] = y1
    x[first + j + 2] = y2
    x[first + j + 3] = y3
    for k in range(factor.start[j + 4] - p3):
        i = first + index(factor.row, p3 + k)
        y = multiply_add(fetch(x, i), -item(factor.value, p0 + 3 + k), y0)
        y = multiply_add(y, -item(factor.value, p1 + 2 + k), y1)
        y = multiply_add(y, -item(factor.value, p2 + 1 + k), y2)
        x[i] = multiply_add(y, -item(factor.value, p3 + k), y3)


@wp.func
def up_four(factor: FactorArrays, first: int, j: int, x: wp.array[NODE]):
    """`up_one` of the four columns of a panel at once."""
    p0 = factor.start[j]
    p1 = factor.start[j + 1]
    p2 = factor.start[j + 2]
    p3 = factor.start[j + 3]
    y0 = scale(factor.inverse[j], fetch(x, first + j))
    y1 = scale(factor.inverse[j + 1], fetch(x, first + j + 1))
    y2 = scale(factor.inverse[j + 2], fetch(x, first + j + 2))
    y3 = scale(factor.inverse[j + 3], fetch(x, first + j + 3))
    for k in range(factor.start[j + 4] - p3):
        y = fetch(x, first + index(factor.row, p3 + k))
        y0 = multiply_add(y0, -item(factor.value, p0 + 3 + k), y)
        y1 = multiply_add(y1, -item(factor.value, p1 + 2 + k), y)
        y2 = multiply_add(y2, -item(factor.value, p2 + 1 + k), y)
        y3 = multiply_add(y3, -item(factor.value, p3 + k), y)
    y2 = multiply_add(y2, -item(factor.value, p2), y3)
    y1 = multiply_add(y1, -item(factor.value, p1 + 1), y3)
    y1 = multiply_add(y1, -item(factor.value, p1), y2)
    y0 = multiply_add(y0, -item(factor.value, p0 + 2), y3)
    y0 = multiply_add(y0, -item(factor.value, p0 + 1), y2)
    y0 = multiply_add(y0, -item(factor.value, p0), y1)
    x[first + j] = y0
    x[first + j + 1] = y1
    x[first + j + 2] = y2
    x[first + j + 3] = y3
