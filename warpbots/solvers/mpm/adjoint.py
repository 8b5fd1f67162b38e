"""Adjoints of the transfers, derived by hand from the pairing of `stencil_3d`.

For a loss L write x* for dL/dx. The grid-to-particle transfer reads the grid velocities v_i linearly,

    L = sum_i w_i (v*' + (4/dx) C*' d_i) . v_i,   v*' = v* + dt x*,   C*' = C* + dt F* F^T,

which is the pairing with q = v*', A = (4/dx) C*' (d in cells). So v_i* is a scatter and the position's gradient the
slope of the pairing. The particle-to-grid transfer is the pairing of its own q and A with the nodes' gradients, so q*
and A* are a gather and the position's gradient again a slope. In both, dL/dx_p has one more term, -A^T sum_i w_i h_i,
because d_i = x_i - x_p.

Appendix A.2 of the ChainQueen paper prints the same chain with slips (A95, A100); the one here is tested against
float64 differences and against Warp's generated adjoint.
"""

import functools

import warp as wp

from warpbots.materials import elasticity
from warpbots.math import NODE, matrix, real
from warpbots.solvers.mpm.arrays import actuation_arrays, constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.transfer import active_stress, stencil

__all__ = ["adj_g2p_kernel", "adj_p2g_kernel"]


@functools.cache
def adj_g2p_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, particles): adjoint of `g2p_kernel`."""
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.transfer_{dim}d"), enable_backward=False)
    def adj_g2p(
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        moved: MotionArrays,
        velocity: wp.array[NODE],
        moved_adj: MotionArrays,
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        velocity_adj_out: wp.array[NODE],
    ):
        """v_i* += w (v*' + (4/dx) C*' d), x* += x*' + slope - A^T v', F* += (I + dt C')^T F*'."""
        w, p = wp.tid()
        x = (motion.x[w, p] - grid.lower) / grid.dx
        if not s.reach(x, grid.resolution):
            return
        F_adj = moved_adj.F[w, p]
        x_adj = moved_adj.x[w, p]
        A = (real(4.0) / grid.dx) * (moved_adj.C[w, p] + dt * (F_adj @ wp.transpose(motion.F[w, p])))
        q = s.node(moved_adj.v[w, p] + dt * x_adj, real(0.0))
        first = w * grid.nodes
        s.scatter(velocity_adj_out, first, grid.resolution, x, q, A)
        slope = s.slope(velocity, first, grid.resolution, x, q, A) - wp.transpose(A) @ moved.v[w, p]
        motion_adj_out.x[w, p] += x_adj + slope / grid.dx
        motion_adj_out.F[w, p] += F_adj + dt * (wp.transpose(moved.C[w, p]) @ F_adj)

    return adj_g2p


@functools.cache
def adj_p2g_kernel(law: str, incompressibility: int, dim: int) -> wp.Kernel:
    """Kernel over (worlds, particles of one law): adjoint of `p2g_kernel`."""
    mat = matrix(dim)
    MotionArrays, ConstitutionArrays = motion_arrays(dim), constitution_arrays()
    ActuationArrays, GridGeometry = actuation_arrays(dim), grid_geometry(dim)
    s, active = stencil(dim), active_stress(dim)
    _, stress = elasticity(law, incompressibility, dim)

    @wp.func
    def work(F: mat, E: real, nu: real, T: mat):
        """T : tau(F, E, nu), whose gradient is the stress's derivative contracted with T."""
        return wp.ddot(T, stress(F, E, nu))

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adjoint_{law}_{incompressibility}_{dim}d"), enable_backward=False)
    def adj_p2g(
        # model
        material: ConstitutionArrays,
        actuation: ActuationArrays,
        grid: GridGeometry,
        first: int,
        # state
        motion: MotionArrays,
        u: wp.array2d[real],
        momentum_adj: wp.array[NODE],
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
        u_adj_out: wp.array2d[real],
    ):
        """q* and A* from a gather, x* += slope - A^T q*, and from A* to C*, m*, V*, tau* and through the law."""
        w, j = wp.tid()
        p = first + j
        x = (motion.x[w, p] - grid.lower) / grid.dx
        if not s.reach(x, grid.resolution):
            return
        F = motion.F[w, p]
        v = motion.v[w, p]
        C = motion.C[w, p]
        E = material.E[w, p]
        nu = material.nu[w, p]
        rho = material.rho[w, p]
        V = material.V[w, p]
        m = rho * V
        c = real(4.0) * dt / grid.dx
        node = w * grid.nodes
        q_adj, A_adj = s.gather(momentum_adj, node, grid.resolution, x)
        v_adj = s.momentum(q_adj)

        # This comes before the first plain call of `stress`, and in a module of its own: Warp 1.19 generates the
        # adjoints of functions that `stress` calls only if it meets them first below wp.grad, else they are silently 0.
        tau_adj = -(c * V) * A_adj
        F_adj, E_adj, nu_adj, _T_adj = wp.grad(work)(F, E, nu, tau_adj)

        tau = stress(F, E, nu)
        a = mat()
        driven = actuation.start[p] < actuation.start[p + 1]
        if driven:
            a = active(actuation, p, w, u)
            tau += F @ a @ wp.transpose(F)
        A = (m * grid.dx) * C - (c * V) * tau
        slope = s.slope(momentum_adj, node, grid.resolution, x, s.node(m * v, m), A) - wp.transpose(A) @ v_adj
        motion_adj_out.x[w, p] += slope / grid.dx
        motion_adj_out.v[w, p] += m * v_adj
        motion_adj_out.C[w, p] += (m * grid.dx) * A_adj

        if driven:
            F_adj += tau_adj @ F @ wp.transpose(a) + wp.transpose(tau_adj) @ F @ a
            a_adj = wp.transpose(F) @ tau_adj @ F
            if u_adj_out:
                for k in range(actuation.start[p], actuation.start[p + 1]):
                    actuator = actuation.actuator[k]
                    wp.atomic_add(u_adj_out, w, actuation.channel[actuator], wp.ddot(actuation.pattern[actuator], a_adj))
        motion_adj_out.F[w, p] += F_adj

        m_adj = q_adj[3] + wp.dot(v_adj, v) + grid.dx * wp.ddot(A_adj, C)
        if material_adj_out.E:
            material_adj_out.E[w, p] += E_adj
        if material_adj_out.nu:
            material_adj_out.nu[w, p] += nu_adj
        if material_adj_out.rho:
            material_adj_out.rho[w, p] += V * m_adj
        if material_adj_out.V:
            material_adj_out.V[w, p] += rho * m_adj - c * wp.ddot(A_adj, tau)

    return adj_p2g
