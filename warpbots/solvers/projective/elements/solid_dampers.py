"""Kelvin-Voigt damping of solid elements with several points of quadrature: that of `dampers` at each point."""

import functools

import numpy as np
import warp as wp

from warpbots.materials import Law, differential, elasticity
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.dampers import carrying
from warpbots.solvers.projective.elements.element import Kind, Place, Point, corner, raise_to, row
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.solid_arrays import (
    deformation,
    node_vector,
    point_of_quadrature,
    rows,
    solid_arrays,
    weight_of,
)
from warpbots.solvers.projective.elements.solids import columns_adder, unit
from warpbots.solvers.projective.elements.tetrahedra import weights

__all__ = ["damper_kind"]

_vec, _mat = vector(3), matrix(3)


@functools.cache
def damper_arrays(nodes: int, points: int) -> type:
    """Warp struct of the dampers of solid elements with so many nodes and points of quadrature."""
    numbers = node_vector(nodes)

    @wp.struct
    class SolidDamperArrays:
        """Dampers of solid elements; arrays that may differ between worlds hold all worlds in one row.

        place: Where they are among all elements.
        node: Nodes of the elements, shape (count,).
        damping: Time beta [s], shape (worlds * elements,).
        carried: beta/h S_0 [Pa], or beta/h P(F_0) for the law `linear`, shape (worlds * count * points,).
        ratio: Parts of the points in the ratio of the stiffness of an element with damping to that in the matrix of the
            global step [1], shape (worlds * count * points,).
        nominal: Resistance of an element in the matrix of the global step [N s/m], shape (count,).
        """

        place: Place
        node: wp.array[numbers]
        damping: wp.array[real]
        carried: wp.array[_mat]
        ratio: wp.array[real]
        nominal: wp.array[real]

    return SolidDamperArrays


@functools.cache
def begin_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law, points): what dampers carry through a step."""
    SolidArrays, DamperArrays = solid_arrays(nodes, points), damper_arrays(nodes, points)
    deformed = deformation(nodes, points)
    _, _, piola = elasticity(law, incompressibility, 3)
    back, _ = carrying(law)

    @wp.kernel(
        module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}_damping")
    )
    def begin(
        # model
        dampers: DamperArrays,
        solids: SolidArrays,
        first: int,
        # state
        h: real,
        x: wp.array[_vec],
        still: wp.array[NODE],
        # out
        dampers_out: DamperArrays,
    ):
        """beta/h S_0, and the part of a point in (1 + beta/h) w sum V |G|^2 over that in the matrix, see `weights`."""
        w, n, i = wp.tid()
        e = first + n
        k = element.element(solids.place, w, e)
        q = point_of_quadrature(solids.place, points, w, e, i)
        E = solids.youngs_modulus[k]
        nu = solids.poissons_ratio[k]
        F = deformed(solids, x, still, w, e, i)
        dampers_out.carried[q] = dampers.damping[k] / h * back(F, piola(F, E, nu))
        G = solids.gradient[q]
        size = weight_of(E, nu) * solids.volume[q] * (wp.ddot(G, G) - wp.length_sq(G[0]))
        dampers_out.ratio[q] = (h + dampers.damping[k]) * size / (h * solids.nominal[e] + dampers.nominal[e])

    return begin


@functools.cache
def damping_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law): forces at the corners of their dampers."""
    SolidArrays, DamperArrays = solid_arrays(nodes, points), damper_arrays(nodes, points)
    deformed, relative = deformation(nodes, points), rows(nodes)
    _, _, piola = elasticity(law, incompressibility, 3)
    _, on = carrying(law)

    @wp.kernel(
        module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}_damping")
    )
    def damping(
        # model
        dampers: DamperArrays,
        solids: SolidArrays,
        first: int,
        count: int,
        # state
        h: real,
        active: wp.array[int],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """f_a = -sum V P_v G_a, over `count` points: a loop of unknown length is compiled once, not unrolled."""
        w, n = wp.tid()
        if active[w] == 0:
            return
        e = first + n
        k = element.element(solids.place, w, e)
        f = relative()
        for i in range(count):
            q = point_of_quadrature(solids.place, points, w, e, i)
            F = deformed(solids, x, u, w, e, i)
            P = piola(F, solids.youngs_modulus[k], solids.poissons_ratio[k])
            P_v = dampers.damping[k] / h * P - on(F, dampers.carried[q])
            f -= solids.volume[q] * solids.gradient[q] @ wp.transpose(P_v)
        for a in range(nodes):
            force_out[corner(dampers.place, w, nodes * e + a)] = f[a]

    return damping


@functools.cache
def stiffness_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law): add the second derivatives of dampers to a matrix of blocks."""
    SolidArrays, DamperArrays = solid_arrays(nodes, points), damper_arrays(nodes, points)
    deformed, add_columns = deformation(nodes, points), columns_adder(nodes)
    _, point_of, differential_of = differential(law, incompressibility, 3)
    _, on = carrying(law)
    module = wp.get_module(
        f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}_damping_stiffness"
    )
    wp.set_module_options({"max_unroll": 3}, module)

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        dampers: DamperArrays,
        solids: SolidArrays,
        first: int,
        # state
        h: real,
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        block_out: wp.array[NODE],
    ):
        """K += V G_k . (beta/h dP/dF - S_0) . G_l."""
        w, n = wp.tid()
        e = first + n
        k = element.element(solids.place, w, e)
        rate = dampers.damping[k] / h
        for i in range(points):
            q = point_of_quadrature(solids.place, points, w, e, i)
            S = dampers.carried[q]
            still = on(_mat(), S)
            point = point_of(deformed(solids, x, u, w, e, i), solids.youngs_modulus[k], solids.poissons_ratio[k])
            for b in range(3):
                A0 = rate * differential_of(point, unit(b, 0)) - on(unit(b, 0), S) + still
                A1 = rate * differential_of(point, unit(b, 1)) - on(unit(b, 1), S) + still
                A2 = rate * differential_of(point, unit(b, 2)) - on(unit(b, 2), S) + still
                add_columns(dampers.place, w, e, b, solids.volume[q], solids.gradient[q], A0, A1, A2, block_out)

    return stiffness


@functools.cache
def scaling_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, elements): the largest ratio of a stiffness with damping to that in the matrix."""
    DamperArrays = damper_arrays(nodes, points)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_damping"), enable_backward=False)
    def scaling(
        # model
        dampers: DamperArrays,
        # out
        scaling_out: wp.array2d[real],
    ):
        """The sum of the parts of all points."""
        w, e = wp.tid()
        ratio = real(0.0)
        for i in range(points):
            ratio += dampers.ratio[points * row(dampers.place, w, e) + i]
        raise_to(scaling_out, w, e, ratio)

    return scaling


