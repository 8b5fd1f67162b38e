"""The constant matrix A = M / h^2 + L of projective dynamics, factored once: the global step (Bouaziz et al. 2014).

A couples nodes and not their coordinates, so that three right-hand sides go through one factor of n rows. It is
factored on the host by SuperLU in its symmetric mode, A = L D L^T after a permutation, and solved with on the device.
Split, L is replaced by a diagonal (eq. 21 of the soft multi-body paper), and every node is solved for on its own.
"""

import dataclasses

import numpy as np
import warp as wp
from scipy.sparse import csc_matrix, csr_matrix, dia_matrix, diags
from scipy.sparse.linalg import SuperLU, splu

from warpbots.math import NODE, launch, real, real_numpy
from warpbots.math.lanes import deposit, fetch, index, item, multiply_add, scale

__all__ = ["Factor", "factorise", "solve", "split"]


@wp.struct
class FactorArrays:
    """L D L^T of the matrix of one world, whose rows are the free nodes, in the order of elimination.

    node: Node of a row, shape (rows,).
    start: First entry of a column of L below the diagonal, one more for the end, shape (rows + 1,).
    row: Row of an entry, shape (entries,).
    value: Its value [1], likewise.
    inverse: Inverse of the diagonal of D [m/N], shape (rows,).
    """

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
        lu: The factors as SciPy has them.
        sought: Solutions in the order of elimination, shape (worlds * rows,).
    """

    arrays: FactorArrays
    diagonal: np.ndarray
    row: np.ndarray
    free: np.ndarray
    lu: SuperLU
    sought: wp.array


def factorise(A: csc_matrix, free: np.ndarray, worlds: int, device: wp.Device) -> Factor:
    """Factor the rows and columns of A that belong to free nodes.

    Args:
        A: Symmetric positive definite matrix [N/m], shape (nodes, nodes).
        free: Which nodes are neither fixed nor bound to bones, shape (nodes,), bool.
        worlds: Number of worlds that will solve with it.
        device: Device of the arrays.
    """
    nodes = np.flatnonzero(free)
    symmetric = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    lu = splu(A[nodes][:, nodes].tocsc(), **symmetric)
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
    arrays.value, arrays.inverse = array(lower.data, real), array(1.0 / lu.U.diagonal(), real)
    sought = wp.zeros(worlds * len(nodes), dtype=NODE, device=device)
    row = np.full(len(free), -1)
    row[nodes[order]] = np.arange(len(nodes))
    return Factor(arrays, A.diagonal(), row, free, lu, sought)


def split(L: csr_matrix) -> dia_matrix:
    """A diagonal D' in the place of L, with which the iteration converges at every time step and on every mesh.

    D'_ii = max(L_ii, sum_j |L_ij| / 2): 2 D' - L is diagonally dominant, so that the spectral radius of
    (M / h^2 + D')^-1 (D' - L) is below 1. With D' = diag L, as in eq. 21 of the soft multi-body paper, it is not on
    meshes with obtuse angles.
    """
    return diags(np.maximum(L.diagonal(), np.abs(L).sum(axis=1).A1 / 2.0))


def solve(factor: Factor, scaling: wp.array, active: wp.array, b: wp.array, x_out: wp.array, device: wp.Device) -> None:
    """Solve (s A) x = b in all worlds that are active; nodes that are not free get 0.

    Args:
        factor: Of A.
        scaling: The number s of every world, shape (worlds,).
        active: Worlds with a 1 are solved, shape (worlds,).
        b: Right-hand sides [N], all worlds in one row; what comes after the nodes of a world does not count.
        x_out: Where the solution goes [m], likewise; nothing is written for nodes that are not free.
        device: Device of all arrays.
    """
    worlds = active.size
    inputs = [factor.arrays, scaling, active, b]
    if factor.arrays.row.size:
        launch(solve_kernel, worlds, inputs, [factor.sought, x_out], device)
    else:
        launch(divide_kernel, (worlds, factor.arrays.node.size), inputs, [x_out], device)


@wp.kernel(enable_backward=False)
def divide_kernel(
    factor: FactorArrays, scaling: wp.array[real], active: wp.array[int], b: wp.array[NODE], x_out: wp.array[NODE]
):  # fmt: skip
    """D x = b / s, for a matrix that is diagonal."""
    w, j = wp.tid()
    if active[w] == 0:
        return
    k = w * (b.shape[0] / active.shape[0]) + factor.node[j]
    x_out[k] = (factor.inverse[j] / scaling[w]) * b[k]


@wp.kernel(enable_backward=False)
def solve_kernel(
    factor: FactorArrays,
    scaling: wp.array[real],
    active: wp.array[int],
    b: wp.array[NODE],
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
    for j in range(rows):
        y = sought_out[first + j]
        for p in range(factor.start[j], factor.start[j + 1]):
            deposit(sought_out, first + index(factor.row, p), -item(factor.value, p), y)
    for n in range(rows):
        j = rows - 1 - n
        y = scale(factor.inverse[j], sought_out[first + j])
        for p in range(factor.start[j], factor.start[j + 1]):
            y = multiply_add(y, -item(factor.value, p), fetch(sought_out, first + index(factor.row, p)))
        sought_out[first + j] = y
        x_out[w * nodes + factor.node[j]] = scale(real(1.0) / scaling[w], y)
