"""Tetrahedra with a constant deformation gradient (Sifakis & Barbic 2012, "FEM simulation of 3D deformable solids").

With D = (x_1 - x_0, x_2 - x_0, x_3 - x_0), and D_0 the same at rest,

    F = D D_0^-1,   (f_1, f_2, f_3) = -V P(F) D_0^-T,   f_0 = -f_1 - f_2 - f_3.

P is that of the material plus F S for the stress S of actuators in the undeformed body. Actuators that change lengths
at rest change D_0.
"""

import functools

import numpy as np
import warp as wp

from warpbots.actuation_laws import activation_arrays, active_stress
from warpbots.materials import Law, differential, elasticity, lame_lambda, lame_mu
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    Point,
    add_block,
    corner,
    edges,
    edges_at_rest,
    raise_to,
    row,
    simplices,
)
from warpbots.solvers.projective.islands import Islands, island_of

__all__ = ["TETS", "TetArrays", "measure_kernel", "rest_kernel", "scaling_kernel", "stiffness_kernel", "stress_kernel"]

_vec, _mat = vector(3), matrix(3)
_ActivationArrays = activation_arrays(3)
_active = active_stress(3)


@wp.struct
class TetArrays:
    """Tetrahedra; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    youngs_modulus: Young's modulus E [Pa], shape (worlds * elements,).
    poissons_ratio: Poisson's ratio nu [1], shape (worlds * elements,).
    density: Density rho [kg/m^3], shape (worlds * elements,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    inverse: D_0^-1 [1/m], shape (worlds * count,).
    volume: V [m^3], shape (worlds * count,).
    nominal: Stiffness w V |D_0^-1|^2 of a tetrahedron in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    youngs_modulus: wp.array[real]
    poissons_ratio: wp.array[real]
    density: wp.array[real]
    rest_position: wp.array[_vec]
    inverse: wp.array[_mat]
    volume: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(
    # model
    tets: TetArrays,
    growth: _ActivationArrays,
    # state
    control: wp.array2d[real],
    # out
    tets_out: TetArrays,
    mass_out: wp.array[real],
):
    """D_0^-1 and V of every tetrahedron as it has grown, and the mass rho V / 4 of each of its corners before.

    Where lengths at rest are G times what they were, F = D (G D_0)^-1 and V = det G det D_0 / 6.
    """
    w, e = wp.tid()
    r = row(tets.place, w, e)
    D = edges_at_rest(tets.place, tets.rest_position, w, tets.node[e])
    V = wp.determinant(D) / real(6.0)
    G = wp.identity(n=3, dtype=real) + _active(growth, e, w, control)
    tets_out.inverse[r] = wp.inverse(G @ D)
    tets_out.volume[r] = wp.determinant(G) * V
    m = real(0.25) * tets.density[element(tets.place, w, e)] * V
    for c in range(4):
        mass_out[corner(tets.place, w, 4 * e + c)] = m


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    tets: TetArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step, see `weights`."""
    w, e = wp.tid()
    r = row(tets.place, w, e)
    k = element(tets.place, w, e)
    mu = lame_mu(tets.youngs_modulus[k], tets.poissons_ratio[k])
    lam = lame_lambda(tets.youngs_modulus[k], tets.poissons_ratio[k])
    weight = wp.max(real(2.0) * mu + lam, mu + real(1.5) * lam)
    size = wp.ddot(tets.inverse[r], tets.inverse[r])
    raise_to(scaling_out, w, e, weight * tets.volume[r] * size / tets.nominal[e])


