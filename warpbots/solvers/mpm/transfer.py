"""Particles to grid and back: MLS-MPM (Hu et al. 2018) with APIC, ChainQueen eq. 4-6 and 8-11.

    m_i   = sum_p w_ip m_p                                                      (4)
    (mv)_i = sum_p w_ip (m_p v_p + (m_p C_p - dt V_p (4/dx^2) tau_p) d_ip)       (5, 6)
    v_p'  = sum_i w_ip v_i                                                      (8)
    C_p'  = (4/dx^2) sum_i w_ip v_i d_ip^T                                       (9)
    F_p'  = (I + dt C_p') F_p,   x_p' = x_p + dt v_p'                            (10, 11)

with tau = P F^T the Kirchhoff stress (plus the stresses of actuators, damping, fibres and branches), d_ip = x_i - x_p,
and quadratic B-splines w. The adjoints are in `transfer_adjoint`. A particle whose stencil leaves the grid transfers
nothing to the grid and gets the position NaN, which stops the run.
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.actuation_laws import ActivationArrays, ActiveLaw, active_stress
from warpbots.materials import Law, elasticity, viscous_stress
from warpbots.numerics import NODE, Slice, matrix, real, vector
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, law_numbers, motion_arrays
from warpbots.solvers.mpm.shared_grid import grid_part, stencil

__all__ = ["MatterKind", "move_kernel", "p2g_kernel"]


class MatterKind(NamedTuple):
    """A kind of matter; each kind has its own kernels.

    Attributes:
        law: The constitutive law.
        incompressibility: Even exponent of the volumetric energy that is added to the law, 0 for none.
        dim: 2 or 3.
        damped: Whether matter has damping, whose stress is part of tau.
        composite: Whether matter has fibres or branches, whose stress is part of tau.
        active: Laws of the stress actuators of the scene.
    """

    law: Law
    incompressibility: int
    dim: int
    damped: bool
    composite: bool
    active: tuple[ActiveLaw, ...]

    @property
    def module(self) -> str:
        """Part of the name of the Warp modules with the kernels of this kind."""
        words = (
            self.law.module,
            self.incompressibility,
            "damped_" * self.damped + "composite_" * self.composite + f"{self.dim}d",
            *(law.name for law in self.active[1:]),
        )
        return "_".join(map(str, words))


@functools.cache
def p2g_kernel(kind: MatterKind, shared: bool = False) -> wp.Kernel:
    """Kernel over the particles of one kind: transfer of mass, momentum and impulse to the grid.

    Args:
        kind: The kind of matter.
        shared: Whether the kernel adds only to a part of the grid (`grid_part`).
    """
    law, incompressibility, dim, damped, composite, laws = kind
    mat = matrix(dim)
    MotionArrays, ConstitutionArrays = motion_arrays(dim), constitution_arrays()
    GridGeometry = grid_geometry(dim)
    s, active, own = stencil(dim), active_stress(dim, laws), grid_part(dim, shared)
    _, stress, _ = elasticity(law, incompressibility, dim)
    numbers = law_numbers(law)
    viscous = viscous_stress(incompressibility, dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.{'shared_' * shared}{kind.module}"), enable_backward=False)
    def p2g(
        # launch
        part: Slice,
        # model
        material: ConstitutionArrays,
        actuation: ActivationArrays,
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        added: wp.array[mat],
        u: wp.array2d[real],
        planes: wp.array[int],
        dt: real,
        # out
        active_out: wp.array[int],
        momentum_out: wp.array[NODE],
    ):
        """(m, mv)_i += w_ip (m_p, m_p v_p + (m_p C_p - dt V_p (4/dx^2) tau_p) d_ip)."""
        r = rows[part.start + wp.tid()]
        w = grid.world[r]
        p = r - w * grid.particles
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if not s.reach(x, grid.resolution) or not own.meets(part, planes, grid, w, x):
            return
        F = motion.F[r]
        V = material.V[r]
        m = material.rho[r] * V
        tau = stress(F, material.E[r], numbers(material, r))
        if actuation.start[p] < actuation.start[p + 1]:
            tau += F @ active(actuation, p, w, u, F) @ wp.transpose(F)
        if wp.static(damped):
            tau += viscous(motion.C[r], material.E[r], material.nu[r], material.beta[r])
        if wp.static(composite):
            tau += added[r]
        A = (m * grid.dx) * motion.C[r] - (real(4.0) * dt * V * grid.inv_dx) * tau
        s.mark(active_out, w * grid.pencils, grid.resolution, x)
        own.scatter_to_part(part, planes, grid, w, x, m * motion.v[r], m, A, momentum_out)

    return p2g


@functools.cache
def move_kernel(dim: int) -> wp.Kernel:
    """Kernel over all particles of all worlds: each particle takes its velocity from the grid, and moves."""
    vec = vector(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)
    s = stencil(dim)
    nan = real(float("nan"))

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.transfer_{dim}d"), enable_backward=False)
    def move(
        # launch
        part: Slice,
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        velocity: wp.array[NODE],
        dt: real,
        # out
        motion_out: MotionArrays,
    ):
        """v' = sum w v_i, C' = (4/dx^2) sum w v_i d^T, F' = (I + dt C') F, x' = x + dt v'."""
        r = part.start + wp.tid()
        x = motion.x[r]
        F = motion.F[r]
        cell = (x - grid.lower) * grid.inv_dx
        if s.reach(cell, grid.resolution):
            h, M = s.gather(velocity, grid.world[r] * grid.pencils, grid.resolution, cell)
            v = s.momentum(h)
            C = (real(4.0) * grid.inv_dx) * M
            motion_out.x[r] = x + dt * v
            motion_out.v[r] = v
            motion_out.C[r] = C
            motion_out.F[r] = F + dt * (C @ F)
        else:
            motion_out.x[r] = vec(nan)
            motion_out.v[r] = motion.v[r]
            motion_out.C[r] = motion.C[r]
            motion_out.F[r] = F

    return move
