"""The order in which nodes are eliminated from the second derivative, and the entries of its factor L."""

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
    """Rows are the nodes that move, in the order of elimination.

    Attributes:
        node: Node of a row, shape (rows,).
        diagonal: Its pair with itself among all pairs of nodes, shape (rows,).
        start: First entry of a column of L below the diagonal, one more for the end, shape (rows + 1,).
        row: Row of an entry, shape (entries,).
        column: Its column, shape (entries,).
        pair: Its pair among all pairs of nodes, -1 for fill-in, shape (entries,).
        by_row: Entries in the order of their rows, and of their columns within each, shape (entries,).
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
        """First of the entries of each row in `by_row`, one more for the end, shape (rows + 1,)."""
        return np.searchsorted(self.row[self.by_row], np.arange(len(self.node) + 1))

    @property
    def products(self) -> int:
        """Number of block products in a factorisation: one for each two entries of a column."""
        count = np.diff(self.start).astype(int)
        return int((count * (count + 1) // 2).sum())

    @property
    def numbers(self) -> int:
        """Columns of blocks of L in each world."""
        return 3 * len(self.row)

    @property
    def memory(self) -> float:
        """Memory of the values of L in each world [bytes]."""
        return float(wp.types.type_size_in_bytes(NODE) * self.numbers)


def elimination_of(pattern: csr_matrix, fixed: np.ndarray) -> Elimination:
    """Elimination by minimum degree, as for the matrix of the global step.

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
    """Rows in the order of elimination, and L below its diagonal, of an M-matrix, in which no entry cancels."""
    A = A.astype(float)
    A.data[:] = -1.0
    A.setdiag(1.0 + np.diff(A.indptr))
    lu = splu(A, **_SYMMETRIC)
    L = lu.L.tocsc()
    L.setdiag(0.0)
    L.eliminate_zeros()
    L.sort_indices()
    return np.argsort(lu.perm_c), L
