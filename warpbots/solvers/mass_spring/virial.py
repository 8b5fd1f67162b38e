"""Cauchy stress at the masses, from the virials of their springs.

A mass of volume V gets half of the virial of each of its springs (Clausius; for solids Thompson, Plimpton & Mattson
2009, "General formulation of pressure and stress tensor for arbitrary many-body interaction potentials"),

    s = 1/V sum_j t_j / (2 l_j) d_j d_j^T,   V = V_0 sqrt(det(F^T F + P)),

with tension t, length l and edge vector d of each spring. F is the deformation gradient that best fits the springs,

    F = sum_j d_j D_j^T B,   B the pseudoinverse of sum_j D_j D_j^T,

with the edge vector D_j of each spring at rest. P projects onto the orthogonal complement of the span of all D_j; in
these directions the thickness of the matter is assumed constant. So the stress of a single bar is its tension divided
by its cross-section at rest.
"""

import functools
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.numerics import matrix, real, vector
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.solvers.mass_spring.springs import row_arrays, rows_of

__all__ = ["Neighbours", "neighbours_of", "stress_kernel", "virial_kernel"]


class Neighbours(NamedTuple):
    """The springs at each mass, with the constants of the formulas in this module's docstring.

    Each spring is listed at both its ends. All worlds share the arrays.

    Attributes:
        rows: The springs at each mass, as a Warp struct (`springs.row_arrays`).
        slope: For each entry of `rows`, the vector B D_j [1/m], shape (n_entries,), vector.
        missing: For each mass, the projection P [1], shape (n_masses,), matrix.
        volume: For each mass, the volume V_0 at rest [m^dim], shape (n_masses,).
    """

    rows: object
    slope: wp.array
    missing: wp.array
    volume: wp.array


def neighbours_of(lattice: Lattice, device: wp.Device) -> Neighbours:
    """List the springs at each mass of a lattice, with the constants for the virial."""
    n, dim = lattice.position.shape
    rows = rows_of(lattice.ends, n, device, gather=True)
    mass = np.repeat(np.arange(n), np.diff(rows.start.numpy()))
    D = lattice.position[rows.other.numpy()] - lattice.position[mass]
    squares = np.zeros((n, dim, dim))
    np.add.at(squares, mass, D[:, :, None] * D[:, None, :])
    B = np.linalg.pinv(squares, rcond=1e-6, hermitian=True)
    slope = np.einsum("eij,ej->ei", B[mass], D)
    return Neighbours(
        rows,
        device_array(slope, device, vector(dim)),
        device_array(np.eye(dim) - squares @ B, device, matrix(dim)),
        device_array(lattice.volume, device),
    )


@functools.cache
def virial_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): computes the virial and the deformation gradient at each mass.

    Warp differentiates the kernel.
    """
    vec, mat, RowArrays = vector(dim), matrix(dim), row_arrays()

    @wp.kernel(module=wp.get_module(f"warpbots.springs.virial_{dim}d"))
    def virial(
        # model
        rows: RowArrays,
        slope: wp.array[vec],
        # state
        x: wp.array2d[vec],
        # work
        tension: wp.array2d[real],
        # out
        virial_out: wp.array2d[mat],
        deformation_out: wp.array2d[mat],
    ):
        """Virial sum_j t_j / (2 l_j) d_j d_j^T and deformation gradient F = sum_j d_j (B D_j)^T of a mass.

        j runs over the springs at the mass; a spring of length 0 adds nothing to the virial.
        """
        w, i = wp.tid()
        W = mat()
        F = mat()
        for e in range(rows.start[i], rows.start[i + 1]):
            d = x[w, rows.other[e]] - x[w, i]
            l = wp.length(d)
            if l > real(0.0):
                W += real(0.5) * tension[w, rows.spring[e]] / l * wp.outer(d, d)
            F += wp.outer(d, slope[e])
        virial_out[w, i] = W
        deformation_out[w, i] = F

    return virial


@functools.cache
def stress_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): computes the Cauchy stress from the virial; differentiated by Warp."""
    mat = matrix(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.virial_{dim}d"))
    def stress(
        # model
        missing: wp.array[mat],
        volume: wp.array[real],
        # work
        virial: wp.array2d[mat],
        deformation: wp.array2d[mat],
        # out
        stress_out: wp.array2d[mat],
    ):
        """s = W / (V_0 sqrt(det(F^T F + P))), with the virial W, the volume V_0 and the projection P (`missing`)."""
        w, i = wp.tid()
        F = deformation[w, i]
        J = wp.sqrt(wp.determinant(wp.transpose(F) @ F + missing[i]))
        stress_out[w, i] = virial[w, i] / (volume[i] * J)

    return stress
