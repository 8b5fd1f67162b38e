"""L D L^T by blocks for a device with many threads: a solve consists of a few products of matrices and vectors.

The nodes of a block of the dissection (`nested_dissection.py`) are eliminated at once. Let J be the nodes of a block,
and B the later nodes that share an element with this block or a block below it. A front F holds what remains of A for J
and B when all blocks below are eliminated (Duff & Reid 1983, "The multifrontal solution of indefinite sparse symmetric
linear equations"), and

    D_J = F_JJ,   L_BJ = F_BJ F_JJ^-1,   F_BB - L_BJ F_JB  goes to the block above.

D^-1 is stored instead of a factor of D, as in partitioned inverses (Alvarado, Pothen & Schreiber 1993, "Highly parallel
sparse triangular solution"), so that no node of a block waits for another:

    y_J = b_J - sum over blocks K below of L_JK y_K,   x_J = D_J^-1 y_J - L_BJ^T x_B.

All blocks of a level are solved in one launch, with a few threads for each row. Threads only read the results of
earlier launches, so that the result is the same to the bit in every order of threads.
"""

import dataclasses

import numpy as np
import warp as wp
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import coo_matrix, csc_matrix

from warpbots.numerics import NODE, launch_lanes, real, real_numpy, sum_of_lanes
from warpbots.numerics.simd import fetch, index, item, multiply_add, scale
from warpbots.solvers.projective.iterate.nested_dissection import Block, blocks_of

__all__ = ["Blocks", "eliminate", "solve_blocks"]

_LANES = 64  # threads of a row
_sum = sum_of_lanes(NODE)


@wp.struct
class BlockArrays:
    """L and D^-1 of the matrix of one world; rows in the order of elimination.

    bottom: Number of rows of the lowest level, for which y = b.
    node: Node of a row, shape (rows,).
    start: First entry of L in a row, and the end of the last row, shape (rows + 1,).
    column: Column of an entry.
    lower: Value of an entry [1].
    block: Block of a row, shape (rows,).
    first: First row of a block, and the end of the last block, shape (blocks + 1,).
    edge: First entry of a block in `beyond`, and the end of the last block, shape (blocks + 1,).
    beyond: Nodes B of each block that are eliminated later and touch the block or a block below it.
    place: First entry of a block in `upper`, shape (blocks,).
    upper: Row after row of (D^-1, -L^T) of a block [m/N, 1].
    """

    bottom: int
    node: wp.array[int]
    start: wp.array[int]
    column: wp.array[int]
    lower: wp.array[real]
    block: wp.array[int]
    first: wp.array[int]
    edge: wp.array[int]
    beyond: wp.array[int]
    place: wp.array[int]
    upper: wp.array[real]


@dataclasses.dataclass(frozen=True)
class Blocks:
    """A matrix factored by blocks.

    Attributes:
        arrays: L and D^-1.
        levels: First row of every level, and the end of the last level; the last level is eliminated last.
        reduced: y, shape (worlds * rows,).
    """

    arrays: BlockArrays
    levels: list[int]
    reduced: wp.array


def eliminate(A: csc_matrix, position: np.ndarray, node: np.ndarray, worlds: int, device: wp.Device) -> Blocks:
    """Factor a symmetric positive definite matrix by blocks.

    Args:
        A: The matrix [N/m], shape (n, n).
        position: Positions of the nodes of the rows [m], used only to find an order with few entries, shape (n, 3).
        node: Node of a row, shape (n,).
        worlds: Number of worlds that will solve with it.
        device: Device of the arrays.

    Raises:
        ValueError: The matrix is not positive definite.
    """
    levels = _levels(blocks_of(A.tocsr(), position, worlds))
    blocks = [block for level in levels for block in level]
    order = np.concatenate([block.nodes for block in blocks])
    row = np.empty(len(order), dtype=np.int32)
    row[order] = np.arange(len(order))
    size = [len(block.nodes) for block in blocks]
    first, edge = _ends(size), _ends([len(block.beyond) for block in blocks])
    inverse, lower = _fronts(A.tocsr()[order][:, order].tocsr(), blocks, row, first)
    beyond = np.concatenate([row[block.beyond] for block in blocks])
    entries = [np.repeat(beyond[edge[k] : edge[k + 1]], size[k]) for k in range(len(blocks))]
    columns = [np.tile(np.arange(first[k], first[k + 1], dtype=np.int32), len(L)) for k, L in enumerate(lower)]
    values = np.concatenate([L.reshape(-1) for L in lower])
    indices = np.concatenate(entries), np.concatenate(columns)
    L = coo_matrix((values, indices), shape=A.shape).tocsr()
    upper = [np.hstack([D, -L.T]).reshape(-1) for D, L in zip(inverse, lower, strict=True)]

    def array(values: np.ndarray, dtype: type = int) -> wp.array:
        return wp.array(values.astype(np.int32 if dtype is int else real_numpy), dtype=dtype, device=device)

    arrays = BlockArrays()
    counts = [sum(len(block.nodes) for block in level) for level in levels]
    arrays.bottom = counts[0]
    arrays.node, arrays.beyond = array(node[order]), array(node[order][beyond])
    arrays.start, arrays.column, arrays.lower = array(L.indptr), array(L.indices), array(L.data, real)
    arrays.block, arrays.first, arrays.edge = array(np.repeat(np.arange(len(blocks)), size)), array(first), array(edge)
    arrays.place, arrays.upper = array(_ends([len(u) for u in upper])[:-1]), array(np.concatenate(upper), real)
    reduced = wp.zeros(worlds * len(order), dtype=NODE, device=device)
    return Blocks(arrays, list(_ends(counts)), reduced)


