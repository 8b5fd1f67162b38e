"""Transfer of forces of cables and loads on single particles to the grid (ChainQueen eq. 16), and its adjoint."""

import functools

import warp as wp

from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.mpm.arrays import grid_geometry, motion_arrays
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["adj_force_kernel", "force_kernel"]


@functools.cache
def force_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, forces): transfers the impulses of forces on particles to the grid (ChainQueen eq. 16)."""
    vec = vector(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s, mat = stencil(dim), matrix(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.force_{dim}d"), enable_backward=False)
    def scatter_force(
        # model
        particle: wp.array[int],
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        force: wp.array2d[vec],
        dt: real,
        # out
        momentum_out: wp.array[NODE],
    ):
        """Adds the impulse of the force f_p on each particle p to the nodes around it: (mv)_i += w_ip dt f_p."""
        w, i = wp.tid()
        f = force[w, i]
        if f == vec():
            return
        x = (motion.x[w * grid.particles + particle[i]] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            s.scatter(momentum_out, w * grid.pencils, grid.resolution, x, dt * f, real(0.0), mat())

    return scatter_force


@functools.cache
def adj_force_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, forces): adjoint of `force_kernel`."""
    vec = vector(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s, mat = stencil(dim), matrix(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.force_{dim}d"), enable_backward=False)
    def adj_scatter_force(
        # model
        particle: wp.array[int],
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        force: wp.array2d[vec],
        momentum_adj: wp.array[NODE],
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        force_adj_out: wp.array2d[vec],
    ):
        """Adds f* += dt sum w (mv)_i*, and the slope of the pairing to x*; an asterisk marks a gradient.

        The latter addition is atomic, because several forces may act on a particle.
        """
        w, i = wp.tid()
        r = w * grid.particles + particle[i]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            first = w * grid.pencils
            h_adj, _A_adj = s.gather(momentum_adj, first, grid.resolution, x)
            slope = s.slope(momentum_adj, first, grid.resolution, x, dt * force[w, i], real(0.0), mat())
            if force_adj_out:
                force_adj_out[w, i] += dt * s.momentum(h_adj)
            wp.atomic_add(motion_adj_out.x, r, grid.inv_dx * slope)

    return adj_scatter_force
