"""The order in which nodes are eliminated from the second derivative, and the pattern of the factor L."""

import dataclasses
import functools

import numpy as np
import warp as wp
from scipy.sparse import csc_matrix, csr_matrix
from scipy.sparse.linalg import splu

from warpbots.numerics import NODE

__all__ = ["Elimination", "elimination_of"]

_SYMMETRIC = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}


@dataclasses.dataclass(frozen=True)
class Elimination:
    """An order of elimination; rows are the nodes that move, in this order.

    Attributes:
        node: Node of a row, shape (rows,).
        diagonal: Index, among all pairs of nodes, of the pair of the node of each row with itself, shape (rows,).
        start: First entry of a column of L below the diagonal, and the end of the last column, shape (rows + 1,).
        row: Row of an entry, shape (entries,).
        column: Column of an entry, shape (entries,).
        pair: Index of the pair of nodes of an entry among all pairs, -1 for fill-in, shape (entries,).
        by_row: Entries sorted by their rows, and within each row by their columns, shape (entries,).
    """

    node: np.ndarray
    diagonal: np.ndarray
    start: np.ndarray
    row: np.ndarray
    column: np.ndarray
    pair: np.ndarray
    by_row: np.ndarray

    @functools.cached_property
    def first(self) -> np.ndarray:
        """First entry of each row in `by_row`, and the end of the last row, shape (rows + 1,)."""
        return np.searchsorted(self.row[self.by_row], np.arange(len(self.node) + 1))

    @property
    def products(self) -> int:
        """Number of block products in a factorisation: one for each pair of entries of a column."""
        count = np.diff(self.start).astype(int)
        return int((count * (count + 1) // 2).sum())

    @property
    def numbers(self) -> int:
        """Number of block columns (vectors) that store L in each world."""
        return 3 * len(self.row)

    @property
    def memory(self) -> float:
        """Memory of the values of L in each world [bytes]."""
        return float(wp.types.type_size_in_bytes(NODE) * self.numbers)


def elimination_of(pattern: csr_matrix, fixed: np.ndarray) -> Elimination:
    """Order of elimination by minimum degree, as for the matrix of the global step.

    Args:
        pattern: Which nodes share an element, shape (nodes, nodes); the values number the pairs from 1.
        fixed: Which nodes are fixed, shape (nodes,), bool.
    """
    free = np.flatnonzero(~fixed)
    order, L = _eliminated(pattern[free][:, free].tocsc())
    node = free[order]
    column = np.repeat(np.arange(len(node)), np.diff(L.indptr))
    below = node[L.indices], node[column]
    pair = np.asarray(pattern[below]).reshape(-1).astype(int) - 1 if L.nnz else np.zeros(0, dtype=int)
    diagonal = pattern.diagonal()[node].astype(int) - 1
    return Elimination(node, diagonal, L.indptr, L.indices, column, pair, np.lexsort((column, L.indices)))


def _eliminated(A: csc_matrix) -> tuple[np.ndarray, csc_matrix]:
    """Rows in the order of elimination, and L below its diagonal, for an M-matrix, so that no entry cancels to zero."""
    A = A.astype(float)
    A.data[:] = -1.0
    A.setdiag(1.0 + np.diff(A.indptr))
    lu = splu(A, **_SYMMETRIC)
    L = lu.L.tocsc()
    L.setdiag(0.0)
    L.eliminate_zeros()
    L.sort_indices()
    return np.argsort(lu.perm_c), L
