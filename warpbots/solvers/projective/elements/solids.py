"""Solid elements with several points of quadrature (Zienkiewicz, Taylor & Zhu 2013, "The finite element method").

With the positions x_a of the nodes, the gradients G_a of their shape functions at a point of quadrature, and the volume
V for which the point stands,

    F = sum_a x_a G_a^T,   f_a = -sum V P(F) G_a,   the second one over the points.

P is that of the material plus F S for the stress S of actuators in the undeformed body. Actuators that change lengths
at rest change G and V.
"""

import functools

import numpy as np
import warp as wp

from warpbots.actuation_laws import activation_arrays, active_stress
from warpbots.materials import Law, differential, elasticity
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.element import Kind, Place, Point, add_block, corner, raise_to
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.solid_arrays import (
    deformation,
    jacobian_at_rest,
    node_vector,
    point_of_quadrature,
    reference_arrays,
    rows,
    solid_arrays,
    weight_of,
)
from warpbots.solvers.projective.elements.tetrahedra import weights
from warpbots.solvers.projective.islands import Islands, island_of

__all__ = ["columns_adder", "solid_kind", "unit"]

_vec, _mat = vector(3), matrix(3)
_ActivationArrays = activation_arrays(3)
_active = active_stress(3)


@functools.cache
def rest_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, elements, points): gradients and volumes as they have grown, and masses before."""
    SolidArrays, relative = solid_arrays(nodes, points), rows(nodes)
    jacobian = jacobian_at_rest(nodes)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}"))
    def rest(
        # model
        solids: SolidArrays,
        growth: _ActivationArrays,
        reference: wp.array[relative],
        weight: wp.array[real],
        # state
        control: wp.array2d[real],
        # out
        solids_out: SolidArrays,
    ):
        """G = N (A J)^-1 and V = det A w det J with J = sum X_a N_a^T, where lengths at rest are A times theirs."""
        w, e, i = wp.tid()
        N = reference[i]
        J = jacobian(solids.place, solids.rest_position, solids.node[e], N, w)
        A = wp.identity(n=3, dtype=real) + _active(growth, e, w, control)
        V = weight[i] * wp.determinant(J)
        q = point_of_quadrature(solids.place, points, w, e, i)
        solids_out.gradient[q] = N @ wp.inverse(A @ J)
        solids_out.volume[q] = wp.determinant(A) * V
        solids_out.mass[q] = solids.density[element.element(solids.place, w, e)] * V

    return rest


@functools.cache
def mass_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, elements): masses of corners, shares of those of all points."""
    SolidArrays = solid_arrays(nodes, points)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}"))
    def mass(
        # model
        solids: SolidArrays,
        share: wp.array[real],
        # out
        mass_out: wp.array[real],
    ):
        """m_a = s_a sum m."""
        w, e = wp.tid()
        m = real(0.0)
        for i in range(points):
            m += solids.mass[point_of_quadrature(solids.place, points, w, e, i)]
        for a in range(nodes):
            mass_out[corner(solids.place, w, nodes * e + a)] = share[a] * m

    return mass


