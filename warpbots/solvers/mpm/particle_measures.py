"""Measurements of a single particle: energies, momenta, strain and stress."""

import functools

import warp as wp

from warpbots.actuation_laws import ActivationArrays, active_stress
from warpbots.materials import elasticity, viscous_stress
from warpbots.numerics import matrix, real, vector
from warpbots.solvers.matter_readings import motion_terms, terms_type
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, law_numbers, motion_arrays
from warpbots.solvers.mpm.transfer import MatterKind

__all__ = ["particle_motion_kernel", "stress_kernel"]

_ZERO, _QUARTER, _HALF = (wp.constant(wp.float64(c)) for c in (0.0, 0.25, 0.5))


@functools.cache
def _affine_terms(dim: int) -> wp.Function:
    """Warp function of a second moment of mass m I and an affine field C to the terms (T, U, p, L).

    The terms are energies and momenta of mass with the velocities C r, where r is the position relative to the
    particle.
    """
    mat, terms = matrix(dim), terms_type(dim)

    if dim == 2:

        @wp.func
        def affine_terms_in_plane(mI: wp.float64, C: mat):
            """m I (C : C / 2, 0, 0, C_yx - C_xy)."""
            return mI * terms(_HALF * wp.float64(wp.ddot(C, C)), _ZERO, _ZERO, _ZERO, wp.float64(C[1, 0] - C[0, 1]))

        return affine_terms_in_plane

    @wp.func
    def affine_terms_in_space(mI: wp.float64, C: mat):
        """m I (C : C / 2, 0, 0, ax C), with ax C twice the axial vector of C."""
        ax = wp.vec3d(wp.float64(C[2, 1] - C[1, 2]), wp.float64(C[0, 2] - C[2, 0]), wp.float64(C[1, 0] - C[0, 1]))
        half_square = _HALF * wp.float64(wp.ddot(C, C))
        return mI * terms(half_square, _ZERO, _ZERO, _ZERO, _ZERO, ax[0], ax[1], ax[2])

    return affine_terms_in_space


@functools.cache
def particle_motion_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, particles): energies and momenta of each particle; differentiated by Warp."""
    vec, terms, motion_terms_of, affine_terms = vector(dim), terms_type(dim), motion_terms(dim), _affine_terms(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.motion_measures_{dim}d"))
    def measure_motion(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        gravity: wp.array[vec],
        # state
        motion: MotionArrays,
        # out
        terms_out: wp.array2d[terms],
    ):
        """Kinetic energy T, energy U in gravity, momentum p and angular momentum L of each particle.

        The affine field C contributes to T and L with the second moment of mass m dx^2/4.
        """
        w, p = wp.tid()
        r = w * grid.particles + p
        m = wp.float64(material.rho[r]) * wp.float64(material.V[r])
        dx = wp.float64(grid.dx)
        affine = affine_terms(_QUARTER * m * dx * dx, motion.C[r])
        terms_out[w, p] = motion_terms_of(m, motion.x[r], motion.v[r], gravity[w]) + affine

    return measure_motion


@functools.cache
def stress_kernel(kind: MatterKind) -> wp.Kernel:
    """Kernel over the particles of one kind: elastic energy, strain and stress; differentiated by Warp."""
    law, incompressibility, dim, damped, composite, laws = kind
    mat = matrix(dim)
    MotionArrays, ConstitutionArrays = motion_arrays(dim), constitution_arrays()
    GridGeometry = grid_geometry(dim)
    energy, stress, _ = elasticity(law, incompressibility, dim)
    numbers = law_numbers(law)
    active, viscous = active_stress(dim, laws), viscous_stress(incompressibility, dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.measures_{kind.module}"))
    def measure_stress(
        # model
        material: ConstitutionArrays,
        actuation: ActivationArrays,
        grid: GridGeometry,
        rows: wp.array[int],
        # state
        motion: MotionArrays,
        added: wp.array[mat],
        added_energy: wp.array[real],
        dilates: wp.array[int],
        plastic: wp.array[real],
        u: wp.array2d[real],
        # out
        elastic_out: wp.array[real],
        strain_out: wp.array[mat],
        stress_out: wp.array[mat],
    ):
        """V Psi, (F^T F - I)/2 and tau / J; tau includes all stresses, and J the plastic change of volume."""
        r = rows[wp.tid()]
        w = grid.world[r]
        p = r - w * grid.particles
        F = motion.F[r]
        E = material.E[r]
        s = numbers(material, r)
        S = active(actuation, p, w, u, F)
        tau = stress(F, E, s) + F @ S @ wp.transpose(F)
        if wp.static(damped):
            tau += viscous(motion.C[r], E, material.nu[r], material.beta[r])
        psi = energy(F, E, s)
        if wp.static(composite):
            tau += added[r]
            psi += added_energy[r]
        elastic_out[r] = material.V[r] * psi
        strain_out[r] = real(0.5) * (wp.transpose(F) @ F - wp.identity(n=dim, dtype=real))
        J = wp.determinant(F)
        if dilates:
            J *= wp.exp(real(dilates[p]) * plastic[r])
        stress_out[r] = tau / J

    return measure_stress
