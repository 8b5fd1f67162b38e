"""Pneumatic cells: solids with an energy towards a volume (`warpbots.actuation_laws.pneumatic_law`).

With the gradients G_a of the shape functions at a point of quadrature and the volume V for which it stands,

    F = sum_a x_a G_a^T,   f_a = -sum V P(F) G_a,   the second one over the points.

Each point is a cell of its own, which draws the matter around it towards the wanted volume; so a linear tetrahedron is
one. A cell adds its stiffness k to the weight of a solid, which is never below its second derivative.
"""

import functools

import numpy as np
import warp as wp

from warpbots.actuation_laws import cell_functions
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    corner,
    energy_by,
    forces_by,
    raise_to,
    row,
    stiffness_by,
)
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.solid_arrays import (
    gradient_of_positions,
    jacobian_at_rest,
    node_vector,
    point_of_quadrature,
    rest_at_points_by,
    rows,
)
from warpbots.solvers.projective.elements.solids import columns_adder

__all__ = ["cell_kind"]

_vec, _mat = vector(3), matrix(3)
_stress, _frame, _change = cell_functions()


@functools.cache
def cell_arrays(nodes: int) -> type:
    """Warp struct of pneumatic cells in solid elements with so many nodes."""
    numbers, gradients = node_vector(nodes), rows(nodes)

    @wp.struct
    class CellArrays:
        """Solid elements that are pneumatic cells.

        Arrays that may differ between worlds hold all worlds in one row.

        place: Where they are among all elements.
        node: Nodes of the elements, shape (count,).
        cell_stiffness: Stiffness k [Pa], shape (worlds * count,).
        cell_expansion: Part of its volume that a cell gains at u = 1 [1], shape (count,).
        cell_channel: Control channel, shape (count,).
        rest_position: Positions at rest [m], shape (worlds * nodes,).
        gradient: Gradients G of the shape functions at the points [1/m], shape (worlds * count * points,).
        volume: Volumes V for which the points stand [m^3], shape (worlds * count * points,).
        nominal: Stiffness of a cell in the matrix of the global step [N/m], shape (count,).
        """

        place: Place
        node: wp.array[numbers]
        cell_stiffness: wp.array[real]
        cell_expansion: wp.array[real]
        cell_channel: wp.array[int]
        rest_position: wp.array[_vec]
        gradient: wp.array[gradients]
        volume: wp.array[real]
        nominal: wp.array[real]

    return CellArrays