@functools.cache
def scaling_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, elements): the largest ratio of a stiffness to that in the matrix of the global step."""
    SolidArrays = solid_arrays(nodes, points)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_scaling"), enable_backward=False)
    def scaling(
        # model
        solids: SolidArrays,
        # out
        scaling_out: wp.array2d[real],
    ):
        """w sum V |G|^2 of the nodes but the first, over the same for the parameters of the matrix, see `weights`."""
        w, e = wp.tid()
        k = element.element(solids.place, w, e)
        size = real(0.0)
        for i in range(points):
            q = point_of_quadrature(solids.place, points, w, e, i)
            G = solids.gradient[q]
            size += solids.volume[q] * (wp.ddot(G, G) - wp.length_sq(G[0]))
        weight = weight_of(solids.youngs_modulus[k], solids.poissons_ratio[k])
        raise_to(scaling_out, w, e, weight * size / solids.nominal[e])

    return scaling


@functools.cache
def forbid_kernel(nodes: int, points: int) -> wp.Kernel:
    """Kernel over (worlds, elements): no step converges to an element that is inverted at a point of quadrature."""
    SolidArrays = solid_arrays(nodes, points)
    deformed = deformation(nodes, points)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_forbid"), enable_backward=False)
    def forbid(
        # model
        solids: SolidArrays,
        # state
        x: wp.array[_vec],
        u: wp.array[NODE],
        # work
        islands: Islands,
        # out
        converged_out: wp.array[int],
    ):
        """det F > 0."""
        w, e = wp.tid()
        k = island_of(islands, w, solids.node[e][0])
        if converged_out[k] == 1:
            for i in range(points):
                if not (wp.determinant(deformed(solids, x, u, w, e, i)) > real(0.0)):
                    converged_out[k] = 0

    return forbid


@functools.cache
def stress_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law): forces at their corners."""
    SolidArrays, relative = solid_arrays(nodes, points), rows(nodes)
    deformed = deformation(nodes, points)
    _, _, piola = elasticity(law, incompressibility, 3)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}"))
    def stress(
        # model
        solids: SolidArrays,
        activation: _ActivationArrays,
        first: int,
        count: int,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """f = -sum V G (P + F S)^T, over `count` points: a loop of unknown length is compiled once, not unrolled."""
        w, n = wp.tid()
        if active[w] == 0:
            return
        e = first + n
        k = element.element(solids.place, w, e)
        S = _active(activation, e, w, control)
        f = relative()
        for i in range(count):
            F = deformed(solids, x, u, w, e, i)
            P = piola(F, solids.youngs_modulus[k], solids.poissons_ratio[k]) + F @ S
            q = point_of_quadrature(solids.place, points, w, e, i)
            f -= solids.volume[q] * solids.gradient[q] @ wp.transpose(P)
        for a in range(nodes):
            force_out[corner(solids.place, w, nodes * e + a)] = f[a]

    return stress


@functools.cache
def measure_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law): their energies, and their strains and stresses as means of points."""
    SolidArrays = solid_arrays(nodes, points)
    deformed = deformation(nodes, points)
    energy, _, piola = elasticity(law, incompressibility, 3)

    @wp.kernel(
        module=wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}_measure")
    )
    def measure(
        # model
        solids: SolidArrays,
        activation: _ActivationArrays,
        first: int,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        energy_out: wp.array[real],
        strain_out: wp.array2d[_mat],
        stress_out: wp.array2d[_mat],
    ):
        """sum V Psi, and the means, weighted by V, of 1/2 (F^T F - 1) and (P + F S) F^T / det F."""
        w, n = wp.tid()
        e = first + n
        k = element.element(solids.place, w, e)
        E = solids.youngs_modulus[k]
        nu = solids.poissons_ratio[k]
        S = _active(activation, e, w, control)
        whole = real(0.0)
        stored = real(0.0)
        strain = _mat()
        stress = _mat()
        for i in range(points):
            F = deformed(solids, x, u, w, e, i)
            V = solids.volume[point_of_quadrature(solids.place, points, w, e, i)]
            P = piola(F, E, nu) + F @ S
            whole += V
            stored += V * energy(F, E, nu)
            strain += V * real(0.5) * (wp.transpose(F) @ F - wp.identity(n=3, dtype=real))
            stress += V / wp.determinant(F) * (P @ wp.transpose(F))
        energy_out[corner(solids.place, w, nodes * e)] = stored
        strain_out[w, e] = strain / whole
        stress_out[w, e] = stress / whole

    return measure


@functools.cache
def stiffness_kernel(nodes: int, points: int, law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, elements of one law): add their second derivatives to a matrix of blocks.

    Column b of the block of corners k and l is sum V dP(e_b G_l^T) G_k, and dP(e_b G_l^T) = sum_d dP(e_b e_d^T) G_ld.
    """
    SolidArrays = solid_arrays(nodes, points)
    deformed = deformation(nodes, points)
    _, point_of, differential_of = differential(law, incompressibility, 3)
    add_columns = columns_adder(nodes)
    module = wp.get_module(f"warpbots.projective.solids_{nodes}_{points}_{law.module}_{incompressibility}_stiffness")
    wp.set_module_options({"max_unroll": 3}, module)  # copies of blocks take long to compile

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        solids: SolidArrays,
        activation: _ActivationArrays,
        first: int,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        block_out: wp.array[NODE],
    ):
        """K += V G_k . dP/dF . G_l."""
        w, n = wp.tid()
        e = first + n
        k = element.element(solids.place, w, e)
        S = _active(activation, e, w, control)
        for i in range(points):
            q = point_of_quadrature(solids.place, points, w, e, i)
            G = solids.gradient[q]
            point = point_of(deformed(solids, x, u, w, e, i), solids.youngs_modulus[k], solids.poissons_ratio[k])
            for b in range(3):
                A0 = differential_of(point, unit(b, 0)) + unit(b, 0) @ S
                A1 = differential_of(point, unit(b, 1)) + unit(b, 1) @ S
                A2 = differential_of(point, unit(b, 2)) + unit(b, 2) @ S
                add_columns(solids.place, w, e, b, solids.volume[q], G, A0, A1, A2, block_out)

    return stiffness


