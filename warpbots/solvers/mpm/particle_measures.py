"""Measurements of a single particle: energies, momenta, strain and stress."""

import functools

import warp as wp

from warpbots.actuation_laws import activation_arrays, active_stress
from warpbots.materials import elasticity, viscous_stress
from warpbots.numerics import matrix, real, vector
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.transfer import MatterKind

__all__ = ["motion_kernel", "stress_kernel"]


@functools.cache
def _moment(dim: int) -> wp.Function:
    """Warp function from x, v, C and the second moment I of the spline to the angular momentum per mass."""
    vec, mat = vector(dim), matrix(dim)

    if dim == 2:

        @wp.func
        def moment_in_plane(x: vec, v: vec, C: mat, I: real):
            """x v_y - y v_x + I (C_yx - C_xy)."""
            return x[0] * v[1] - x[1] * v[0] + I * (C[1, 0] - C[0, 1])

        return moment_in_plane

    @wp.func
    def moment_in_space(x: vec, v: vec, C: mat, I: real):
        """x × v + I ax C, with ax C twice the axial vector of C."""
        return wp.cross(x, v) + I * vec(C[2, 1] - C[1, 2], C[0, 2] - C[2, 0], C[1, 0] - C[0, 1])

    return moment_in_space


@functools.cache
def motion_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, particles): kinetic and potential energy and momenta; differentiated by Warp."""
    vec, moment = vector(dim), _moment(dim)
    spin = {2: real, 3: vec}[dim]
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
        kinetic_out: wp.array2d[real],
        potential_out: wp.array2d[real],
        momentum_out: wp.array2d[vec],
        spin_out: wp.array2d[spin],
    ):
        """m/2 (|v|^2 + dx^2/4 C : C), -m g . x, m v, m (x × v + dx^2/4 ax C), with ax C twice the axial vector of C."""
        w, p = wp.tid()
        r = w * grid.particles + p
        m = material.rho[r] * material.V[r]
        x = motion.x[r]
        v = motion.v[r]
        C = motion.C[r]
        inertia = real(0.25) * grid.dx * grid.dx
        kinetic_out[w, p] = real(0.5) * m * (wp.dot(v, v) + inertia * wp.ddot(C, C))
        potential_out[w, p] = -m * wp.dot(gravity[w], x)
        momentum_out[w, p] = m * v
        spin_out[w, p] = m * moment(x, v, C, inertia)

    return measure_motion


@functools.cache
def stress_kernel(kind: MatterKind) -> wp.Kernel:
    """Kernel over the particles of one kind: elastic energy, strain and stress; differentiated by Warp."""
    law, incompressibility, dim, damped, composite = kind
    mat = matrix(dim)
    MotionArrays, ConstitutionArrays = motion_arrays(dim), constitution_arrays()
    ActivationArrays, GridGeometry = activation_arrays(dim), grid_geometry(dim)
    energy, stress, _ = elasticity(law, incompressibility, dim)
    active, viscous = active_stress(dim), viscous_stress(incompressibility, dim)

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
        nu = material.nu[r]
        S = active(actuation, p, w, u)
        tau = stress(F, E, nu) + F @ S @ wp.transpose(F)
        if wp.static(damped):
            tau += viscous(motion.C[r], E, nu, material.beta[r])
        psi = energy(F, E, nu)
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