def damper_kind(reference: ReferenceElement) -> Kind:
    """The kind of the dampers of the solids of a reference element."""
    points, nodes = reference.gradients.shape[:2]

    def blocks(mesh: object) -> np.ndarray:
        """beta w sum V G G^T."""
        k = mesh.of(reference.name)
        weight = mesh.damping[k] * weights(mesh.youngs_modulus[k], mesh.poissons_ratio[k])
        return weight[:, None, None] * reference.products(mesh.position, mesh.solids)

    def begin(dampers: object, model: object, point: Point) -> list[tuple]:
        solids, still = model.of_kind(reference.name), model.workspace.zero
        return [
            (
                begin_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count, points),
                [dampers, solids, g.first, point.h, point.x, still, dampers],
            )
            for g in model.groups
        ]  # fmt: skip

    def forces(dampers: object, model: object, point: Point) -> list[tuple]:
        solids, where = model.of_kind(reference.name), [point.h, point.active, point.x, point.u]
        return [
            (
                damping_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count),
                [dampers, solids, g.first, points, *where, model.workspace.force],
            )
            for g in model.groups
        ]  # fmt: skip

    def stiffness(dampers: object, model: object, point: Point) -> list[tuple]:
        solids, where = model.of_kind(reference.name), [point.h, point.x, point.u]
        return [
            (
                stiffness_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count),
                [dampers, solids, g.first, *where, model.workspace.block],
            )
            for g in model.groups
        ]  # fmt: skip

    return Kind(
        name=f"damped_{reference.name}",
        arrays=damper_arrays(nodes, points),
        node=node_vector(nodes),
        points=points,
        rested={"carried": _mat, "ratio": real},
        blocks=blocks,
        begin=begin,
        viscous=True,
        scaling=scaling_kernel(nodes, points),
        forces=forces,
        stiffness=stiffness,
    )
