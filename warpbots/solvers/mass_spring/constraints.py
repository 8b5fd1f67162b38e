"""What constraints leave of forces and of the ends of steps: projections, which are their own adjoints.

Forces are restricted at every stage, so that a scheme keeps its order; positions and velocities at the end of a step,
because contact or the initial velocity may have pushed masses where they may not go.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, vector
from warpbots.scene import FREEDOMS

__all__ = ["FREE", "adj_end_restrain_kernel", "end_restrain_kernel", "restrain_kernel"]

FREE = len(FREEDOMS)
"""Freedom of a mass without constraint; those with one have the position of its name in `FREEDOMS`."""

_LINE, _PLANE = wp.constant(FREEDOMS.index("line")), wp.constant(FREEDOMS.index("plane"))


@functools.cache
def _restrict(dim: int) -> wp.Function:
    """Warp function restrict(a, freedom, n): what a constraint leaves of a vector."""
    vec = vector(dim)

    @wp.func
    def restrict(a: vec, freedom: int, n: vec):
        """N (n . a) on a line, a - n (n . a) in a plane, nothing where all is fixed."""
        along = wp.dot(n, a) * n
        left = vec()
        if freedom == _LINE:
            left = along
        if freedom == _PLANE:
            left = a - along
        return left

    return restrict


@functools.cache
def restrain_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): what constraints leave of forces, or of gradients to forces."""
    vec, restrict = vector(dim), _restrict(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.held_forces_{dim}d"), enable_backward=False)
    def restrain(
        # model
        held: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        # out
        force_out: wp.array[NODE],
    ):
        """F = restrict(f)."""
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        f = force_out[i]
        a = vec()
        for c in range(wp.static(dim)):
            a[c] = f[c]
        a = restrict(a, freedom[n], direction[n])
        for c in range(wp.static(dim)):
            f[c] = a[c]
        force_out[i] = f

    return restrain


@functools.cache
def end_restrain_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): what constraints leave of a step."""
    vec, restrict = vector(dim), _restrict(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.held_end_{dim}d"), enable_backward=False)
    def end_restrain(
        # model
        held: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        # state
        x: wp.array[vec],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
    ):
        """X' = x + restrict(x' - x), v' = restrict(v'): what is fixed stays to the last bit."""
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        x_out[i] = x[i] + restrict(x_out[i] - x[i], freedom[n], direction[n])
        v_out[i] = restrict(v_out[i], freedom[n], direction[n])

    return end_restrain


@functools.cache
def adj_end_restrain_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): adjoint of `end_restrain_kernel`."""
    vec, restrict = vector(dim), _restrict(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.adj_held_end_{dim}d"), enable_backward=False)
    def adj_end_restrain(
        # model
        held: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        # out
        x_adj_out: wp.array[vec],
        ended_x_adj_out: wp.array[vec],
        ended_v_adj_out: wp.array[vec],
    ):
        """X* += x'* - restrict(x'*), x'* = restrict(x'*), v'* = restrict(v'*)."""
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        left = restrict(ended_x_adj_out[i], freedom[n], direction[n])
        x_adj_out[i] = x_adj_out[i] + ended_x_adj_out[i] - left
        ended_x_adj_out[i] = left
        ended_v_adj_out[i] = restrict(ended_v_adj_out[i], freedom[n], direction[n])

    return adj_end_restrain
