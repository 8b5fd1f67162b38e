"""Kelvin-Voigt damping of tetrahedra: a viscous stress of beta times the elastic stress of the strain rate.

The rate is that of the second Piola-Kirchhoff stress S = F^-1 P, which does not change when matter turns. From the
start of a step, 0, to its end,

    P_v = beta F dS/dt = beta/h (P(F) - F S_0),   S_0 = F_0^-1 P(F_0).

S_0 is constant during a step, so that P_v has the energy beta/h V (Psi(F) - 1/2 S_0 : F^T F), and a symmetric second
derivative. Where strains are small it is beta/h times the elastic stress of their change; at rest it is 0 under any
stress. The law `linear` is linear in F and has P_v = beta/h (P(F) - P(F_0)).
"""

import functools

import numpy as np
import warp as wp

from warpbots.materials import Law, differential, elasticity, lame_lambda, lame_mu, linear
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.element import Kind, Place, Point, corner, raise_to, row, simplices
from warpbots.solvers.projective.elements.tetrahedra import TetArrays, add_column, deformation, weights

__all__ = [
    "DAMPED_TETS",
    "DamperArrays",
    "begin_kernel",
    "carrying",
    "damping_kernel",
    "scaling_kernel",
    "stiffness_kernel",
]

_vec, _mat = vector(3), matrix(3)


@wp.struct
class DamperArrays:
    """Dampers of tetrahedra; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    damping: Time beta [s], shape (worlds * elements,).
    carried: beta/h S_0 [Pa], or beta/h P(F_0) for the law `linear`, shape (worlds * count,).
    ratio: Stiffness with damping over that in the matrix of the global step [1], shape (worlds * count,).
    nominal: beta w V |D_0^-1|^2 in the matrix of the global step [N s/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    damping: wp.array[real]
    carried: wp.array[_mat]
    ratio: wp.array[real]
    nominal: wp.array[real]


@functools.cache
def carrying(law: Law) -> tuple[wp.Function, wp.Function]:
    """Warp functions back(F, P), what a law carries through a step, and on(F, C), the stress that follows from it."""

    @wp.func
    def back(F: _mat, P: _mat):
        """S = F^-1 P."""
        return wp.inverse(F) @ P

    @wp.func
    def on(F: _mat, C: _mat):
        """F S."""
        return F @ C

    @wp.func
    def back_linear(F: _mat, P: _mat):
        """P."""
        return P

    @wp.func
    def on_linear(F: _mat, C: _mat):
        """P."""
        return C

    return (back_linear, on_linear) if law.definition is linear.law else (back, on)


@wp.func
def damped_ratio(dampers: DamperArrays, tets: TetArrays, h: real, w: int, e: int):
    """(1 + beta/h) w V |D_0^-1|^2 over the same in the matrix of the global step, see `weights`."""
    r = row(tets.place, w, e)
    k = element(tets.place, w, e)
    mu = lame_mu(tets.youngs_modulus[k], tets.poissons_ratio[k])
    lam = lame_lambda(tets.youngs_modulus[k], tets.poissons_ratio[k])
    weight = wp.max(real(2.0) * mu + lam, mu + real(1.5) * lam)
    size = weight * tets.volume[r] * wp.ddot(tets.inverse[r], tets.inverse[r])
    return (h + dampers.damping[k]) * size / (h * tets.nominal[e] + dampers.nominal[e])


@functools.cache
def begin_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): what dampers carry through a step."""
    _, _, piola = elasticity(law, incompressibility, 3)
    back, _ = carrying(law)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}_damping"))
    def begin(
        # model
        dampers: DamperArrays,
        tets: TetArrays,
        first: int,
        # state
        h: real,
        x: wp.array[_vec],
        still: wp.array[NODE],
        # out
        dampers_out: DamperArrays,
    ):
        """beta/h S_0, and the ratio of stiffnesses."""
        w, i = wp.tid()
        e = first + i
        k = element(tets.place, w, e)
        r = row(dampers.place, w, e)
        F = deformation(tets, x, still, w, e)
        P = piola(F, tets.youngs_modulus[k], tets.poissons_ratio[k])
        dampers_out.carried[r] = dampers.damping[k] / h * back(F, P)
        dampers_out.ratio[r] = damped_ratio(dampers, tets, h, w, e)

    return begin


