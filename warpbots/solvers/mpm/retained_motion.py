"""Affine FLIP: fluids retain a fraction of the motion of their particles that the grid does not resolve.

A particle transfers its affine motion to the grid and receives the motion of the grid. In every step the part of the
motion that the grid does not resolve is lost, as if the fluid had an added viscosity. The residual of this filter is

    p_i = sum_p w_ip m_p (v_p + C_p d_ip),   m_i = sum_p w_ip m_p,   u_i = p_i / m_i
    r_p = v_p - sum_i w_ip u_i,   R_p = skew(C_p - (4/dx^2) sum_i w_ip u_i d_ip^T)

summed over the particles of fluids, before any force acts. Particles retain the fraction a of the residual,

    v_p' += a r_p,   x_p' += dt a r_p,   C_p' += a R_p,   a = exp(-dt / T)

a FLIP correction (Brackbill & Ruppel 1986) of the affine transfer (Jiang et al. 2015). The filter conserves momentum
and angular momentum; therefore sum m_p r_p = 0 and sum m_p (x_p × r_p + dx^2/4 ax R_p) = 0, with ax R twice the axial
vector of R, and the correction also conserves momentum and angular momentum. The retained part of C is a spin, which
affects neither the damping nor the volume of a fluid. The unresolved motion is thus lost over the time T
(`grid_viscosity`) instead of within one step, whatever the time step is.
"""

import dataclasses
import functools
import math

import warp as wp

from warpbots.numerics import NODE, launch, matrix, real, struct_of, vector
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.grid_viscosity import retention_time
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.mpm.workspace import Gathered

__all__ = ["add_residual", "adj_residual", "find_residual", "without_residual"]


def retained(model: MPMModel, dt: float) -> float:
    """Fraction a of the residual that particles retain in a step of `dt` [s]."""
    return math.exp(-dt / retention_time(model.contact_interval))


def find_residual(model: MPMModel, state: MPMState, active: wp.array, threads: tuple[int, int]) -> None:
    """Write the residuals r and R to the workspace, and u to the grid velocity in the workspace.

    The active pencils of ``workspace.retained.momentum`` must be zero before the call.
    """
    work = model.workspace.retained
    rows, length = model.fluid, model.grid.resolution[-1]
    inputs = [model.material, model.geometry, rows, state.motion]
    launch(spread_kernel(model.dim), len(rows), inputs, [work.momentum], model.device)
    inputs = [length, threads[1], active, work.momentum]
    launch(quotient_kernel(model.dim), threads, inputs, [model.workspace.velocity], model.device)
    inputs = [model.geometry, rows, state.motion, model.workspace.velocity]
    launch(residual_kernel(model.dim), len(rows), inputs, [work.velocity, work.spin], model.device)


def add_residual(model: MPMModel, motion: object, dt: float, sign: float = 1.0) -> None:
    """Add the retained fraction of the residual to `motion` after a step, or subtract it if `sign` is -1."""
    work = model.workspace.retained
    inputs = [model.fluid, work.velocity, work.spin, real(sign * retained(model, dt)), real(dt)]
    launch(add_kernel(model.dim), len(model.fluid), inputs, [motion], model.device)


def adj_residual(
    model: MPMModel, state: MPMState, moved_adj: object, gathered: Gathered, threads: tuple[int, int], dt: float
) -> None:
    """Add the gradients with respect to `state` through the residual, from the gradients of the motion after the step.

    The grid velocity in the workspace must hold u (`find_residual`). The function overwrites the gradients of the grid
    in the workspace, which must be zero on active pencils.
    """
    work, workspace = model.workspace.retained, model.workspace
    rows, length, share = model.fluid, model.grid.resolution[-1], real(retained(model, dt))
    inputs = [model.geometry, rows, state.motion, workspace.velocity, moved_adj, share, real(dt)]
    launch(adj_residual_kernel(model.dim), len(rows), inputs, [state.motion_adj, workspace.velocity_adj], model.device)
    inputs = [length, threads[1], gathered.active, work.momentum, workspace.velocity, workspace.velocity_adj]
    launch(adj_quotient_kernel(model.dim), threads, inputs, [workspace.momentum_adj], model.device)
    inputs = [model.material, model.geometry, rows, state.motion, workspace.momentum_adj]
    outputs = [state.motion_adj, model.material_adj]
    launch(adj_spread_kernel(model.dim), len(rows), inputs, outputs, model.device)


