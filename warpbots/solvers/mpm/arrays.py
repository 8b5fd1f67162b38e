"""The arrays of a model and of a state, grouped in Warp structs that kernels take as one argument.

The adjoint of a struct is a struct of the same type, whose arrays hold the gradients with respect to the arrays of the
struct. If an array has no gradient, the corresponding array of the adjoint struct is null.
"""

import functools

import warp as wp

from warpbots.materials import Law, numbers_type
from warpbots.numerics import index_vector, matrix, real, vector

__all__ = [
    "constituent_arrays", "constitution_arrays", "grid_geometry", "law_numbers", "motion_arrays", "poissons_ratio_of",
    "strength_arrays",
]  # fmt: skip


@functools.cache
def motion_arrays(dim: int) -> type:
    """Type of the Warp struct that holds the motion of the particles, for 2 or 3 dimensions."""
    vec, mat = vector(dim), matrix(dim)

    @wp.struct
    class MotionArrays:
        """Motion of the particles of all worlds.

        Each array has one entry for each particle, shape (worlds * n_particles,).

        x: Position of each particle [m].
        v: Velocity of each particle [m/s].
        C: Velocity gradient of the affine velocity field that each particle carries (APIC) [1/s].
        F: Deformation gradient of each particle [1].
        """

        x: wp.array[vec]
        v: wp.array[vec]
        C: wp.array[mat]
        F: wp.array[mat]

    return MotionArrays


@functools.cache
def constitution_arrays() -> type:
    """Type of the Warp struct that holds the elastic constants, densities and volumes of the particles."""

    @wp.struct
    class ConstitutionArrays:
        """Constants of the particles; each array has one entry for each particle, shape (worlds * n_particles,).

        E: Young's modulus of each particle [Pa].
        nu: Poisson's ratio of each particle [1].
        rho: Density of each particle: mass per rest volume [kg/m^dim].
        V: Rest volume of each particle [m^dim].
        beta: Time of Kelvin-Voigt damping of each particle [s]; null if no material of the scene has damping.
        c: Constants of the law of each particle, in the order of the law, shape (worlds * n_particles, k); null if no
            law of the scene has any.
        """

        E: wp.array[real]
        nu: wp.array[real]
        rho: wp.array[real]
        V: wp.array[real]
        beta: wp.array[real]
        c: wp.array2d[real]

    return ConstitutionArrays


@functools.cache
def law_numbers(law: Law) -> wp.Function:
    """Warp function (material, r) of the numbers s of a law at particle r, see `numbers_type`."""
    ConstitutionArrays, Numbers, count = constitution_arrays(), numbers_type(law), len(law.constants)

    @wp.func
    def poissons_ratio(material: ConstitutionArrays, r: int):
        """Poisson's ratio nu."""
        return material.nu[r]

    @wp.func
    def numbers(material: ConstitutionArrays, r: int):
        """The vector (nu, c) of particle r."""
        s = Numbers()
        s[0] = material.nu[r]
        for k in range(count):
            s[k + 1] = material.c[r, k]
        return s

    return numbers if count else poissons_ratio


@functools.cache
def poissons_ratio_of(law: Law) -> wp.Function:
    """Warp function s -> nu."""
    Numbers = numbers_type(law)

    @wp.func
    def same(nu: real):
        """Poisson's ratio nu."""
        return nu

    @wp.func
    def first(s: Numbers):
        """s[0]."""
        return s[0]

    return first if law.constants else same


@functools.cache
def strength_arrays() -> type:
    """Type of the Warp struct that holds the constants of plasticity of the particles."""

    @wp.struct
    class StrengthArrays:
        """Constants of plasticity; each array has one entry for each particle, shape (worlds * n_particles,).

        An array is null if no particle has the kind of plasticity to which the constant belongs.

        yield_stress: Yield stress of von Mises plasticity [Pa].
        hardening: Hardening modulus of von Mises plasticity [Pa].
        friction_angle: Angle of internal friction of Drucker-Prager plasticity [degrees].
        preconsolidation_pressure: Initial preconsolidation pressure of Cam clay [Pa].
        stress_ratio: Slope of the critical state line of Cam clay [1].
        cohesion: Tensile strength of Cam clay divided by its preconsolidation pressure [1].
        hardening_coefficient: Increase of the logarithm of the preconsolidation pressure of Cam clay per volumetric
            strain of compaction [1].
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
    """Type of the Warp struct that holds the fibres and Maxwell branches of the particles."""
    vec = vector(dim)

    @wp.struct
    class ConstituentArrays:
        """Fibres and Maxwell branches of the particles; the entries of one particle are consecutive.

        fibre_modulus: Stiffness of each family of fibres in each particle [Pa], shape (worlds * n_particles *
            n_families,).
        fibre_direction: Direction of each family of fibres at rest [1], shape (worlds * n_particles * n_families,),
            vector.
        branch_modulus: Shear modulus of each Maxwell branch [Pa], shape (worlds * n_particles * n_branches,).
        relaxation_time: Relaxation time of each Maxwell branch [s], shape (worlds * n_particles * n_branches,).
        """

        fibre_modulus: wp.array[real]
        fibre_direction: wp.array[vec]
        branch_modulus: wp.array[real]
        relaxation_time: wp.array[real]

    return ConstituentArrays


@functools.cache
def grid_geometry(dim: int) -> type:
    """Type of the Warp struct that describes the background grid."""
    vec, ivec = vector(dim), index_vector(dim)

    @wp.struct
    class GridGeometry:
        """Geometry of the background grid, and sizes of the arrays on it.

        lower: Position of the first node of the grid [m].
        dx: Edge length of a grid cell [m].
        inv_dx: Inverse of the edge length, 1 / dx [1/m].
        resolution: Number of grid nodes along each axis.
        pencils: Number of pencils in one world; a pencil is a line of nodes along the last axis, consecutive in memory.
        particles: Number of particles in one world.
        world: Index of the world of each particle, shape (worlds * n_particles,). It is stored because computing it
            takes a slow division.
        """

        lower: vec
        dx: real
        inv_dx: real
        resolution: ivec
        pencils: int
        particles: int
        world: wp.array[int]

    return GridGeometry
