"""Adjoints that are not symmetric, solved with a factor of the symmetric part of H.

The drag of a fluid makes H unsymmetric, and MINRES cannot solve with it. The iteration of the step can: for a linear
problem it is GMRES with a short memory (`anderson`). If H has negative or tiny eigenvalues, as where matter under load
ends a step near a point of buckling, a short memory stagnates. So islands that this iteration has not solved in about
the time of a factorisation begin again, and the factor of (H + H^T) / 2 replaces A. What is left to the iteration is
the skew part of H, which is small. The pivots of the factor may have any sign. Where the symmetric part is nearly
singular, the skew part is large beside it, and the iteration diverges: A solves what the factor has not solved soon.

The compliance of contacts follows from A, so worlds with an active contact keep A.
"""

import warp as wp

from warpbots.numerics import NODE, real
from warpbots.solvers.projective.islands import Islands, island_of, root_of
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.iterate.convergence import look, retire
from warpbots.solvers.projective.iterate.coupled_cholesky import CoupledArrays, block_of, put, set_aside

__all__ = ["begin_again_kernel", "clear_kernel", "set_aside_kernel", "symmetrise_kernel", "untouched_kernel"]


@wp.kernel(enable_backward=False)
def untouched_kernel(
    # work
    listed: wp.array[int],
    # out
    factor_out: CoupledArrays,
):
    """Mark the worlds without an active contact, which may be solved with a factor."""
    w = wp.tid()
    contacts = listed.shape[0] / factor_out.factored.shape[0]
    free = int(1)
    for c in range(contacts):
        free = wp.min(free, 1 - listed[w * contacts + c])
    factor_out.factored[w] = free


@wp.kernel(enable_backward=False)
def set_aside_kernel(
    # model
    islands: Islands,
    # work
    progress: IterationState,
    # out
    factor_out: CoupledArrays,
):
    """Write which islands are not solved yet, and the number of their iterations so far."""
    u = wp.tid()
    sought = int(root_of(islands, u / islands.count, u % islands.count) == u)
    set_aside(factor_out, u, sought, progress.converged[u], progress.iterations[u])


@wp.kernel(enable_backward=False)
def begin_again_kernel(
    # model
    islands: Islands,
    # out
    factor_out: CoupledArrays,
    progress_out: IterationState,
):
    """Of all islands, which have just begun, leave only the unsolved ones; choose the worlds that need a factor."""
    w = wp.tid()
    for c in range(islands.count):
        u = w * islands.count + c
        if factor_out.unsolved[u] == 0:
            retire(progress_out, u, factor_out.solved[u], factor_out.spent[u])
        wp.atomic_sub(factor_out.any, 0, factor_out.unsolved[u])
    look(islands, progress_out, w)
    factor_out.factored[w] = factor_out.factored[w] * progress_out.running[w]
    factor_out.sound[w] = 0


@wp.kernel(enable_backward=False)
def clear_kernel(
    # model
    islands: Islands,
    factor: CoupledArrays,
    # out
    z_out: wp.array[NODE],
):
    """Set the points of unsolved islands to zero."""
    w, i = wp.tid()
    if factor.unsolved[island_of(islands, w, i)] == 1:
        z_out[w * (z_out.shape[0] / factor.factored.shape[0]) + i] = NODE()


@wp.kernel(enable_backward=False)
def symmetrise_kernel(
    # model
    mirror: wp.array[int],
    # work
    column: wp.array[NODE],
    # out
    column_out: wp.array[NODE],
):
    """(K + K^T) / 2, three columns for each pair of nodes."""
    w, p = wp.tid()
    pairs = w * mirror.shape[0]
    K = block_of(column, 3 * (pairs + p)) + wp.transpose(block_of(column, 3 * (pairs + mirror[p])))
    put(column_out, 3 * (pairs + p), real(0.5) * K)