def without_residual(model: MPMModel, state_out: MPMState, dt: float) -> MPMState:
    """A copy of `state_out` as it was before `add_residual`, except that positions are not changed back.

    The copy shares the gradients of `state_out`.
    """
    work = model.workspace.retained
    for before, after in (
        (work.before_velocity, state_out.velocity),
        (work.before_gradient, state_out.velocity_gradient),
    ):
        before.grad = None  # wp.copy would copy gradients, too
        wp.copy(before, after)
        before.grad = after.grad
    moved = dataclasses.replace(state_out, velocity=work.before_velocity, velocity_gradient=work.before_gradient)
    motion = struct_of(motion_arrays(model.dim), [None, *moved.fields()[1:3], None])
    add_residual(model, motion, dt, -1.0)
    return moved


@functools.cache
def spread_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of fluids: transfers mass and momentum to the grid."""
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.retained_{dim}d"), enable_backward=False)
    def spread(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        # out
        momentum_out: wp.array[NODE],
    ):
        """Adds momentum and mass of each fluid particle to the nodes: (p, m)_i += w_ip m_p (v_p + C_p d_ip, 1)."""
        r = rows[wp.tid()]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            m = material.rho[r] * material.V[r]
            A = (m * grid.dx) * motion.C[r]
            s.scatter(momentum_out, grid.world[r] * grid.pencils, grid.resolution, x, m * motion.v[r], m, A)

    return spread


@functools.cache
def quotient_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): computes the velocities of the nodes from momentum and mass."""
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.retained_{dim}d"), enable_backward=False)
    def quotient(
        # model
        length: int,
        lanes: int,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        # out
        velocity_out: wp.array[NODE],
    ):
        """Writes the velocity of each node: u_i = p_i / m_i."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            h = momentum[i]
            u = NODE()
            if h[3] != real(0.0):
                u = s.node(s.momentum(h) / h[3], real(0.0))
            velocity_out[i] = u

    return quotient


@functools.cache
def residual_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of fluids: computes the part of their motion that the grid does not resolve."""
    vec, mat = vector(dim), matrix(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.retained_{dim}d"), enable_backward=False)
    def residual(
        # model
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        velocity: wp.array[NODE],
        # out
        residual_out: wp.array[vec],
        spin_out: wp.array[mat],
    ):
        """Writes the residual of each particle: r = v - sum w u_i, R = skew(C - (4/dx^2) sum w u_i d^T)."""
        i = wp.tid()
        r = rows[i]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        left = vec()
        spin = mat()
        if s.reach(x, grid.resolution):
            h, M = s.gather(velocity, grid.world[r] * grid.pencils, grid.resolution, x)
            left = motion.v[r] - s.momentum(h)
            change = motion.C[r] - (real(4.0) * grid.inv_dx) * M
            spin = real(0.5) * (change - wp.transpose(change))
        residual_out[i] = left
        spin_out[i] = spin

    return residual


@functools.cache
def add_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of fluids: adds a fraction of the residual to the motion; null arrays are skipped."""
    vec, mat, MotionArrays = vector(dim), matrix(dim), motion_arrays(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.retained_{dim}d"), enable_backward=False)
    def add(
        # model
        rows: wp.array[int],
        # state
        left: wp.array[vec],
        spin: wp.array[mat],
        share: real,
        dt: real,
        # out
        motion_out: MotionArrays,
    ):
        """Adds the fraction a = `share` of the residual to the motion: v' += a r, C' += a R, x' += dt a r."""
        i = wp.tid()
        r = rows[i]
        motion_out.v[r] = motion_out.v[r] + share * left[i]
        motion_out.C[r] = motion_out.C[r] + share * spin[i]
        if motion_out.x:
            motion_out.x[r] = motion_out.x[r] + (dt * share) * left[i]

    return add


@functools.cache
def adj_residual_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of fluids: adjoint of `residual_kernel` and `add_kernel`."""
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adj_retained_{dim}d"), enable_backward=False)
    def adj_residual_of(
        # model
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        velocity: wp.array[NODE],
        moved_adj: MotionArrays,
        share: real,
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        velocity_adj_out: wp.array[NODE],
    ):
        """Adds the gradients through the residual; an asterisk marks a gradient.

        With q = a (v*' + dt x*'), S = a skew(C*') and A = (4/dx) S: v* += q, C* += S, u_i* -= w (q + A d), x* -= (slope
        - A^T u) / dx. The vector d leads from the particle to node i [cells].
        """
        r = rows[wp.tid()]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            q = share * (moved_adj.v[r] + dt * moved_adj.x[r])
            S = (real(0.5) * share) * (moved_adj.C[r] - wp.transpose(moved_adj.C[r]))
            A = (real(4.0) * grid.inv_dx) * S
            first = grid.world[r] * grid.pencils
            h, _M = s.gather(velocity, first, grid.resolution, x)
            s.scatter(velocity_adj_out, first, grid.resolution, x, -q, real(0.0), -A)
            slope = s.slope(velocity, first, grid.resolution, x, q, real(0.0), A) - wp.transpose(A) @ s.momentum(h)
            motion_adj_out.x[r] = motion_adj_out.x[r] - grid.inv_dx * slope
            motion_adj_out.v[r] = motion_adj_out.v[r] + q
            motion_adj_out.C[r] = motion_adj_out.C[r] + S

    return adj_residual_of


@functools.cache
def adj_quotient_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): adjoint of `quotient_kernel`."""
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adj_retained_{dim}d"), enable_backward=False)
    def adj_quotient(
        # model
        length: int,
        lanes: int,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        velocity: wp.array[NODE],
        velocity_adj: wp.array[NODE],
        # out
        momentum_adj_out: wp.array[NODE],
    ):
        """Writes the gradients with respect to momentum and mass of each node: p* = u* / m, m* = -u . u* / m."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            m = momentum[i][3]
            if m != real(0.0):
                u_adj = s.momentum(velocity_adj[i]) / m
                momentum_adj_out[i] = s.node(u_adj, -wp.dot(u_adj, s.momentum(velocity[i])))

    return adj_quotient


@functools.cache
def adj_spread_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of fluids: adjoint of `spread_kernel`."""
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adj_retained_{dim}d"), enable_backward=False)
    def adj_spread(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        momentum_adj: wp.array[NODE],
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
    ):
        """Gathers q* and A* from the grid and adds slope - A^T q* to x*.

        The gradients v*, C*, rho* and V* follow by the chain rule. An asterisk marks a gradient.
        """
        r = rows[wp.tid()]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if not s.reach(x, grid.resolution):
            return
        v = motion.v[r]
        C = motion.C[r]
        rho = material.rho[r]
        V = material.V[r]
        m = rho * V
        first = grid.world[r] * grid.pencils
        h_adj, A_adj = s.gather(momentum_adj, first, grid.resolution, x)
        v_adj = s.momentum(h_adj)
        A = (m * grid.dx) * C
        slope = s.slope(momentum_adj, first, grid.resolution, x, m * v, m, A) - wp.transpose(A) @ v_adj
        motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * slope
        motion_adj_out.v[r] = motion_adj_out.v[r] + m * v_adj
        motion_adj_out.C[r] = motion_adj_out.C[r] + (m * grid.dx) * A_adj
        m_adj = h_adj[3] + wp.dot(v_adj, v) + grid.dx * wp.ddot(A_adj, C)
        if material_adj_out.rho:
            material_adj_out.rho[r] = material_adj_out.rho[r] + V * m_adj
        if material_adj_out.V:
            material_adj_out.V[r] = material_adj_out.V[r] + rho * m_adj

    return adj_spread
