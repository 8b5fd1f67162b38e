"""The arrays of a model and a state as Warp sees them: structs that kernels take as one argument.

The adjoint of a struct is a struct of the same type whose arrays hold gradients. If an array has no gradient, its entry
in the adjoint struct is null.
"""

import functools

import warp as wp

from warpbots.numerics import index_vector, matrix, real, vector

__all__ = ["constituent_arrays", "constitution_arrays", "grid_geometry", "motion_arrays", "strength_arrays"]


@functools.cache
def motion_arrays(dim: int) -> type:
    """Warp struct of the motion of particles."""
    vec, mat = vector(dim), matrix(dim)

    @wp.struct
    class MotionArrays:
        """Motion of the particles; each array has shape (worlds * n_particles,).

        x: Positions [m].
        v: Velocities [m/s].
        C: Velocity gradients (the affine field of APIC) [1/s].
        F: Deformation gradients [1].
        """

        x: wp.array[vec]
        v: wp.array[vec]
        C: wp.array[mat]
        F: wp.array[mat]

    return MotionArrays


@functools.cache
def constitution_arrays() -> type:
    """Warp struct of the constants of particles."""

    @wp.struct
    class ConstitutionArrays:
        """Constants of the particles; each array has shape (worlds * n_particles,).

        E: Young's modulus [Pa].
        nu: Poisson's ratio [1].
        rho: Density [kg/m^dim].
        V: Rest volume [m^dim].
        beta: Time of Kelvin-Voigt damping [s]; null if no material has damping.
        """

        E: wp.array[real]
        nu: wp.array[real]
        rho: wp.array[real]
        V: wp.array[real]
        beta: wp.array[real]

    return ConstitutionArrays


@functools.cache
def strength_arrays() -> type:
    """Warp struct of the constants of plasticity."""

    @wp.struct
    class StrengthArrays:
        """Constants of plasticity; each array has shape (worlds * n_particles,) and is null if no particle needs it.

        yield_stress: Yield stress [Pa].
        hardening: Hardening modulus [Pa].
        friction_angle: Angle of internal friction [degrees].
        preconsolidation_pressure: Initial preconsolidation pressure [Pa].
        stress_ratio: Slope of the critical state line [1].
        cohesion: Tensile strength over preconsolidation pressure [1].
        hardening_coefficient: Growth of the logarithm of the preconsolidation pressure per strain of compaction [1].
        """

        yield_stress: wp.array[real]
        hardening: wp.array[real]
        friction_angle: wp.array[real]
        preconsolidation_pressure: wp.array[real]
        stress_ratio: wp.array[real]
        cohesion: wp.array[real]
        hardening_coefficient: wp.array[real]

    return StrengthArrays


@functools.cache
def constituent_arrays(dim: int) -> type:
    """Warp struct of the fibres and Maxwell branches of particles."""
    vec = vector(dim)

    @wp.struct
    class ConstituentArrays:
        """Fibres and Maxwell branches; the entries of one particle are consecutive.

        fibre_modulus: Stiffness of a family of fibres [Pa], shape (worlds * n_particles * n_families,).
        fibre_direction: Direction of a family at rest [1], shape (worlds * n_particles * n_families,), vector.
        branch_modulus: Shear modulus of a branch [Pa], shape (worlds * n_particles * n_branches,).
        relaxation_time: Relaxation time of a branch [s], shape (worlds * n_particles * n_branches,).
        """

        fibre_modulus: wp.array[real]
        fibre_direction: wp.array[vec]
        branch_modulus: wp.array[real]
        relaxation_time: wp.array[real]

    return ConstituentArrays


@functools.cache
def grid_geometry(dim: int) -> type:
    """Warp struct of the background grid."""
    vec, ivec = vector(dim), index_vector(dim)

    @wp.struct
    class GridGeometry:
        """Geometry of the grid.

        lower: Position of node 0 [m].
        dx: Size of a cell [m].
        inv_dx: 1 / dx [1/m].
        resolution: Number of nodes along each axis.
        pencils: Number of pencils in one world; a pencil is a line of nodes along the last axis, consecutive in memory.
        particles: Number of particles in one world.
        world: World of each particle, stored because computing it takes a slow division, shape (worlds * n_particles,).
        """

        lower: vec
        dx: real
        inv_dx: real
        resolution: ivec
        pencils: int
        particles: int
        world: wp.array[int]

    return GridGeometry