@wp.func
def deformation(tets: TetArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """F at x + u."""
    return edges(tets.place, x, u, w, tets.node[e]) @ tets.inverse[row(tets.place, w, e)]


@wp.kernel(enable_backward=False)
def forbid_kernel(
    # model
    tets: TetArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # work
    islands: Islands,
    # out
    converged_out: wp.array[int],
):
    """No step converges to an inverted tetrahedron, det D <= 0."""
    w, e = wp.tid()
    k = island_of(islands, w, tets.node[e][0])
    if converged_out[k] == 1 and not (wp.determinant(edges(tets.place, x, u, w, tets.node[e])) > real(0.0)):
        converged_out[k] = 0


@functools.cache
def stress_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): forces at their corners."""
    _, _, piola = elasticity(law, incompressibility, 3)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}"))
    def stress(
        # model
        tets: TetArrays,
        activation: _ActivationArrays,
        first: int,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """(f_1, f_2, f_3) = -V (P + F S) D_0^-T, f_0 = -f_1 - f_2 - f_3."""
        w, i = wp.tid()
        if active[w] == 0:
            return
        e = first + i
        r = row(tets.place, w, e)
        k = element(tets.place, w, e)
        F = deformation(tets, x, u, w, e)
        P = piola(F, tets.youngs_modulus[k], tets.poissons_ratio[k])
        if activation.start[e] < activation.start[e + 1]:
            P += F @ _active(activation, e, w, control)
        f = -tets.volume[r] * P @ wp.transpose(tets.inverse[r])
        f1 = _vec(f[0, 0], f[1, 0], f[2, 0])
        f2 = _vec(f[0, 1], f[1, 1], f[2, 1])
        f3 = _vec(f[0, 2], f[1, 2], f[2, 2])
        c = corner(tets.place, w, 4 * e)
        force_out[c] = -(f1 + f2 + f3)
        force_out[c + 1] = f1
        force_out[c + 2] = f2
        force_out[c + 3] = f3

    return stress


@functools.cache
def measure_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): their energies, strains and stresses."""
    energy, _, piola = elasticity(law, incompressibility, 3)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}_measure"))
    def measure(
        # model
        tets: TetArrays,
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
        """V Psi, 1/2 (F^T F - 1) and (P + F S) F^T / det F."""
        w, i = wp.tid()
        e = first + i
        k = element(tets.place, w, e)
        F = deformation(tets, x, u, w, e)
        E = tets.youngs_modulus[k]
        nu = tets.poissons_ratio[k]
        P = piola(F, E, nu)
        if activation.start[e] < activation.start[e + 1]:
            P += F @ _active(activation, e, w, control)
        energy_out[corner(tets.place, w, 4 * e)] = tets.volume[row(tets.place, w, e)] * energy(F, E, nu)
        strain_out[w, e] = real(0.5) * (wp.transpose(F) @ F - wp.identity(n=3, dtype=real))
        stress_out[w, e] = P @ wp.transpose(F) / wp.determinant(F)

    return measure


@functools.cache
def stiffness_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): add their second derivatives to a matrix of blocks.

    Column b of the block of corners k and l is V dP(e_b G_l^T) G_k, with the gradient G of a corner's shape function. G
    of corners 1 to 3 are the rows of D_0^-1, that of corner 0 is minus their sum.
    """
    _, point_of, differential_of = differential(law, incompressibility, 3)

    @wp.kernel(
        module=wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}_stiffness"), enable_backward=False
    )
    def stiffness(
        # model
        tets: TetArrays,
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
        w, i = wp.tid()
        e = first + i
        r = row(tets.place, w, e)
        k = element(tets.place, w, e)
        inverse = tets.inverse[r]
        point = point_of(deformation(tets, x, u, w, e), tets.youngs_modulus[k], tets.poissons_ratio[k])
        A = _mat()
        if activation.start[e] < activation.start[e + 1]:
            A = _active(activation, e, w, control)
        p = 16 * e
        for b in range(3):
            along0 = _mat()
            for l in range(1, 4):
                dF = _mat()
                dF[b] = inverse[l - 1]
                dP = differential_of(point, dF) + dF @ A
                along = tets.volume[r] * dP @ wp.transpose(inverse)
                along0 -= along
                add_column(tets.place, w, p + l, b, along, block_out)
            add_column(tets.place, w, p, b, along0, block_out)

    return stiffness


@wp.func
def add_column(place: Place, w: int, p: int, b: int, along: _mat, block: wp.array[NODE]):
    """Add column b of the blocks of corners 0 to 3 and one other; those of corners 1 to 3 are columns of `along`."""
    t1 = _vec(along[0, 0], along[1, 0], along[2, 0])
    t2 = _vec(along[0, 1], along[1, 1], along[2, 1])
    t3 = _vec(along[0, 2], along[1, 2], along[2, 2])
    add_block(place, w, p, b, -(t1 + t2 + t3), block)
    add_block(place, w, p + 4, b, t1, block)
    add_block(place, w, p + 8, b, t2, block)
    add_block(place, w, p + 12, b, t3, block)


def weights(E: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Weight of tetrahedra in the matrix of the global step [Pa].

    With 2 mu + lambda it is that of projective dynamics. The iteration converges if the matrix is not below half the
    second derivative of the energy, whose largest eigenvalue at rest is 2 mu + 3 lambda: hence the other bound, which
    takes over above a Poisson's ratio of 1/3.
    """
    mu, lam = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
    return np.maximum(2.0 * mu + lam, mu + 1.5 * lam)


def _blocks(mesh: object) -> np.ndarray:
    """w V G G^T."""
    k = mesh.of("tets")
    weight = weights(mesh.youngs_modulus[k], mesh.poissons_ratio[k]) * mesh.element_volume[k]
    return weight[:, None, None] * simplices(mesh.position, mesh.tets)


def _rest(tets: TetArrays, model: object, control: wp.array) -> list[tuple]:
    inputs = [tets, model.growth, control, tets, model.workspace.corner_mass]
    return [(rest_kernel, (model.worlds, tets.place.count), inputs)]


def _forces(tets: TetArrays, model: object, point: Point) -> list[tuple]:
    return [
        (
            stress_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [tets, model.activation, g.first, point.active, point.control, point.x, point.u, model.workspace.force],
        )
        for g in model.groups
    ]  # fmt: skip


def _stiffness(tets: TetArrays, model: object, point: Point) -> list[tuple]:
    block = model.workspace.block
    return [
        (
            stiffness_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [tets, model.activation, g.first, point.control, point.x, point.u, block],
        )
        for g in model.groups
    ]  # fmt: skip


def _measure(tets: TetArrays, model: object, point: Point, written: list[wp.array]) -> list[tuple]:
    return [
        (
            measure_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [tets, model.activation, g.first, point.control, point.x, point.u, *written],
        )
        for g in model.groups
    ]  # fmt: skip


TETS = Kind(
    name="tets",
    arrays=TetArrays,
    node=wp.vec4i,
    rested={"inverse": _mat, "volume": real},
    blocks=_blocks,
    rest=_rest,
    forbid=forbid_kernel,
    scaling=scaling_kernel,
    forces=_forces,
    measure=_measure,
    stiffness=_stiffness,
)
"""Tetrahedra."""
