"""Springs that set and break: plasticity and fracture of single springs.

With l0 the length of a spring as it was made, r its length at rest under the actuators and p its plastic strain, the
length at rest is r + p l0 and the elastic strain e = (l - r) / l0 - p. A spring that yields keeps |e| at its yield
strain, whatever its length: p follows (perfect plasticity in one dimension). A spring breaks for good where its whole
strain (l - r) / l0 exceeds the breaking strain. Both happen once in a step, where its first stage stands.

The derivative is that of what has happened: by how much a spring has set, not whether one is about to break.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, real

__all__ = ["NEVER", "deform_kernel", "wear_arrays", "wear_kernel"]

NEVER = 1e6
"""Strain at which a spring sets or breaks that does neither [1]."""


@functools.cache
def wear_arrays() -> type:
    """Warp struct of when springs set and break."""

    @wp.struct
    class WearArrays:
        """Limits of springs, the same in all worlds.

        ends: Masses that a spring joins, shape (n_springs,).
        breaking: Strain at which it breaks [1], shape (n_springs,).
        masses: Number of masses of one world.
        """

        ends: wp.array[wp.vec2i]
        breaking: wp.array[real]
        masses: int

    return WearArrays


@functools.cache
def wear_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): plastic strains and broken springs at the end; differentiated by Warp."""
    WearArrays = wear_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.wear"))
    def wear(
        # model
        wear: WearArrays,
        l0: wp.array2d[real],
        yield_strain: wp.array2d[real],
        # state
        x: wp.array[NODE],
        rest: wp.array2d[real],
        plastic: wp.array2d[real],
        broken: wp.array2d[real],
        # out
        plastic_out: wp.array2d[real],
        broken_out: wp.array2d[real],
    ):
        """P' = p + max(0, |e| - yield) sign e;  broken where (l - r) / l0 > breaking."""
        w, s = wp.tid()
        i = w * wear.masses + wear.ends[s][0]
        j = w * wear.masses + wear.ends[s][1]
        strain = (wp.length(x[j] - x[i]) - rest[w, s]) / l0[w, s]
        p = plastic[w, s]
        b = broken[w, s]
        elastic = strain - p
        if b < real(1.0):
            if elastic > yield_strain[w, s]:
                p = strain - yield_strain[w, s]
            if elastic < -yield_strain[w, s]:
                p = strain + yield_strain[w, s]
            if strain > wear.breaking[s]:
                b = real(1.0)
        plastic_out[w, s] = p
        broken_out[w, s] = b

    return wear


@functools.cache
def deform_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): lengths at rest of springs that have set; differentiated by Warp."""

    @wp.kernel(module=wp.get_module("warpbots.springs.deform"))
    def deform(
        # model
        l0: wp.array2d[real],
        # state
        rest: wp.array2d[real],
        plastic: wp.array2d[real],
        # out
        rest_out: wp.array2d[real],
    ):
        """R + p l0."""
        w, s = wp.tid()
        rest_out[w, s] = rest[w, s] + plastic[w, s] * l0[w, s]

    return deform