def _ends(counts: np.ndarray) -> np.ndarray:
    """Starts of consecutive parts with the sizes `counts`, and the end of the last part."""
    return np.concatenate([[0], np.cumsum(counts)])


def _levels(last: Block) -> list[list[Block]]:
    """Blocks below and including `last`, by level, in the order of elimination."""
    levels = [[last]]
    while below := [block for above in levels[-1] for block in above.below]:
        levels.append(below)
    return levels[::-1]


def _fronts(A: csc_matrix, blocks: list[Block], row: np.ndarray, first: np.ndarray) -> tuple[list, list]:
    """D^-1 and L of every block, in double precision."""
    inverse, lower, left = [], [], {}
    place = np.empty(A.shape[0], dtype=int)
    for k, block in enumerate(blocks):
        n, own, beyond = len(block.nodes), A[first[k] : first[k + 1]].tocoo(), row[block.beyond]
        rows = np.concatenate([np.arange(first[k], first[k + 1]), beyond])
        place[rows] = np.arange(len(rows))
        front = np.zeros((len(rows), len(rows)))
        later = own.col >= first[k]
        i, j = own.row[later], place[own.col[later]]
        front[i, j] = front[j, i] = own.data[later]
        for child in block.below:
            into = place[row[child.beyond]]
            front[np.ix_(into, into)] += left.pop(id(child))
        inverse.append(_inverse(front[:n, :n]))
        lower.append(front[n:, :n] @ inverse[-1])
        left[id(block)] = front[n:, n:] - lower[-1] @ front[:n, n:]
    return inverse, lower


def _inverse(D: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix by its Cholesky factor."""
    if not len(D):  # a cut between bodies that share nothing
        return D
    factor, failed = dpotrf(D, lower=1)
    if failed:
        raise ValueError("projective dynamics: the matrix of the global step is not positive definite")
    half = np.tril(dpotri(factor, lower=1)[0])
    return half + np.tril(half, -1).T


def solve_blocks(
    blocks: Blocks, scaling: wp.array, active: wp.array, b: wp.array, x_out: wp.array, device: wp.Device
) -> None:  # fmt: skip
    """Solve (s A) x = b in all worlds that are active, like `sparse_cholesky.solve`."""
    arrays, levels, worlds = blocks.arrays, blocks.levels, active.size
    spans = [(first, end - first) for first, end in zip(levels[:-1], levels[1:], strict=True)]
    for first, count in spans[1:]:
        launch_lanes(down_kernel, (worlds, count), _LANES, [arrays, first, active, b], [blocks.reduced], device)
    for first, count in reversed(spans):
        inputs = [arrays, first, scaling, active, b, blocks.reduced]
        launch_lanes(up_kernel, (worlds, count), _LANES, inputs, [x_out], device)


@wp.func
def reduced_at(
    blocks: BlockArrays, active: wp.array[int], b: wp.array[NODE], reduced: wp.array[NODE], w: int, j: int
):  # fmt: skip
    """y in row j; in the lowest level y is b."""
    y = NODE()
    if j < blocks.bottom:
        y = fetch(b, w * (b.shape[0] / active.shape[0]) + index(blocks.node, j))
    else:
        y = fetch(reduced, w * blocks.node.shape[0] + j)
    return y


@wp.kernel(enable_backward=False)
def down_kernel(
    # model
    blocks: BlockArrays,
    first: int,
    # state
    active: wp.array[int],
    b: wp.array[NODE],
    # out
    reduced_out: wp.array[NODE],
):
    """y = b - L y in the rows of a level."""
    w, r, lane = wp.tid()
    if active[w] == 0:
        return
    i = first + r
    y = NODE()
    for p in range(blocks.start[i] + lane, blocks.start[i + 1], wp.block_dim()):
        below = reduced_at(blocks, active, b, reduced_out, w, index(blocks.column, p))
        y = multiply_add(y, -item(blocks.lower, p), below)
    total = _sum(y)
    if lane == 0:
        k = w * (b.shape[0] / active.shape[0]) + blocks.node[i]
        reduced_out[w * blocks.node.shape[0] + i] = fetch(b, k) + total


@wp.kernel(enable_backward=False)
def up_kernel(
    # model
    blocks: BlockArrays,
    first: int,
    # state
    scaling: wp.array[real],
    active: wp.array[int],
    b: wp.array[NODE],
    # work
    reduced: wp.array[NODE],
    # out
    x_out: wp.array[NODE],
):
    """x = D^-1 y / s - L^T x in the rows of a level."""
    w, r, lane = wp.tid()
    if active[w] == 0:
        return
    j = first + r
    k = blocks.block[j]
    own = blocks.first[k]
    edge = blocks.edge[k]
    count = blocks.first[k + 1] - own
    size = count + blocks.edge[k + 1] - edge
    v = blocks.place[k] + (j - own) * size
    nodes = w * (b.shape[0] / active.shape[0])
    x = NODE()
    for c in range(lane, count, wp.block_dim()):
        x = multiply_add(x, item(blocks.upper, v + c), reduced_at(blocks, active, b, reduced, w, own + c))
    x = scale(real(1.0) / scaling[w], x)
    for c in range(count + lane, size, wp.block_dim()):
        x = multiply_add(x, item(blocks.upper, v + c), fetch(x_out, nodes + index(blocks.beyond, edge + c - count)))
    total = _sum(x)
    if lane == 0:
        x_out[nodes + blocks.node[j]] = total
