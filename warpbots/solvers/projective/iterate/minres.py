"""MINRES for the symmetric system H a = g of an adjoint, with A of the global step as preconditioner.

Without contact H is symmetric, but not always positive definite: a step may end at a saddle, such as a compressed bar
that has not buckled yet. In the Krylov space of H, A^-1 and g, the method of minimal residuals (MINRES) finds the
solution with the smallest residual in the norm of A^-1. It stores seven vectors, and H need not be definite (Paige &
Saunders 1975, "Solution of sparse indefinite systems of linear equations"; with a preconditioner Elman, Silvester &
Wathen 2014, "Finite elements and fast iterative solvers"). Lanczos' vectors v_j and z_j = A^-1 v_j turn H into a
tridiagonal matrix with delta_j on and gamma_j beside its diagonal,

    v_j+1 = H z_j - delta_j / gamma_j v_j - gamma_j / gamma_j-1 v_j-1,

and rotations (c_j, s_j) bring this matrix to triangular form as it grows; eta is the norm of the residual.
"""

from collections.abc import Callable

import warp as wp

from warpbots.numerics import NODE, if_then, launch, launch_lanes, real, sum_of_lanes, while_loop
from warpbots.numerics.simd import dot, fetch, multiply_add, scale
from warpbots.solvers.projective.islands import Islands, island_of, root_of, worlds_kernel
from warpbots.solvers.projective.iterate.anderson_arrays import LANES, IterationState
from warpbots.solvers.projective.iterate.convergence import look, retire
from warpbots.solvers.projective.iterate.krylov_arrays import Krylov, KrylovArrays

__all__ = ["hand_over", "minres"]

_ZERO, _ONE = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0))
_sum = sum_of_lanes(wp.float64)


