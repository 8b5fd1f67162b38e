"""Projections of forces, and of the motion at the end of a step, onto the directions that constraints allow.

A projection is its own adjoint.

Forces are projected at every stage, so that a scheme keeps its order of accuracy. Positions and velocities are
projected at the end of a step, because contact or the initial velocity may have moved masses off their constraints.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, vector
from warpbots.scene import FREEDOMS
from warpbots.solvers.projection import projection

__all__ = ["FREE", "adj_project_end_kernel", "project_end_kernel", "project_forces_kernel"]

FREE = len(FREEDOMS)
"""Freedom of a mass without constraint; any other has the index of its freedom in `FREEDOMS`."""


@functools.cache
def project_forces_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): projects forces, or gradients with respect to forces, in place."""
    vec, project = vector(dim), projection(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.held_forces_{dim}d"), enable_backward=False)
    def project_forces(
        # model
        held: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        # out
        force_out: wp.array[NODE],
    ):
        """f = project(f) for each held mass, onto the directions in which its constraint allows motion."""
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        f = force_out[i]
        a = vec()
        for c in range(wp.static(dim)):
            a[c] = f[c]
        a = project(a, freedom[n], direction[n])
        for c in range(wp.static(dim)):
            f[c] = a[c]
        force_out[i] = f

    return project_forces


@functools.cache
def project_end_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): projects the displacement and the velocity at the end of a step, in place."""
    vec, project = vector(dim), projection(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.held_end_{dim}d"), enable_backward=False)
    def project_end(
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
        """x' = x + project(x' - x), v' = project(v'); a fixed mass keeps its position to the last bit."""
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        x_out[i] = x[i] + project(x_out[i] - x[i], freedom[n], direction[n])
        v_out[i] = project(v_out[i], freedom[n], direction[n])

    return project_end


@functools.cache
def adj_project_end_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held masses): adjoint of `project_end_kernel`."""
    vec, project = vector(dim), projection(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.adj_held_end_{dim}d"), enable_backward=False)
    def adj_project_end(
        # model
        held: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        # out
        x_adj_out: wp.array[vec],
        ended_x_adj_out: wp.array[vec],
        ended_v_adj_out: wp.array[vec],
    ):
        """x* += x'* - project(x'*), x'* = project(x'*), v'* = project(v'*).

        An asterisk marks the gradient with respect to a quantity; x' and v' are the motion at the end of the step.
        """
        w, k = wp.tid()
        n = held[k]
        i = w * freedom.shape[0] + n
        left = project(ended_x_adj_out[i], freedom[n], direction[n])
        x_adj_out[i] = x_adj_out[i] + ended_x_adj_out[i] - left
        ended_x_adj_out[i] = left
        ended_v_adj_out[i] = project(ended_v_adj_out[i], freedom[n], direction[n])

    return adj_project_end