@functools.cache
def damping_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): forces at the corners of their dampers."""
    _, _, piola = elasticity(law, incompressibility, 3)
    _, on = carrying(law)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}_damping"))
    def damping(
        # model
        dampers: DamperArrays,
        tets: TetArrays,
        first: int,
        # state
        h: real,
        active: wp.array[int],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """(f_1, f_2, f_3) = -V P_v D_0^-T, f_0 = -f_1 - f_2 - f_3."""
        w, i = wp.tid()
        if active[w] == 0:
            return
        e = first + i
        r = row(tets.place, w, e)
        k = element(tets.place, w, e)
        F = deformation(tets, x, u, w, e)
        P = dampers.damping[k] / h * piola(F, tets.youngs_modulus[k], tets.poissons_ratio[k]) - on(
            F, dampers.carried[r]
        )
        f = -tets.volume[r] * P @ wp.transpose(tets.inverse[r])
        f1 = _vec(f[0, 0], f[1, 0], f[2, 0])
        f2 = _vec(f[0, 1], f[1, 1], f[2, 1])
        f3 = _vec(f[0, 2], f[1, 2], f[2, 2])
        c = corner(dampers.place, w, 4 * e)
        force_out[c] = -(f1 + f2 + f3)
        force_out[c + 1] = f1
        force_out[c + 2] = f2
        force_out[c + 3] = f3

    return damping


@functools.cache
def stiffness_kernel(law: Law, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): add the second derivatives of dampers to a matrix of blocks."""
    _, point_of, differential_of = differential(law, incompressibility, 3)
    _, on = carrying(law)
    module = wp.get_module(f"warpbots.projective.{law.module}_{incompressibility}_damping_stiffness")

    @wp.kernel(module=module, enable_backward=False)
    def stiffness(
        # model
        dampers: DamperArrays,
        tets: TetArrays,
        first: int,
        # state
        h: real,
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        block_out: wp.array[NODE],
    ):
        """K += V G_k . (beta/h dP/dF - S_0) . G_l, as that of tetrahedra."""
        w, i = wp.tid()
        e = first + i
        r = row(tets.place, w, e)
        k = element(tets.place, w, e)
        inverse = tets.inverse[r]
        point = point_of(deformation(tets, x, u, w, e), tets.youngs_modulus[k], tets.poissons_ratio[k])
        still = on(_mat(), dampers.carried[r])
        p = 16 * e
        for b in range(3):
            along0 = _mat()
            for l in range(1, 4):
                dF = _mat()
                dF[b] = inverse[l - 1]
                carried = on(dF, dampers.carried[r]) - still
                dP = dampers.damping[k] / h * differential_of(point, dF) - carried
                along = tets.volume[r] * dP @ wp.transpose(inverse)
                along0 -= along
                add_column(dampers.place, w, p + l, b, along, block_out)
            add_column(dampers.place, w, p, b, along0, block_out)

    return stiffness


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    dampers: DamperArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness with damping to that in the matrix of the global step."""
    w, e = wp.tid()
    raise_to(scaling_out, w, e, dampers.ratio[row(dampers.place, w, e)])


def _blocks(mesh: object) -> np.ndarray:
    """beta w V G G^T."""
    k = mesh.of("tets")
    weight = weights(mesh.youngs_modulus[k], mesh.poissons_ratio[k]) * mesh.element_volume[k]
    return (mesh.damping[k] * weight)[:, None, None] * simplices(mesh.position, mesh.tets)


def _begin(dampers: DamperArrays, model: object, point: Point) -> list[tuple]:
    tets = model.of_kind("tets")
    return [
        (
            begin_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [dampers, tets, g.first, point.h, point.x, model.workspace.zero, dampers],
        )
        for g in model.groups
    ]  # fmt: skip


def _forces(dampers: DamperArrays, model: object, point: Point) -> list[tuple]:
    tets = model.of_kind("tets")
    return [
        (
            damping_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [dampers, tets, g.first, point.h, point.active, point.x, point.u, model.workspace.force],
        )
        for g in model.groups
    ]  # fmt: skip


def _stiffness(dampers: DamperArrays, model: object, point: Point) -> list[tuple]:
    tets, block = model.of_kind("tets"), model.workspace.block
    return [
        (
            stiffness_kernel(g.law, g.incompressibility), (model.worlds, g.count),
            [dampers, tets, g.first, point.h, point.x, point.u, block],
        )
        for g in model.groups
    ]  # fmt: skip


DAMPED_TETS = Kind(
    name="damped_tets",
    arrays=DamperArrays,
    node=wp.vec4i,
    rested={"carried": _mat, "ratio": real},
    blocks=_blocks,
    begin=_begin,
    viscous=True,
    scaling=scaling_kernel,
    forces=_forces,
    stiffness=_stiffness,
)
"""Dampers of tetrahedra."""