@functools.cache
def rest_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, cells, points): gradients and volumes."""
    CellArrays, relative, jacobian = cell_arrays(nodes), rows(nodes), jacobian_at_rest(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.cells_{nodes}_{points}"))
    def rest(
        # model
        cells: CellArrays,
        reference: wp.array[relative],
        weight: wp.array[real],
        # out
        cells_out: CellArrays,
    ):
        """G = N J^-1 and V = w det J."""
        w, e, i = wp.tid()
        N = reference[i]
        J = jacobian(cells.place, cells.rest_position, cells.node[e], N, w)
        q = point_of_quadrature(cells.place, points, w, e, i)
        cells_out.gradient[q] = N @ wp.inverse(J)
        cells_out.volume[q] = weight[i] * wp.determinant(J)

    return rest


@functools.cache
def scaling_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, cells): the largest ratio of a stiffness to that in the matrix of the global step."""
    CellArrays = cell_arrays(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.cells_{nodes}_{points}"), enable_backward=False)
    def scaling(
        # model
        cells: CellArrays,
        # out
        scaling_out: wp.array2d[real],
    ):
        """k sum V |G|^2 of the nodes but the first, over the same for the parameters of the matrix."""
        w, e = wp.tid()
        r = row(cells.place, w, e)
        size = real(0.0)
        for i in range(points):
            q = point_of_quadrature(cells.place, points, w, e, i)
            G = cells.gradient[q]
            size += cells.volume[q] * (wp.ddot(G, G) - wp.length_sq(G[0]))
        raise_to(scaling_out, w, e, cells.cell_stiffness[r] * size / cells.nominal[e])

    return scaling


@wp.func
def wanted(control: wp.array2d[real], w: int, channel: int, expansion: real):
    """The volume a that a cell is to have, over that at rest."""
    return real(1.0) + control[w, channel] * expansion


@functools.cache
def energy_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, cells): their energies."""
    CellArrays, deformed = cell_arrays(nodes), gradient_of_positions(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.cells_{nodes}_{points}_energy"))
    def energy(
        # model
        cells: CellArrays,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        energy_out: wp.array[real],
    ):
        """sum V k/2 |F - R|^2."""
        w, e = wp.tid()
        r = row(cells.place, w, e)
        a = wanted(control, w, cells.cell_channel[e], cells.cell_expansion[e])
        stored = real(0.0)
        for i in range(points):
            q = point_of_quadrature(cells.place, points, w, e, i)
            F = deformed(cells.place, cells.node[e], cells.gradient[q], x, u, w)
            D = _stress(F, real(1.0), a)
            stored += real(0.5) * cells.cell_stiffness[r] * cells.volume[q] * wp.ddot(D, D)
        energy_out[corner(cells.place, w, nodes * e)] = stored

    return energy


@functools.cache
def force_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, cells): forces at their corners."""
    CellArrays, forces, deformed = cell_arrays(nodes), rows(nodes), gradient_of_positions(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.cells_{nodes}_{points}"))
    def force(
        # model
        cells: CellArrays,
        count: int,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """f = -sum V G P^T, over `count` points: a loop of unknown length is compiled once, not unrolled."""
        w, e = wp.tid()
        if active[w] == 0:
            return
        r = row(cells.place, w, e)
        a = wanted(control, w, cells.cell_channel[e], cells.cell_expansion[e])
        f = forces()
        for i in range(count):
            q = point_of_quadrature(cells.place, points, w, e, i)
            G = cells.gradient[q]
            P = _stress(deformed(cells.place, cells.node[e], G, x, u, w), cells.cell_stiffness[r], a)
            f -= G @ wp.transpose(cells.volume[q] * P)
        for n in range(nodes):
            force_out[corner(cells.place, w, nodes * e + n)] = f[n]

    return force


@wp.func
def changed(U: _mat, s: _vec, r: _vec, V: _mat, a: real, b: int, c: int):
    """Change of F - R with e_b e_c^T."""
    M = wp.outer(U[b], V[c])
    return U @ _change(s, r, a, M, real(0.0)) @ wp.transpose(V)


@functools.cache
def stiffness_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, cells): add their second derivatives to a matrix of blocks."""
    CellArrays, deformed, add_columns = cell_arrays(nodes), gradient_of_positions(nodes), columns_adder(nodes)
    module = wp.get_module(f"warpbots.projective.cells_{nodes}_{points}_stiffness")
    wp.set_module_options({"max_unroll": 3}, module)  # copies of blocks take long to compile

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        cells: CellArrays,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        block_out: wp.array[NODE],
    ):
        """K += V G_k . dP/dF . G_l."""
        w, e = wp.tid()
        n = row(cells.place, w, e)
        a = wanted(control, w, cells.cell_channel[e], cells.cell_expansion[e])
        for i in range(points):
            q = point_of_quadrature(cells.place, points, w, e, i)
            G = cells.gradient[q]
            stiff = cells.cell_stiffness[n] * cells.volume[q]
            U, s, r, V = _frame(deformed(cells.place, cells.node[e], G, x, u, w), a)
            for b in range(3):
                A0 = changed(U, s, r, V, a, b, 0)
                A1 = changed(U, s, r, V, a, b, 1)
                A2 = changed(U, s, r, V, a, b, 2)
                add_columns(cells.place, w, e, b, stiff, G, A0, A1, A2, block_out)

    return stiffness


@functools.cache
def cell_kind(reference: ReferenceElement) -> Kind:
    """The kind of pneumatic cells in solids of a reference element."""
    points, nodes = reference.gradients.shape[:2]

    def blocks(mesh: object) -> np.ndarray:
        """k sum V G G^T."""
        return mesh.cell_stiffness[:, None, None] * reference.products(mesh.position, mesh.pneumatic)

    return Kind(
        name="pneumatic",
        arrays=cell_arrays(nodes),
        node=node_vector(nodes),
        points=points,
        constant={"cell_expansion": real, "cell_channel": int},
        rested={"gradient": rows(nodes), "volume": real},
        blocks=blocks,
        rest=rest_at_points_by(rest_kernel(nodes, points), reference),
        scaling=scaling_kernel(nodes, points),
        forces=forces_by(force_kernel(nodes, points), True, points),
        energy=energy_by(energy_kernel(nodes, points), driven=True),
        stiffness=stiffness_by(stiffness_kernel(nodes, points), driven=True),
    )
