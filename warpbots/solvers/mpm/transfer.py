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
from warpbots.numerics.simd import index, item, put
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, law_numbers, motion_arrays
from warpbots.solvers.mpm.shared_grid import grid_part, stencil

__all__ = ["MatterKind", "move_kernel", "p2g_kernel", "particle_of"]


class MatterKind(NamedTuple):
    """A kind of matter; each kind has its own kernels.

    Attributes:
        law: The constitutive law.
        incompressibility: Even exponent of the volumetric energy that is added to the law, 0 for none.
        dim: 2 or 3.
        damped: Whether matter has damping, whose stress is part of tau.
        composite: Whether matter has fibres or branches, whose stress is part of tau.
        active: Laws of the stress actuators of the scene, if it has any.
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
            "damped_" * self.damped + "composite_" * self.composite + "driven_" * bool(self.active) + f"{self.dim}d",
            *(law.name for law in self.active[1:]),
        )
        return "_".join(map(str, words))


@wp.func
def particle_of(group: wp.vec2i, item: int, particles: int):
    """Index of a particle of a group, whose first particle and number of particles in a world are `group`."""
    r = group[0] + item
    if group[1] < particles:
        r += (item // group[1]) * (particles - group[1])
    return r


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
    s, active, driven, own = stencil(dim), active_stress(dim, laws), bool(laws), grid_part(dim, shared)
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
        group: wp.vec2i,
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
        r = particle_of(group, part.start + wp.tid(), grid.particles)
        w = index(grid.world, r)
        x = (item(motion.x, r) - grid.lower) * grid.inv_dx
        if not own.meets(part, planes, grid, w, x) or not s.reach(x, grid.resolution):
            return
        F = item(motion.F, r)
        V = item(material.V, r)
        m = item(material.rho, r) * V
        tau = stress(F, item(material.E, r), numbers(material, r))
        if wp.static(driven):
            p = r - w * grid.particles
            tau += F @ active(actuation, p, w, u, F) @ wp.transpose(F)
        if wp.static(damped):
            tau += viscous(item(motion.C, r), item(material.E, r), item(material.nu, r), item(material.beta, r))
        if wp.static(composite):
            tau += item(added, r)
        A = (m * grid.dx) * item(motion.C, r) - (real(4.0) * dt * V * grid.inv_dx) * tau
        s.mark(active_out, w * grid.pencils, grid.resolution, x)
        own.scatter_to_part(part, planes, grid, w, x, m * item(motion.v, r), m, A, momentum_out)

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
        x = item(motion.x, r)
        F = item(motion.F, r)
        cell = (x - grid.lower) * grid.inv_dx
        if s.reach(cell, grid.resolution):
            h, M = s.gather(velocity, index(grid.world, r) * grid.pencils, grid.resolution, cell)
            v = s.momentum(h)
            C = (real(4.0) * grid.inv_dx) * M
            put(motion_out.x, r, x + dt * v)
            put(motion_out.v, r, v)
            put(motion_out.C, r, C)
            put(motion_out.F, r, F + dt * (C @ F))
        else:
            put(motion_out.x, r, vec(nan))
            put(motion_out.v, r, item(motion.v, r))
            put(motion_out.C, r, item(motion.C, r))
            put(motion_out.F, r, F)

    return move
