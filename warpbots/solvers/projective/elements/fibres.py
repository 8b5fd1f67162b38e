"""Fibres of muscles in solids, with an energy of their own (`warpbots.actuation_laws.fibre`).

With the gradients G_a of the shape functions at a point of quadrature, the volume V for which it stands, and the
direction m of the fibre in the undeformed body,

    y = F m = sum_a (G_a . m) x_a,   f_a = -sum V (G_a . m) p(y),   the second one over the points.

A fibre adds sum V k (G_a . m) (G_b . m) to the matrix of the global step, which is never below its second derivative.
"""

import functools

import numpy as np
import warp as wp

from warpbots.actuation_laws import fibre_pull
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    raise_to,
    row,
    span,
    stiffness_by,
)
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.solid_arrays import (
    entries,
    jacobian_at_rest,
    node_vector,
    point_of_quadrature,
    rest_at_points_by,
    rows,
)

__all__ = ["fibre_kind"]

_vec = vector(3)
_pull = fibre_pull(3)


@functools.cache
def fibre_arrays(nodes: int) -> type:
    """Warp struct of fibres in solid elements with so many nodes."""
    numbers, shares = node_vector(nodes), entries(nodes)

    @wp.struct
    class FibreArrays:
        """Fibres, one for each solid element that a muscle drives.

        Arrays that may differ between worlds hold all worlds in one row.

        place: Where they are among all elements.
        node: Nodes of the elements, shape (count,).
        fibre_stiffness: Stiffness k [Pa], shape (worlds * count,).
        fibre_direction: Direction m in the undeformed body [1], shape (count,).
        fibre_contraction: Part of its length that a fibre loses at u = 1 [1], shape (count,).
        fibre_channel: Control channel, shape (count,).
        rest_position: Positions at rest [m], shape (worlds * nodes,).
        slope: G . m of all nodes at the points [1/m], shape (worlds * count * points,).
        volume: Volumes V for which the points stand [m^3], shape (worlds * count * points,).
        nominal: Stiffness of a fibre in the matrix of the global step [N/m], shape (count,).
        """

        place: Place
        node: wp.array[numbers]
        fibre_stiffness: wp.array[real]
        fibre_direction: wp.array[_vec]
        fibre_contraction: wp.array[real]
        fibre_channel: wp.array[int]
        rest_position: wp.array[_vec]
        slope: wp.array[shares]
        volume: wp.array[real]
        nominal: wp.array[real]

    return FibreArrays


