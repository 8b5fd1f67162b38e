"""Pneumatic cells: tetrahedra with an energy towards a volume (`warpbots.actuation_laws.pneumatic_law`).

    F = D D_0^-1,   (f_1, f_2, f_3) = -V P(F) D_0^-T,   f_0 = -f_1 - f_2 - f_3.

A cell adds its stiffness k to the weight of a tetrahedron, which is never below its second derivative.
"""

import numpy as np
import warp as wp

from warpbots.actuation_laws import cell_functions
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    edges,
    edges_at_rest,
    energy_by,
    forces_by,
    raise_to,
    rest_by,
    row,
    simplices,
    stiffness_by,
)

__all__ = ["CELLS", "CellArrays", "energy_kernel", "force_kernel", "rest_kernel", "scaling_kernel", "stiffness_kernel"]

_vec, _mat = vector(3), matrix(3)
_stress, _frame, _change = cell_functions()


@wp.struct
class CellArrays:
    """Tetrahedra that are pneumatic cells; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    cell_stiffness: Stiffness k [Pa], shape (worlds * count,).
    cell_expansion: Part of its volume that a cell gains at u = 1 [1], shape (count,).
    cell_channel: Control channel, shape (count,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    inverse: D_0^-1 [1/m], shape (worlds * count,).
    volume: V [m^3], shape (worlds * count,).
    nominal: Stiffness of a cell in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    cell_stiffness: wp.array[real]
    cell_expansion: wp.array[real]
    cell_channel: wp.array[int]
    rest_position: wp.array[_vec]
    inverse: wp.array[_mat]
    volume: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(
    # model
    cells: CellArrays,
    # out
    cells_out: CellArrays,
    mass_out: wp.array[real],
):
    """D_0^-1 and V of every cell, which has no mass."""
    w, e = wp.tid()
    D = edges_at_rest(cells.place, cells.rest_position, w, cells.node[e])
    r = row(cells.place, w, e)
    cells_out.inverse[r] = wp.inverse(D)
    cells_out.volume[r] = wp.determinant(D) / real(6.0)
    for c in range(4):
        mass_out[corner(cells.place, w, 4 * e + c)] = real(0.0)


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    cells: CellArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step."""
    w, e = wp.tid()
    r = row(cells.place, w, e)
    stiff = cells.cell_stiffness[r] * cells.volume[r] * wp.ddot(cells.inverse[r], cells.inverse[r])
    raise_to(scaling_out, w, e, stiff / cells.nominal[e])


@wp.func
def deformation(cells: CellArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """F at x + u."""
    return edges(cells.place, x, u, w, cells.node[e]) @ cells.inverse[row(cells.place, w, e)]


@wp.func
def wanted(cells: CellArrays, control: wp.array2d[real], w: int, e: int):
    """The volume a that a cell is to have, over that at rest."""
    return real(1.0) + control[w, cells.cell_channel[e]] * cells.cell_expansion[e]


@wp.func
def column_of(A: _mat, k: int):
    """Column k of a matrix."""
    return _vec(A[0, k], A[1, k], A[2, k])


@wp.kernel(module=wp.get_module("warpbots.projective.pneumatic_cells_energy"))
def energy_kernel(
    # model
    cells: CellArrays,
    # state
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """V k/2 |F - R|^2."""
    w, e = wp.tid()
    r = row(cells.place, w, e)
    D = _stress(deformation(cells, x, u, w, e), real(1.0), wanted(cells, control, w, e))
    energy_out[corner(cells.place, w, 4 * e)] = real(0.5) * cells.cell_stiffness[r] * cells.volume[r] * wp.ddot(D, D)


@wp.kernel
def force_kernel(
    # model
    cells: CellArrays,
    # state
    active: wp.array[int],
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """(f_1, f_2, f_3) = -V P D_0^-T, f_0 = -f_1 - f_2 - f_3."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(cells.place, w, e)
    P = _stress(deformation(cells, x, u, w, e), cells.cell_stiffness[r], wanted(cells, control, w, e))
    f = -cells.volume[r] * P @ wp.transpose(cells.inverse[r])
    c = corner(cells.place, w, 4 * e)
    force_out[c] = -(column_of(f, 0) + column_of(f, 1) + column_of(f, 2))
    for k in range(3):
        force_out[c + 1 + k] = column_of(f, k)


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    cells: CellArrays,
    # state
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += V G_k . dP/dF . G_l: column b of the corners k and l is V dP G_k for dF = e_b G_l^T."""
    w, e = wp.tid()
    r = row(cells.place, w, e)
    a = wanted(cells, control, w, e)
    inverse = cells.inverse[r]
    U, s, r_values, V = _frame(deformation(cells, x, u, w, e), a)
    stiff = cells.volume[r] * cells.cell_stiffness[r]
    for b in range(3):
        for l in range(1, 4):
            G = _vec(inverse[l - 1, 0], inverse[l - 1, 1], inverse[l - 1, 2])
            M = wp.outer(_vec(U[b, 0], U[b, 1], U[b, 2]), wp.transpose(V) @ G)
            dP = stiff * U @ _change(s, r_values, a, M, real(0.0)) @ wp.transpose(V)
            t = dP @ wp.transpose(inverse)
            t0 = -(column_of(t, 0) + column_of(t, 1) + column_of(t, 2))
            p = 16 * e
            add_block(cells.place, w, p + l, b, t0, block_out)
            add_block(cells.place, w, p, b, -t0, block_out)
            for k in range(3):
                add_block(cells.place, w, p + 4 * (k + 1) + l, b, column_of(t, k), block_out)
                add_block(cells.place, w, p + 4 * (k + 1), b, -column_of(t, k), block_out)


def _blocks(mesh: object) -> np.ndarray:
    """V k G G^T."""
    x = mesh.position[mesh.pneumatic]
    volume = np.linalg.det(x[:, 1:] - x[:, :1]) / 6.0
    return (mesh.cell_stiffness * volume)[:, None, None] * simplices(mesh.position, mesh.pneumatic)


CELLS = Kind(
    name="pneumatic",
    arrays=CellArrays,
    node=wp.vec4i,
    constant={"cell_expansion": real, "cell_channel": int},
    rested={"inverse": _mat, "volume": real},
    blocks=_blocks,
    rest=rest_by(rest_kernel),
    scaling=scaling_kernel,
    forces=forces_by(force_kernel, driven=True),
    energy=energy_by(energy_kernel, driven=True),
    stiffness=stiffness_by(stiffness_kernel, driven=True),
)
"""Pneumatic cells."""