@wp.func
def unit(b: int, c: int):
    """e_b e_c^T."""
    dF = _mat()
    dF[b, c] = real(1.0)
    return dF


@functools.cache
def columns_adder(nodes: int) -> wp.Function:
    """Warp function that adds to column b of all blocks of an element the part of one point of quadrature.

    Its arguments are (place, w, e, b, V, G, A_0, A_1, A_2, block) with A_c = dP(e_b e_c^T).
    """
    gradients = rows(nodes)

    @wp.func
    def add_columns(
        place: Place, w: int, e: int, b: int, V: real, G: gradients, A0: _mat, A1: _mat, A2: _mat,
        block: wp.array[NODE],
    ):  # fmt: skip
        """V sum_c A_c G_k G_lc."""
        for k in range(nodes):
            a0 = V * A0 @ G[k]
            a1 = V * A1 @ G[k]
            a2 = V * A2 @ G[k]
            for l in range(nodes):
                p = nodes * (nodes * e + k) + l
                add_block(place, w, p, b, G[l, 0] * a0 + G[l, 1] * a1 + G[l, 2] * a2, block)

    return add_columns


def solid_kind(reference: ReferenceElement) -> Kind:
    """The kind of elements of a reference element."""
    points, nodes = reference.gradients.shape[:2]

    def blocks(mesh: object) -> np.ndarray:
        """w sum V G G^T."""
        k = mesh.of(reference.name)
        weight = weights(mesh.youngs_modulus[k], mesh.poissons_ratio[k])
        return weight[:, None, None] * reference.products(mesh.position, getattr(mesh, reference.name))

    def rest(solids: object, model: object, control: wp.array) -> list[tuple]:
        gradients, weight, share = reference_arrays(reference, model.device.alias)
        each, masses = (model.worlds, solids.place.count), model.workspace.corner_mass
        return [
            (rest_kernel(nodes, points), (*each, points), [solids, model.growth, gradients, weight, control, solids]),
            (mass_kernel(nodes, points), each, [solids, share, masses]),
        ]

    def forces(solids: object, model: object, point: Point) -> list[tuple]:
        at, out = [point.active, point.control, point.x, point.u], model.workspace.force
        return [
            (
                stress_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count),
                [solids, model.activation, g.first, points, *at, out],
            )
            for g in model.groups
        ]  # fmt: skip

    def stiffness(solids: object, model: object, point: Point) -> list[tuple]:
        at, out = [point.control, point.x, point.u], model.workspace.block
        return [
            (
                stiffness_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count),
                [solids, model.activation, g.first, *at, out],
            )
            for g in model.groups
        ]  # fmt: skip

    def measure(solids: object, model: object, point: Point, written: list[wp.array]) -> list[tuple]:
        at = [point.control, point.x, point.u]
        return [
            (
                measure_kernel(nodes, points, g.law, g.incompressibility), (model.worlds, g.count),
                [solids, model.activation, g.first, *at, *written],
            )
            for g in model.groups
        ]  # fmt: skip

    return Kind(
        name=reference.name,
        arrays=solid_arrays(nodes, points),
        node=node_vector(nodes),
        points=points,
        rested={"gradient": rows(nodes), "volume": real, "mass": real},
        blocks=blocks,
        rest=rest,
        forbid=forbid_kernel(nodes, points),
        scaling=scaling_kernel(nodes, points),
        forces=forces,
        measure=measure,
        stiffness=stiffness,
    )