@functools.cache
def rest_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, fibres, points): slopes and volumes."""
    FibreArrays, relative, jacobian = fibre_arrays(nodes), rows(nodes), jacobian_at_rest(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.fibres_{nodes}_{points}"))
    def rest(
        # model
        fibres: FibreArrays,
        reference: wp.array[relative],
        weight: wp.array[real],
        # out
        fibres_out: FibreArrays,
    ):
        """G . m = N J^-1 m and V = w det J."""
        w, e, i = wp.tid()
        N = reference[i]
        J = jacobian(fibres.place, fibres.rest_position, fibres.node[e], N, w)
        q = point_of_quadrature(fibres.place, points, w, e, i)
        fibres_out.slope[q] = N @ (wp.inverse(J) @ fibres.fibre_direction[e])
        fibres_out.volume[q] = weight[i] * wp.determinant(J)

    return rest


@functools.cache
def scaling_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, fibres): the largest ratio of a stiffness to that in the matrix of the global step."""
    FibreArrays = fibre_arrays(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.fibres_{nodes}_{points}"), enable_backward=False)
    def scaling(
        # model
        fibres: FibreArrays,
        # out
        scaling_out: wp.array2d[real],
    ):
        """k sum V (G . m)^2 of the nodes but the first, over the same for the parameters of the matrix."""
        w, e = wp.tid()
        r = row(fibres.place, w, e)
        size = real(0.0)
        for i in range(points):
            q = point_of_quadrature(fibres.place, points, w, e, i)
            g = fibres.slope[q]
            size += fibres.volume[q] * (wp.dot(g, g) - g[0] * g[0])
        raise_to(scaling_out, w, e, fibres.fibre_stiffness[r] * size / fibres.nominal[e])

    return scaling


@functools.cache
def along(nodes: int) -> wp.Function:
    """Warp function y(fibres, g, x, u, w, e): F m at x + u and the point of an element where g are the slopes."""
    FibreArrays, shares = fibre_arrays(nodes), entries(nodes)

    @wp.func
    def stretched(fibres: FibreArrays, g: shares, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
        """sum_a (x_a - x_0) (G_a . m)."""
        k = fibres.node[e]
        y = _vec()
        for a in range(1, nodes):
            y += g[a] * span(fibres.place, x, u, w, k[0], k[a])
        return y

    return stretched


@wp.func
def resting(control: wp.array2d[real], w: int, channel: int, contraction: real):
    """Stretch of a fibre at rest."""
    return real(1.0) - control[w, channel] * contraction


@functools.cache
def energy_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, fibres): their energies."""
    FibreArrays, stretched = fibre_arrays(nodes), along(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.fibres_{nodes}_{points}_energy"))
    def energy(
        # model
        fibres: FibreArrays,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        energy_out: wp.array[real],
    ):
        """sum V k/2 (|y| - L)^2."""
        w, e = wp.tid()
        r = row(fibres.place, w, e)
        L = resting(control, w, fibres.fibre_channel[e], fibres.fibre_contraction[e])
        stored = real(0.0)
        for i in range(points):
            q = point_of_quadrature(fibres.place, points, w, e, i)
            d = wp.length(stretched(fibres, fibres.slope[q], x, u, w, e)) - L
            stored += real(0.5) * fibres.fibre_stiffness[r] * fibres.volume[q] * d * d
        energy_out[corner(fibres.place, w, nodes * e)] = stored

    return energy


@functools.cache
def force_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, fibres): forces at their corners."""
    FibreArrays, forces, stretched = fibre_arrays(nodes), rows(nodes), along(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.fibres_{nodes}_{points}"))
    def force(
        # model
        fibres: FibreArrays,
        count: int,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """f = -sum V (G . m) p^T, over `count` points: a loop of unknown length is compiled once, not unrolled."""
        w, e = wp.tid()
        if active[w] == 0:
            return
        r = row(fibres.place, w, e)
        L = resting(control, w, fibres.fibre_channel[e], fibres.fibre_contraction[e])
        f = forces()
        for i in range(count):
            q = point_of_quadrature(fibres.place, points, w, e, i)
            g = fibres.slope[q]
            p = _pull(stretched(fibres, g, x, u, w, e), fibres.fibre_stiffness[r], L)
            f += wp.outer(g, -fibres.volume[q] * p)
        for a in range(nodes):
            force_out[corner(fibres.place, w, nodes * e + a)] = f[a]

    return force


@wp.func
def work(y: _vec, k: real, L: real, t: _vec):
    """t . p, whose gradient with respect to y is the column of the stiffness for t."""
    return wp.dot(t, _pull(y, k, L))


@functools.cache
def stiffness_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, fibres): add their second derivatives to a matrix of blocks."""
    FibreArrays, stretched = fibre_arrays(nodes), along(nodes)
    module = wp.get_module(f"warpbots.projective.fibres_{nodes}_{points}_stiffness")
    wp.set_module_options({"max_unroll": 3}, module)  # copies of blocks take long to compile

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        fibres: FibreArrays,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        block_out: wp.array[NODE],
    ):
        """K += V dp/dy (G_k . m) (G_l . m)."""
        w, e = wp.tid()
        r = row(fibres.place, w, e)
        L = resting(control, w, fibres.fibre_channel[e], fibres.fibre_contraction[e])
        for i in range(points):
            q = point_of_quadrature(fibres.place, points, w, e, i)
            g = fibres.slope[q]
            y = stretched(fibres, g, x, u, w, e)
            for b in range(3):
                t = _vec()
                t[b] = fibres.volume[q]
                t, _k, _L, _t = wp.grad(work)(y, fibres.fibre_stiffness[r], L, t)
                for k in range(nodes):
                    for l in range(nodes):
                        add_block(fibres.place, w, nodes * (nodes * e + k) + l, b, g[k] * g[l] * t, block_out)

    return stiffness


@functools.cache
def fibre_kind(reference: ReferenceElement) -> Kind:
    """The kind of fibres in solids of a reference element."""
    points, nodes = reference.gradients.shape[:2]

    def blocks(mesh: object) -> np.ndarray:
        """k sum V (G . m) (G . m)^T."""
        m = mesh.fibre_direction[:, None, :, None]
        g = (reference.gradients @ np.linalg.solve(reference.jacobians(mesh.position, mesh.fibres), m))[..., 0]
        V = reference.volumes(mesh.position, mesh.fibres)
        return np.einsum("e,eq,eqa,eqb->eab", mesh.fibre_stiffness, V, g, g)

    return Kind(
        name="fibres",
        arrays=fibre_arrays(nodes),
        node=node_vector(nodes),
        points=points,
        constant={"fibre_direction": _vec, "fibre_contraction": real, "fibre_channel": int},
        rested={"slope": entries(nodes), "volume": real},
        blocks=blocks,
        rest=rest_at_points_by(rest_kernel(nodes, points), reference),
        scaling=scaling_kernel(nodes, points),
        forces=forces_by(force_kernel(nodes, points), True, points),
        energy=energy_by(energy_kernel(nodes, points), driven=True),
        stiffness=stiffness_by(stiffness_kernel(nodes, points), driven=True),
    )
