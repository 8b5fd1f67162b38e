"""Adjoints of the transfers, derived by hand from the pairing of `stencil_3d`.

For a loss L write x* for dL/dx. The grid-to-particle transfer reads the grid velocities v_i linearly,

    L = sum_i w_i (v*' + (4/dx) C*' d_i) . v_i,   v*' = v* + dt x*,   C*' = C* + dt F* F^T,

which is the pairing with q = v*', A = (4/dx) C*' (d in cells). So v_i* is a scatter, and the gradient of the position
is the slope of the pairing. The particle-to-grid transfer is the pairing of the q and A of this transfer with the
gradients of the nodes. So q* and A* are a gather, and the gradient of the position is again a slope. In both, dL/dx_p
has one more term, -A^T sum_i w_i h_i, because d_i = x_i - x_p.

Appendix A.2 of the ChainQueen paper prints the same chain with misprints (A95, A100); the formulas here are tested
against float64 differences and Warp's generated adjoint.
"""

import functools

import warp as wp

from warpbots.actuation_laws import ActivationArrays, active_laws, active_stress, active_work
from warpbots.materials import elasticity, numbers_type, viscous_stress
from warpbots.numerics import NODE, Slice, matrix, real
from warpbots.numerics.simd import add_to, index, item, put
from warpbots.solvers.mpm.arrays import (
    constitution_arrays,
    grid_geometry,
    law_numbers,
    motion_arrays,
    poissons_ratio_of,
)
from warpbots.solvers.mpm.shared_grid import grid_part, stencil
from warpbots.solvers.mpm.transfer import MatterKind, particle_of

__all__ = ["adj_move_kernel", "adj_p2g_kernel"]


@functools.cache
def adj_move_kernel(dim: int, shared: bool = False) -> wp.Kernel:
    """Kernel over all particles of all worlds: adjoint of `move_kernel`.

    Args:
        dim: 2 or 3.
        shared: Whether the kernel adds only to a part of the grid, and to the particles that the part owns
            (`grid_part`).
    """
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s, own = stencil(dim), grid_part(dim, shared)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.{'shared_' * shared}adjoint_{dim}d"), enable_backward=False)
    def adj_move(
        # launch
        part: Slice,
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        moved: MotionArrays,
        velocity: wp.array[NODE],
        moved_adj: MotionArrays,
        planes: wp.array[int],
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        velocity_adj_out: wp.array[NODE],
    ):
        """v_i* += w (v*' + (4/dx) C*' d), x* += x*' + slope - A^T v', F* += (I + dt C')^T F*'."""
        r = part.start + wp.tid()
        w = index(grid.world, r)
        x = (item(motion.x, r) - grid.lower) * grid.inv_dx
        if own.meets(part, planes, grid, w, x) and s.reach(x, grid.resolution):
            F_adj = item(moved_adj.F, r)
            x_adj = item(moved_adj.x, r)
            A = (real(4.0) * grid.inv_dx) * (item(moved_adj.C, r) + dt * (F_adj @ wp.transpose(item(motion.F, r))))
            q = item(moved_adj.v, r) + dt * x_adj
            own.scatter_to_part(part, planes, grid, w, x, q, real(0.0), A, velocity_adj_out)
            if own.owns(part, planes, grid, w, x):
                slope = s.slope(velocity, w * grid.pencils, grid.resolution, x, q, real(0.0), A)
                slope -= wp.transpose(A) @ item(moved.v, r)
                # No +=, which Warp makes an atomic operation: no other thread has this particle.
                add_to(motion_adj_out.x, r, x_adj + grid.inv_dx * slope)
                add_to(motion_adj_out.F, r, F_adj + dt * (wp.transpose(item(moved.C, r)) @ F_adj))

    return adj_move


