"""Arrays of MINRES iterations."""

import dataclasses

import warp as wp

from warpbots.numerics import NODE
from warpbots.solvers.projective.iterate.anderson_arrays import chunks_of

__all__ = ["Krylov", "KrylovArrays", "krylov"]


@wp.struct
class KrylovArrays:
    """State of the iterations of all islands, shape (worlds * components,) unless given.

    Vectors have all worlds in one row, shape (worlds * stride,).

    active: 1 while an island iterates.
    running: 1 while an island of a world iterates, shape (worlds,).
    any: Number of islands that iterate, shape (1,).
    moves: 1 for an island that takes part in this iteration, which may be its last.
    converged: 1 for an island whose iteration has converged.
    iterations: Number of iterations so far.
    pressed: 1 for an island with an active contact.
    first: Norm of g in A^-1, which is the initial residual.
    eta: Norm of the residual, with a sign.
    gamma: gamma_j+1 and gamma_j, vector.
    delta: delta_j.
    cosine: c_j and c_j-1, vector.
    sine: s_j and s_j-1, vector.
    alpha: Column of the triangular matrix, from its diagonal upwards, vector.
    length: Length of the step along w.
    sum: Partial sums of a product, shape (worlds * components * chunks,).
    v: v_j, and then v_j+1.
    v_last: The vector v before.
    z: z_j / gamma_j.
    y: z_j+1.
    q: -H z_j.
    w: Direction of the present step.
    w_last: Direction of the step before.
    zero: A zero vector.
    """

    active: wp.array[int]
    running: wp.array[int]
    any: wp.array[int]
    moves: wp.array[int]
    converged: wp.array[int]
    iterations: wp.array[int]
    pressed: wp.array[int]
    first: wp.array[wp.float64]
    eta: wp.array[wp.float64]
    gamma: wp.array[wp.vec2d]
    delta: wp.array[wp.float64]
    cosine: wp.array[wp.vec2d]
    sine: wp.array[wp.vec2d]
    alpha: wp.array[wp.vec3d]
    length: wp.array[wp.float64]
    sum: wp.array[wp.float64]
    v: wp.array[NODE]
    v_last: wp.array[NODE]
    z: wp.array[NODE]
    y: wp.array[NODE]
    q: wp.array[NODE]
    w: wp.array[NODE]
    w_last: wp.array[NODE]
    zero: wp.array[NODE]


@dataclasses.dataclass(frozen=True)
class Krylov:
    """Arrays of an iteration.

    Attributes:
        arrays: State of the iteration.
        worlds: Number of worlds.
        units: Largest number of islands in all worlds.
        count: Nodes of one world.
        chunks: Number of chunks into which sums are divided.
        device: Device of the arrays.
    """

    arrays: KrylovArrays
    worlds: int
    units: int
    count: int
    chunks: int
    device: wp.Device


def krylov(worlds: int, components: int, count: int, stride: int, device: wp.Device) -> Krylov:
    """Arrays for an iteration.

    Args:
        worlds: Number of worlds.
        components: Components of one world.
        count: Nodes of one world.
        stride: Entries of a vector of one world, of which nodes are the first.
        device: Device of the arrays.
    """
    chunks, units = chunks_of(count, device), worlds * components
    arrays = KrylovArrays()
    for name, variable in KrylovArrays.vars.items():
        dtype = variable.type.dtype
        sizes = {"any": 1, "running": worlds, "sum": units * chunks}
        size = sizes.get(name, worlds * stride if dtype is NODE else units)
        setattr(arrays, name, wp.zeros(size, dtype=dtype, device=device))
    return Krylov(arrays, worlds, units, count, chunks, device)
