"""The arrays of a model and a state as Warp sees them: structs that kernels take as one argument.

The adjoint of a struct is a struct of the same type whose arrays hold gradients; an array that wants no gradient is
null there.
"""

import functools

import warp as wp

from warpbots.numerics import index_vector, matrix, real, vector

__all__ = ["constitution_arrays", "grid_geometry", "motion_arrays", "strength_arrays"]


@functools.cache
def motion_arrays(dim: int) -> type:
    """Warp struct of the motion of particles."""
    vec, mat = vector(dim), matrix(dim)

    @wp.struct
    class MotionArrays:
        """Particle motion, each of shape (worlds * n_particles,).

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
        """Particle constants, each of shape (worlds * n_particles,).

        E: Young's modulus [Pa].
        nu: Poisson's ratio [1].
        rho: Density [kg/m^dim].
        V: Rest volume [m^dim].
        beta: Time of Kelvin-Voigt damping [s]; null where nothing is damped.
        """

        E: wp.array[real]
        nu: wp.array[real]
        rho: wp.array[real]
        V: wp.array[real]
        beta: wp.array[real]

    return ConstitutionArrays


@functools.cache
def strength_arrays() -> type:
    """Warp struct of what plastic particles withstand."""

    @wp.struct
    class StrengthArrays:
        """Constants of plasticity, each of shape (worlds * n_particles,); null where no particle has it.

        yield_stress: Yield stress [Pa].
        hardening: Hardening modulus [Pa].
        friction_angle: Angle of internal friction [degrees].
        """

        yield_stress: wp.array[real]
        hardening: wp.array[real]
        friction_angle: wp.array[real]

    return StrengthArrays


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
        resolution: Nodes along each axis.
        pencils: Pencils of one world; a pencil is the nodes along the last axis, one after the other in memory.
        particles: Particles of one world.
        world: World of each particle: dividing its number would cost more, shape (worlds * n_particles,).
        """

        lower: vec
        dx: real
        inv_dx: real
        resolution: ivec
        pencils: int
        particles: int
        world: wp.array[int]

    return GridGeometry
