"""Plasticity and fracture of single springs.

A spring has the initial length l0, the length l, the rest length r under the actuators and the plastic strain p. Its
rest length is r + p l0, and its elastic strain is e = (l - r) / l0 - p. While a spring yields, |e| stays at the yield
strain and p follows the length l (perfect plasticity in one dimension). A spring breaks permanently if its total strain
(l - r) / l0 exceeds the breaking strain. Springs yield and break once in a step, at its first stage.

Gradients follow the branch taken: they include the change of the plastic strain, but not that a small change of the
inputs may break a spring.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, real

__all__ = ["NEVER", "fracture_arrays", "plastic_length_kernel", "yield_kernel"]

NEVER = 1e6
"""Yield and breaking strain of a spring that neither yields nor breaks [1]."""


@functools.cache
def fracture_arrays() -> type:
    """Warp struct type of the breaking strains of springs."""

    @wp.struct
    class FractureArrays:
        """Ends and breaking strains of the springs; all worlds share the arrays.

        ends: Indices of the masses that each spring joins, shape (n_springs,), vec2i.
        breaking_strain: Strain at which each spring breaks [1], shape (n_springs,).
        masses: Number of masses of one world.
        """

        ends: wp.array[wp.vec2i]
        breaking_strain: wp.array[real]
        masses: int

    return FractureArrays


@functools.cache
def yield_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): computes the plastic strain of each spring and whether the spring is broken.

    Warp differentiates the kernel.
    """
    FractureArrays = fracture_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.yield"))
    def yield_and_break(
        # model
        fracture: FractureArrays,
        l0: wp.array2d[real],
        yield_strain: wp.array2d[real],
        # state
        x: wp.array[NODE],
        r: wp.array2d[real],
        plastic: wp.array2d[real],
        broken: wp.array2d[real],
        # out
        plastic_out: wp.array2d[real],
        broken_out: wp.array2d[real],
    ):
        """p' = p + max(0, |e| - yield strain) sign e; a spring breaks if (l - r) / l0 exceeds its breaking strain.

        The module docstring defines the symbols. A broken spring keeps its plastic strain.
        """
        w, s = wp.tid()
        i = w * fracture.masses + fracture.ends[s][0]
        j = w * fracture.masses + fracture.ends[s][1]
        strain = (wp.length(x[j] - x[i]) - r[w, s]) / l0[w, s]
        p = plastic[w, s]
        b = broken[w, s]
        elastic = strain - p
        if b < real(1.0):
            if elastic > yield_strain[w, s]:
                p = strain - yield_strain[w, s]
            if elastic < -yield_strain[w, s]:
                p = strain + yield_strain[w, s]
            if strain > fracture.breaking_strain[s]:
                b = real(1.0)
        plastic_out[w, s] = p
        broken_out[w, s] = b

    return yield_and_break


@functools.cache
def plastic_length_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): computes rest lengths that include plastic strains; differentiated by Warp."""

    @wp.kernel(module=wp.get_module("warpbots.springs.plastic_length"))
    def plastic_length(
        # model
        l0: wp.array2d[real],
        # state
        r: wp.array2d[real],
        plastic: wp.array2d[real],
        # out
        length_out: wp.array2d[real],
    ):
        """Rest length r + p l0 of a spring with the plastic strain p."""
        w, s = wp.tid()
        length_out[w, s] = r[w, s] + plastic[w, s] * l0[w, s]

    return plastic_length