def minres(
    it: Krylov,
    islands: Islands,
    where: wp.array,
    listed: wp.array,
    g: wp.array,
    a: wp.array,
    prepare: Callable[[], None],
    residual: Callable,
    precondition: Callable,
    tolerance: wp.array,
    limit: int,
) -> None:
    """Solve H a = g in islands without an active contact.

    Args:
        it: The iteration.
        islands: The islands.
        where: 1 for an island to solve in, shape (worlds * components,).
        listed: 1 for an active contact, shape (worlds * contacts,).
        g: Right-hand side, shape (worlds * stride,).
        a: The solution at nodes, shape (worlds * stride,).
        prepare: Function that is called first if there is an island to solve in.
        residual: Function of (active, g, a, out): writes g - H a.
        precondition: Function of (active, r, out): writes A^-1 r.
        tolerance: Norm of the residual in A^-1, relative to the norm of g, at which an island has converged, shape
            (worlds * components,).
        limit: Number of iterations after which an island has failed.
    """
    arrays, worlds, units, device = it.arrays, it.worlds, it.units, it.device
    running, each, parts = arrays.running, (worlds, it.count), (units, it.chunks)
    if listed.size:
        launch(press_kernel, (worlds, listed.size // worlds), [islands, listed], [arrays], device)
    launch(begin_kernel, units, [islands, where], [arrays], device)

    def look() -> None:
        launch(worlds_kernel, worlds, [islands, arrays.active], [running], device)

    def product(a: wp.array, b: wp.array) -> None:
        launch_lanes(product_kernel, parts, LANES, [it.count, islands, a, b], [arrays], device)

    def solve() -> None:
        look()
        prepare()
        residual(running, g, arrays.zero, arrays.v)
        precondition(running, arrays.v, arrays.y)
        product(arrays.v, arrays.y)
        launch(start_kernel, units, [it.chunks], [arrays], device)
        launch(scale_kernel, each, [islands], [arrays, a], device)
        while_loop(arrays.any, correct)

    def correct() -> None:
        look()
        residual(running, arrays.zero, arrays.z, arrays.q)
        product(arrays.z, arrays.q)
        launch(project_kernel, units, [it.chunks], [arrays], device)
        launch(extend_kernel, each, [islands], [arrays], device)
        precondition(running, arrays.v, arrays.y)
        product(arrays.v, arrays.y)
        launch(rotate_kernel, units, [it.chunks, tolerance, limit], [arrays], device)
        launch(move_kernel, each, [islands], [arrays, a], device)

    if_then(arrays.any, solve)


def hand_over(it: Krylov, islands: Islands, progress: IterationState) -> None:
    """Leave only unsolved islands to the general iteration, which has just begun."""
    launch(hand_over_kernel, it.worlds, [islands, it.arrays], [progress], it.device)


@wp.func
def first_of(arrays: KrylovArrays, w: int):
    """Index of the first entry of world w in vectors."""
    return w * (arrays.v.shape[0] / arrays.running.shape[0])


@wp.func
def sum_of(arrays: KrylovArrays, w: int, chunks: int):
    """A product as the sum of its partial sums."""
    total = _ZERO
    for c in range(chunks):
        total += arrays.sum[w * chunks + c]
    return total


@wp.func
def stop(arrays: KrylovArrays, w: int, converged: int):
    """End the iteration of an island."""
    arrays.active[w] = 0
    arrays.converged[w] = converged
    wp.atomic_sub(arrays.any, 0, 1)


@wp.kernel(enable_backward=False)
def press_kernel(
    # model
    islands: Islands,
    # work
    listed: wp.array[int],
    # out
    arrays_out: KrylovArrays,
):
    """Mark the islands with an active contact."""
    w, c = wp.tid()
    contacts = listed.shape[0] / arrays_out.running.shape[0]
    if listed[w * contacts + c] == 1:
        arrays_out.pressed[island_of(islands, w, islands.entries + islands.pairs - contacts + c)] = 1


@wp.kernel(enable_backward=False)
def begin_kernel(
    # model
    islands: Islands,
    # work
    where: wp.array[int],
    # out
    arrays_out: KrylovArrays,
):
    """Activate the islands without an active contact in which `where` is 1."""
    u = wp.tid()
    w = u / islands.count
    active = where[u] * (1 - arrays_out.pressed[u])
    arrays_out.pressed[u] = 0  # for the next time
    if root_of(islands, w, u % islands.count) != u:
        active = 0
    arrays_out.active[u] = active
    arrays_out.converged[u] = 0
    arrays_out.iterations[u] = 0
    wp.atomic_add(arrays_out.any, 0, active)


@wp.kernel(enable_backward=False)
def product_kernel(
    # model
    count: int,
    islands: Islands,
    # state
    a: wp.array[NODE],
    b: wp.array[NODE],
    # out
    arrays_out: KrylovArrays,
):
    """Write partial sums of the product a . b of every island over its nodes; points from `count` on are not nodes."""
    w, c, lane = wp.tid()
    if arrays_out.active[w] == 0:
        return
    chunks = arrays_out.sum.shape[0] / arrays_out.active.shape[0]
    world = w / islands.count
    first = first_of(arrays_out, world)
    total = _ZERO
    for part in range(islands.count):
        if root_of(islands, world, part) == w:
            for r in range(islands.first[part], islands.first[part + 1]):
                run = islands.run[r]
                end = wp.min(run[1], count)
                for i in range(run[0] + c * wp.block_dim() + lane, end, chunks * wp.block_dim()):
                    total += wp.float64(dot(fetch(a, first + i), fetch(b, first + i)))
    share = _sum(total)
    if lane == 0:
        arrays_out.sum[w * chunks + c] = share


@wp.kernel(enable_backward=False)
def start_kernel(
    # model
    chunks: int,
    # out
    arrays_out: KrylovArrays,
):
    """Write gamma_1, and start values for all earlier quantities."""
    w = wp.tid()
    if arrays_out.active[w] == 0:
        return
    gamma = wp.sqrt(sum_of(arrays_out, w, chunks))
    arrays_out.gamma[w] = wp.vec2d(gamma, _ONE)
    arrays_out.first[w] = gamma
    arrays_out.eta[w] = gamma
    arrays_out.cosine[w] = wp.vec2d(_ONE, _ONE)
    arrays_out.sine[w] = wp.vec2d(_ZERO, _ZERO)
    if not (gamma > _ZERO):
        stop(arrays_out, w, int(gamma == _ZERO))


@wp.kernel(enable_backward=False)
def scale_kernel(
    # model
    islands: Islands,
    # out
    arrays_out: KrylovArrays,
    a_out: wp.array[NODE],
):
    """Write z_1 / gamma_1, and zero vectors; done by a kernel, as a graph capture does not record fills in branches."""
    w, i = wp.tid()
    u = island_of(islands, w, i)
    if arrays_out.active[u] == 0:
        return
    k = first_of(arrays_out, w) + i
    arrays_out.z[k] = scale(real(_ONE / arrays_out.gamma[u][0]), fetch(arrays_out.y, k))
    arrays_out.v_last[k] = NODE()
    arrays_out.w[k] = NODE()
    arrays_out.w_last[k] = NODE()
    a_out[k] = NODE()


@wp.kernel(enable_backward=False)
def project_kernel(
    # model
    chunks: int,
    # out
    arrays_out: KrylovArrays,
):
    """Write delta_j = z_j . H z_j."""
    w = wp.tid()
    if arrays_out.active[w] == 1:
        arrays_out.delta[w] = -sum_of(arrays_out, w, chunks)


@wp.kernel(enable_backward=False)
def extend_kernel(
    # model
    islands: Islands,
    # out
    arrays_out: KrylovArrays,
):
    """v_j+1."""
    w, i = wp.tid()
    u = island_of(islands, w, i)
    if arrays_out.active[u] == 0:
        return
    k = first_of(arrays_out, w) + i
    gamma = arrays_out.gamma[u]
    v = fetch(arrays_out.v, k)
    y = multiply_add(scale(real(-1.0), fetch(arrays_out.q, k)), -real(arrays_out.delta[u] / gamma[0]), v)
    arrays_out.v[k] = multiply_add(y, -real(gamma[0] / gamma[1]), fetch(arrays_out.v_last, k))
    arrays_out.v_last[k] = v


@wp.kernel(enable_backward=False)
def rotate_kernel(
    # model
    chunks: int,
    # state
    tolerance: wp.array[wp.float64],
    limit: int,
    # out
    arrays_out: KrylovArrays,
):
    """Write the next column of the triangular matrix, and whether an island has converged."""
    w = wp.tid()
    arrays_out.moves[w] = arrays_out.active[w]
    if arrays_out.active[w] == 0:
        return
    gamma = arrays_out.gamma[w][0]
    c = arrays_out.cosine[w]
    s = arrays_out.sine[w]
    delta = arrays_out.delta[w]
    gamma_next = wp.sqrt(wp.max(sum_of(arrays_out, w, chunks), _ZERO))
    before = c[0] * delta - c[1] * s[0] * gamma
    diagonal = wp.sqrt(before * before + gamma_next * gamma_next)
    arrays_out.alpha[w] = wp.vec3d(diagonal, s[0] * delta + c[1] * c[0] * gamma, s[1] * gamma)
    cosine = before / diagonal
    sine = gamma_next / diagonal
    eta = arrays_out.eta[w]
    arrays_out.length[w] = cosine * eta
    arrays_out.eta[w] = -sine * eta
    arrays_out.cosine[w] = wp.vec2d(cosine, c[0])
    arrays_out.sine[w] = wp.vec2d(sine, s[0])
    arrays_out.gamma[w] = wp.vec2d(gamma_next, gamma)
    arrays_out.iterations[w] = arrays_out.iterations[w] + 1
    left = wp.abs(arrays_out.eta[w])
    if left <= tolerance[w] * arrays_out.first[w]:
        stop(arrays_out, w, 1)
    elif not wp.isfinite(left) or arrays_out.iterations[w] == limit:
        stop(arrays_out, w, 0)


@wp.kernel(enable_backward=False)
def move_kernel(
    # model
    islands: Islands,
    # out
    arrays_out: KrylovArrays,
    a_out: wp.array[NODE],
):
    """w_j+1 = (z_j - alpha_2 w_j - alpha_3 w_j-1) / alpha_1, and a step along it."""
    world, i = wp.tid()
    n = island_of(islands, world, i)
    if arrays_out.moves[n] == 0:
        return
    k = first_of(arrays_out, world) + i
    alpha = arrays_out.alpha[n]
    last = fetch(arrays_out.w, k)
    w = multiply_add(fetch(arrays_out.z, k), -real(alpha[1]), last)
    w = multiply_add(w, -real(alpha[2]), fetch(arrays_out.w_last, k))
    w = scale(real(_ONE / alpha[0]), w)
    arrays_out.w[k] = w
    arrays_out.w_last[k] = last
    a_out[k] = multiply_add(fetch(a_out, k), real(arrays_out.length[n]), w)
    if arrays_out.active[n] == 1:
        arrays_out.z[k] = scale(real(_ONE / arrays_out.gamma[n][0]), fetch(arrays_out.y, k))


@wp.kernel(enable_backward=False)
def hand_over_kernel(
    # model
    islands: Islands,
    # work
    arrays: KrylovArrays,
    # out
    progress_out: IterationState,
):
    """Mark solved islands as converged in the general iteration, too."""
    w = wp.tid()
    for c in range(islands.count):
        u = w * islands.count + c
        if arrays.converged[u] == 1:
            retire(progress_out, u, 1, arrays.iterations[u])
    look(islands, progress_out, w)
