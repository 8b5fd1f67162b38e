"""Kernels of elements under a `Response`: forces and the derivative of forces, energies, strains and stresses."""

import functools

import warp as wp

from warpbots.actuation_laws import ActivationArrays
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.numerics.simd import multiply_add, scale
from warpbots.solvers.projective.elements.element import add_column, corner, row
from warpbots.solvers.projective.elements.generator.energy import Energy, Response, derivative_of
from warpbots.solvers.projective.elements.generator.family import Family, point_of_quadrature, rows
from warpbots.solvers.projective.islands import Islands, island_of

__all__ = ["energy_kernel", "forbid_kernel", "force_kernel", "measure_kernel", "stiffness_kernel"]

_vec, _mat = vector(3), matrix(3)


@functools.cache
def force_kernel(family: Family, energy: Energy, response: Response) -> wp.Kernel:
    """Kernel over (worlds, elements of one energy) that writes the forces at the corners of the elements."""
    Own, Elements, deformed, nodes, points = (
        response.arrays, family.arrays, family.deformed, family.nodes, family.points,
    )  # fmt: skip
    constants, stress, piola, forces = response.constants, response.stress, energy.stress, rows(nodes, 3)

    @wp.kernel(module=family.module(energy.name, response.name))
    def force(
        # model
        own: Own,
        elements: Elements,
        activation: ActivationArrays,
        first: int,
        count: int,
        # step
        h: real,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """f_a = -sum V P G_a, over `count` points: a loop of unknown length is compiled once, not unrolled."""
        w, n = wp.tid()
        if active[w] == 0:
            return
        e = first + n
        c = constants(own, elements, activation, h, control, w, e)
        f = forces()
        if wp.static(points == 1):  # a loop would cost one more evaluation of the stress in the adjoint
            q = row(elements.place, w, e)
            G = elements.gradient[q]
            F = deformed(elements.place, elements.node[e], G, x, u, w)
            P = stress(own, activation, control, w, e, piola(F, c.k, c.s), F, c, q)
            f = -elements.volume[q] * G @ wp.transpose(P)
        else:
            for i in range(count):
                q = point_of_quadrature(elements.place, points, w, e, i)
                G = elements.gradient[q]
                F = deformed(elements.place, elements.node[e], G, x, u, w)
                P = stress(own, activation, control, w, e, piola(F, c.k, c.s), F, c, q)
                f -= elements.volume[q] * G @ wp.transpose(P)
        for a in range(nodes):
            force_out[corner(own.place, w, nodes * e + a)] = f[a]

    return force


@functools.cache
def stiffness_kernel(family: Family, energy: Energy, response: Response) -> wp.Kernel:
    """Kernel over (worlds, elements of one energy) that adds the second derivatives of elements to a matrix of blocks.

    Column b of the block of corners k and l is sum V dP(e_b G_l^T) G_k, and dP(e_b G_l^T) = sum_d dP(e_b e_d^T) G_ld.
    """
    Own, Elements, deformed, nodes, points = (
        response.arrays, family.arrays, family.deformed, family.nodes, family.points,
    )  # fmt: skip
    constants, change, (_, point, differential) = (
        response.constants, response.change, derivative_of(energy, family.columns),
    )  # fmt: skip
    m, mat = family.columns, family.deformation_gradient
    columns, stack = rows(m, 4), rows(m * m, 4)
    module = family.module(energy.name, response.name, "stiffness")
    # Copies of blocks take long to compile. Warp replays no loop in a backward pass, which this module has not.
    wp.set_module_options({"max_unroll": 3}, module)

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        own: Own,
        elements: Elements,
        activation: ActivationArrays,
        first: int,
        # step
        h: real,
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
        c = constants(own, elements, activation, h, control, w, e)
        for i in range(points):
            q = point_of_quadrature(elements.place, points, w, e, i)
            G = elements.gradient[q]
            F = deformed(elements.place, elements.node[e], G, x, u, w)
            p = point(F, c.k, c.s)
            for b in range(3):
                A = stack()  # columns of V dP(e_b e_d^T) for all d, below one another
                for d in range(m):
                    dF = mat()
                    dF[b, d] = real(1.0)
                    dP = change(own, activation, control, w, e, differential(p, dF), dF, F, c, q)
                    for j in range(m):
                        A[m * d + j] = scale(elements.volume[q], NODE(dP[0, j], dP[1, j], dP[2, j], real(0.0)))
                for k in range(nodes):
                    a = columns()  # V dP(e_b e_d^T) G_k for all d, below one another
                    for d in range(m):
                        a_d = NODE()
                        for j in range(m):
                            a_d = multiply_add(a_d, G[k, j], A[m * d + j])
                        a[d] = a_d
                    for l in range(nodes):
                        t = NODE()
                        for d in range(m):
                            t = multiply_add(t, G[l, d], a[d])
                        add_column(own.place, w, nodes * (nodes * e + k) + l, b, t, block_out)

    return stiffness


@functools.cache
def energy_kernel(family: Family, energy: Energy) -> wp.Kernel:
    """Kernel over (worlds, elements of one energy) that writes element energies to the entries of first corners."""
    Elements, deformed, numbers, density = family.arrays, family.deformed, energy.numbers(family), energy.density
    nodes, points = family.nodes, family.points

    @wp.kernel(module=family.module(energy.name, "energy"))
    def stored(
        # model
        elements: Elements,
        first: int,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        energy_out: wp.array[real],
    ):
        """sum V Psi."""
        w, n = wp.tid()
        e = first + n
        k, s = numbers(elements, control, w, e)
        total = real(0.0)
        for i in range(points):
            q = point_of_quadrature(elements.place, points, w, e, i)
            F = deformed(elements.place, elements.node[e], elements.gradient[q], x, u, w)
            total += elements.volume[q] * density(F, k, s)
        energy_out[corner(elements.place, w, nodes * e)] = total

    return stored


@functools.cache
def measure_kernel(family: Family, energy: Energy, response: Response) -> wp.Kernel:
    """Kernel over (worlds, solids of one energy) that writes energies, mean strains and mean stresses of the solids."""
    Elements, deformed, density = family.arrays, family.deformed, energy.density
    constants, stress, piola = response.constants, response.stress, energy.stress
    nodes, points = family.nodes, family.points

    @wp.kernel(module=family.module(energy.name, "measure"))
    def measure(
        # model
        elements: Elements,
        activation: ActivationArrays,
        first: int,
        # step
        h: real,
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
        c = constants(elements, elements, activation, h, control, w, e)
        whole = real(0.0)
        total = real(0.0)
        strain = _mat()
        mean = _mat()
        for i in range(points):
            q = point_of_quadrature(elements.place, points, w, e, i)
            F = deformed(elements.place, elements.node[e], elements.gradient[q], x, u, w)
            V = elements.volume[q]
            whole += V
            total += V * density(F, c.k, c.s)
            strain += V * real(0.5) * (wp.transpose(F) @ F - wp.identity(n=3, dtype=real))
            P = stress(elements, activation, control, w, e, piola(F, c.k, c.s), F, c, q)
            mean += V / wp.determinant(F) * (P @ wp.transpose(F))
        energy_out[corner(elements.place, w, nodes * e)] = total
        strain_out[w, e] = strain / whole
        stress_out[w, e] = mean / whole

    return measure


@functools.cache
def forbid_kernel(family: Family) -> wp.Kernel:
    """Kernel over (worlds, solids) that fails a step if an element is inverted at a point of quadrature."""
    Elements, deformed, points = family.arrays, family.deformed, family.points

    @wp.kernel(module=family.module(), enable_backward=False)
    def forbid(
        # model
        elements: Elements,
        # state
        x: wp.array[_vec],
        u: wp.array[NODE],
        # work
        islands: Islands,
        # out
        converged_out: wp.array[int],
    ):
        """Fail the island of an element unless det F > 0 at all points of quadrature."""
        w, e = wp.tid()
        k = island_of(islands, w, elements.node[e][0])
        if converged_out[k] == 1:
            for i in range(points):
                q = point_of_quadrature(elements.place, points, w, e, i)
                F = deformed(elements.place, elements.node[e], elements.gradient[q], x, u, w)
                if not (wp.determinant(F) > real(0.0)):
                    converged_out[k] = 0

    return forbid