@functools.cache
def adj_p2g_kernel(kind: MatterKind) -> wp.Kernel:
    """Kernel over the particles of one kind: adjoint of `p2g_kernel`."""
    law, incompressibility, dim, damped, composite, laws = kind
    mat = matrix(dim)
    MotionArrays, ConstitutionArrays = motion_arrays(dim), constitution_arrays()
    GridGeometry = grid_geometry(dim)
    s, driven, proportional = stencil(dim), bool(laws), laws == active_laws((), dim)
    active, active_work_of = active_stress(dim, laws), active_work(dim, laws)
    _, stress, _ = elasticity(law, incompressibility, dim)
    Numbers, numbers, poissons_ratio, count = (
        numbers_type(law), law_numbers(law), poissons_ratio_of(law), len(law.constants),
    )  # fmt: skip
    viscous = viscous_stress(incompressibility, dim)

    @wp.func
    def work(F: mat, E: real, s: Numbers, T: mat):
        """T : tau(F, E, s); its gradient is the derivative of the stress, contracted with T."""
        return wp.ddot(T, stress(F, E, s))

    @wp.func
    def viscous_work(C: mat, E: real, nu: real, beta: real, T: mat):
        """T : tau_v(C, E, nu, beta); its gradient is the derivative of the viscous stress, contracted with T."""
        return wp.ddot(T, viscous(C, E, nu, beta))

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adjoint_{kind.module}"), enable_backward=False)
    def adj_p2g(
        # launch
        part: Slice,
        # model
        material: ConstitutionArrays,
        actuation: ActivationArrays,
        grid: GridGeometry,
        group: wp.vec2i,
        # state
        motion: MotionArrays,
        added: wp.array[mat],
        u: wp.array2d[real],
        momentum_adj: wp.array[NODE],
        dt: real,
        copies: int,
        chunk: int,
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
        added_adj_out: wp.array[mat],
        u_adj_out: wp.array2d[real],
    ):
        """Gather q* and A* from the grid; x* += slope - A^T q*; then C*, m*, V*, tau* and the law by the chain rule."""
        i = part.start + wp.tid()
        r = particle_of(group, i, grid.particles)
        w = index(grid.world, r)
        x = (item(motion.x, r) - grid.lower) * grid.inv_dx
        if not s.reach(x, grid.resolution):
            return
        F = item(motion.F, r)
        v = item(motion.v, r)
        C = item(motion.C, r)
        E = item(material.E, r)
        nu = item(material.nu, r)
        own = numbers(material, r)
        rho = item(material.rho, r)
        V = item(material.V, r)
        m = rho * V
        c = real(4.0) * dt * grid.inv_dx
        first = w * grid.pencils
        h_adj, A_adj = s.gather(momentum_adj, first, grid.resolution, x)
        v_adj = s.momentum(h_adj)

        # This comes before the first plain call of `stress`, and in a module of its own: Warp 1.19 generates the
        # adjoints of functions that `stress` calls only if they first occur below wp.grad, else they are silently 0.
        tau_adj = -(c * V) * A_adj
        F_adj, E_adj, own_adj, _T_adj = wp.grad(work)(F, E, own, tau_adj)
        nu_adj = poissons_ratio(own_adj)
        if wp.static(damped):
            beta = item(material.beta, r)
            C_adj, damped_E_adj, damped_nu_adj, beta_adj, _D_adj = wp.grad(viscous_work)(C, E, nu, beta, tau_adj)
            E_adj += damped_E_adj
            nu_adj += damped_nu_adj

        if wp.static(driven):
            p = r - w * grid.particles
            S_adj = wp.transpose(F) @ tau_adj @ F
            row = w * copies + (((i - w * group[1]) // chunk) & (copies - 1))
            for k in range(index(actuation.start, p), index(actuation.start, p + 1)):
                actuator = index(actuation.actuator, k)
                channel = index(actuation.channel, actuator)
                if wp.static(proportional):
                    signal_adj = active_work_of(actuation, actuator, F, real(1.0), S_adj)
                else:
                    _actuation, _actuator, active_F_adj, signal_adj, _S_adj = wp.grad(active_work_of)(
                        actuation, actuator, F, u[w, channel], S_adj
                    )
                    F_adj += active_F_adj
                if u_adj_out:
                    wp.atomic_add(u_adj_out, row, channel, signal_adj)

        tau = stress(F, E, own)
        if wp.static(driven):
            FS = F @ active(actuation, p, w, u, F)
            tau += FS @ wp.transpose(F)
            F_adj += (tau_adj + wp.transpose(tau_adj)) @ FS  # S is symmetric
        if wp.static(damped):
            tau += viscous(C, E, nu, beta)
        if wp.static(composite):
            tau += item(added, r)
            put(added_adj_out, r, tau_adj)
        A = (m * grid.dx) * C - (c * V) * tau
        slope = s.slope(momentum_adj, first, grid.resolution, x, m * v, m, A) - wp.transpose(A) @ v_adj
        add_to(motion_adj_out.x, r, grid.inv_dx * slope)
        add_to(motion_adj_out.v, r, m * v_adj)
        add_to(motion_adj_out.C, r, (m * grid.dx) * A_adj)
        if wp.static(damped):
            add_to(motion_adj_out.C, r, C_adj)
            if material_adj_out.beta:
                add_to(material_adj_out.beta, r, beta_adj)

        add_to(motion_adj_out.F, r, F_adj)

        m_adj = h_adj[3] + wp.dot(v_adj, v) + grid.dx * wp.ddot(A_adj, C)
        if material_adj_out.E:
            add_to(material_adj_out.E, r, E_adj)
        if material_adj_out.nu:
            add_to(material_adj_out.nu, r, nu_adj)
        if wp.static(count > 0):
            for k in range(count):
                material_adj_out.c[r, k] = material_adj_out.c[r, k] + own_adj[k + 1]
        if material_adj_out.rho:
            add_to(material_adj_out.rho, r, V * m_adj)
        if material_adj_out.V:
            add_to(material_adj_out.V, r, rho * m_adj - c * wp.ddot(A_adj, tau))

    return adj_p2g
