"""Kelvin-Voigt damping of triangles and bars, by the form of `dampers.py`.

The stress that a triangle carries through a step is S_0 = (F_0^T F_0)^-1 F_0^T P_0 in its plane, and for a bar it is
the factor of d in its force, s_0 = k (1 - L_0 / |d_0|):

    f_0 = beta/h (k (d - L_0 d / |d|) - s_0 d),   f_1 = -f_0.

Only what resists stretching is damped: folds of a sheet are not.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import bars as spring
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements import triangles as membrane
from warpbots.solvers.projective.elements.bars import BarArrays
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    Point,
    add_block,
    corner,
    raise_to,
    row,
    simplices,
    span,
)
from warpbots.solvers.projective.elements.triangles import TriangleArrays

__all__ = ["DAMPED_BARS", "DAMPED_TRIANGLES", "BarDamperArrays", "TriangleDamperArrays"]

_vec, _mat = vector(3), matrix(2)
_mat32 = wp.types.matrix(shape=(3, 2), dtype=real)


@wp.struct
class TriangleDamperArrays:
    """Dampers of triangles; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    damping: Time beta [s], shape (worlds * elements,).
    carried: beta/h S_0 [Pa], shape (worlds * count,).
    ratio: Stiffness with damping over that in the matrix of the global step [1], shape (worlds * count,).
    nominal: beta w V |D_0^-1|^2 in the matrix of the global step [N s/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec3i]
    damping: wp.array[real]
    carried: wp.array[_mat]
    ratio: wp.array[real]
    nominal: wp.array[real]


@wp.struct
class BarDamperArrays:
    """Dampers of bars; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the ends, shape (count,).
    damping: Time beta [s], shape (worlds * elements,).
    carried: beta/h s_0 [N/m], shape (worlds * count,).
    ratio: Stiffness with damping over that in the matrix of the global step [1], shape (worlds * count,).
    nominal: beta k in the matrix of the global step [N s/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec2i]
    damping: wp.array[real]
    carried: wp.array[real]
    ratio: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def begin_triangles_kernel(
    # model
    dampers: TriangleDamperArrays,
    triangles: TriangleArrays,
    # state
    h: real,
    x: wp.array[_vec],
    still: wp.array[NODE],
    # out
    dampers_out: TriangleDamperArrays,
):
    """beta/h S_0, and the ratio of stiffnesses."""
    w, e = wp.tid()
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    E = triangles.youngs_modulus[k]
    nu = triangles.poissons_ratio[k]
    F = membrane.deformation(triangles, x, still, w, e)
    T = wp.transpose(F)
    dampers_out.carried[r] = dampers.damping[k] / h * (wp.inverse(T @ F) @ (T @ membrane.piola(F, E, nu)))
    inverse = triangles.inverse[r]
    size = membrane.modulus(E, nu) * triangles.volume[r] * wp.ddot(inverse, inverse)
    dampers_out.ratio[r] = (h + dampers.damping[k]) * size / (h * triangles.nominal[e] + dampers.nominal[e])


@wp.func
def viscous(F: _mat32, E: real, nu: real, share: real, carried: _mat):
    """P_v = beta/h P(F) - F beta/h S_0."""
    return share * membrane.piola(F, E, nu) - F @ carried


@wp.kernel
def triangles_kernel(
    # model
    dampers: TriangleDamperArrays,
    triangles: TriangleArrays,
    # state
    h: real,
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """(f_1, f_2) = -V P_v D_0^-T, f_0 = -f_1 - f_2."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    F = membrane.deformation(triangles, x, u, w, e)
    share = dampers.damping[k] / h
    P = viscous(F, triangles.youngs_modulus[k], triangles.poissons_ratio[k], share, dampers.carried[r])
    f = -triangles.volume[r] * P @ wp.transpose(triangles.inverse[r])
    f1 = _vec(f[0, 0], f[1, 0], f[2, 0])
    f2 = _vec(f[0, 1], f[1, 1], f[2, 1])
    c = corner(dampers.place, w, 3 * e)
    force_out[c] = -(f1 + f2)
    force_out[c + 1] = f1
    force_out[c + 2] = f2


@wp.func
def pull(F: _mat32, E: real, nu: real, share: real, carried: _mat, dF: _mat32):
    """dF : P_v, whose gradient with respect to F is dP_v/dF : dF."""
    return wp.ddot(dF, viscous(F, E, nu, share, carried))


@wp.kernel(enable_backward=False)
def triangles_stiffness_kernel(
    # model
    dampers: TriangleDamperArrays,
    triangles: TriangleArrays,
    # state
    h: real,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += V G_k . dP_v/dF . G_l, as that of triangles."""
    w, e = wp.tid()
    r = row(triangles.place, w, e)
    i = element(triangles.place, w, e)
    F = membrane.deformation(triangles, x, u, w, e)
    E = triangles.youngs_modulus[i]
    nu = triangles.poissons_ratio[i]
    inverse = triangles.inverse[r]
    share = dampers.damping[i] / h
    for b in range(3):
        for d in range(2):
            dF = _mat32()
            dF[b, d] = real(1.0)
            dP, _E, _nu, _share, _carried, _dF = wp.grad(pull)(F, E, nu, share, dampers.carried[r], dF)
            t = triangles.volume[r] * dP @ wp.transpose(inverse)
            t1 = _vec(t[0, 0], t[1, 0], t[2, 0])
            t2 = _vec(t[0, 1], t[1, 1], t[2, 1])
            for l in range(3):
                g = -(inverse[0, d] + inverse[1, d])
                if l == 1:
                    g = inverse[0, d]
                elif l == 2:
                    g = inverse[1, d]
                p = 9 * e + l
                add_block(dampers.place, w, p, b, -g * (t1 + t2), block_out)
                add_block(dampers.place, w, p + 3, b, g * t1, block_out)
                add_block(dampers.place, w, p + 6, b, g * t2, block_out)


@wp.kernel
def begin_bars_kernel(
    # model
    dampers: BarDamperArrays,
    bars: BarArrays,
    # state
    h: real,
    x: wp.array[_vec],
    # out
    dampers_out: BarDamperArrays,
):
    """beta/h s_0, and the ratio of stiffnesses."""
    w, e = wp.tid()
    r = row(bars.place, w, e)
    k = element(bars.place, w, e)
    i = w * bars.place.nodes
    ends = bars.node[e]
    long = wp.length(x[i + ends[1]] - x[i + ends[0]])
    dampers_out.carried[r] = dampers.damping[k] / h * bars.spring[r] * (real(1.0) - bars.length[r] / long)
    dampers_out.ratio[r] = (h + dampers.damping[k]) * bars.spring[r] / (h * bars.nominal[e] + dampers.nominal[e])


@wp.func
def drag_of(d: _vec, k: real, length: real, share: real, carried: real):
    """beta/h (k (d - L_0 d / |d|) - s_0 d): the force that draws the second end to the first."""
    return share * spring.pull_of(d, k, length) - carried * d


@wp.kernel
def bars_kernel(
    # model
    dampers: BarDamperArrays,
    bars: BarArrays,
    # state
    h: real,
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_0 = beta/h (k (d - L_0 d / |d|) - s_0 d), f_1 = -f_0."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(bars.place, w, e)
    k = bars.node[e]
    share = dampers.damping[element(bars.place, w, e)] / h
    f = drag_of(span(bars.place, x, u, w, k[0], k[1]), bars.spring[r], bars.length[r], share, dampers.carried[r])
    c = corner(dampers.place, w, 2 * e)
    force_out[c] = f
    force_out[c + 1] = -f


@wp.func
def work(d: _vec, k: real, length: real, share: real, carried: real, t: _vec):
    """Product of the force with t, whose gradient with respect to d is the column of the stiffness for t."""
    return wp.dot(t, drag_of(d, k, length, share, carried))


@wp.kernel(enable_backward=False)
def bars_stiffness_kernel(
    # model
    dampers: BarDamperArrays,
    bars: BarArrays,
    # state
    h: real,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += df_0/dd, and less that between the two ends."""
    w, e = wp.tid()
    r = row(bars.place, w, e)
    k = bars.node[e]
    d = span(bars.place, x, u, w, k[0], k[1])
    share = dampers.damping[element(bars.place, w, e)] / h
    for b in range(3):
        t = _vec()
        t[b] = real(1.0)
        t, _k, _l, _s, _c, _t = wp.grad(work)(d, bars.spring[r], bars.length[r], share, dampers.carried[r], t)
        add_block(dampers.place, w, 4 * e, b, t, block_out)
        add_block(dampers.place, w, 4 * e + 1, b, -t, block_out)
        add_block(dampers.place, w, 4 * e + 2, b, -t, block_out)
        add_block(dampers.place, w, 4 * e + 3, b, t, block_out)


@wp.kernel(enable_backward=False)
def triangles_scaling_kernel(
    # model
    dampers: TriangleDamperArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness with damping to that in the matrix of the global step."""
    w, e = wp.tid()
    raise_to(scaling_out, w, e, dampers.ratio[row(dampers.place, w, e)])


@wp.kernel(enable_backward=False)
def bars_scaling_kernel(
    # model
    dampers: BarDamperArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness with damping to that in the matrix of the global step."""
    w, e = wp.tid()
    raise_to(scaling_out, w, e, dampers.ratio[row(dampers.place, w, e)])


def _triangle_blocks(mesh: object) -> np.ndarray:
    """beta w V G G^T with w = E / (1 - nu^2)."""
    k = mesh.of("triangles")
    weight = mesh.youngs_modulus[k] / (1.0 - mesh.poissons_ratio[k] ** 2) * mesh.element_volume[k]
    return (mesh.damping[k] * weight)[:, None, None] * simplices(mesh.position, mesh.triangles)


def _bar_blocks(mesh: object) -> np.ndarray:
    """beta k on the diagonal and -beta k beside it."""
    k = mesh.of("bars")
    weight = mesh.damping[k] * mesh.youngs_modulus[k] * mesh.element_volume[k]
    return weight[:, None, None] * simplices(mesh.position, mesh.bars)


def _begin_triangles(dampers: TriangleDamperArrays, model: object, point: Point) -> list[tuple]:
    inputs = [dampers, model.of_kind("triangles"), point.h, point.x, model.workspace.zero, dampers]
    return [(begin_triangles_kernel, (model.worlds, dampers.place.count), inputs)]


def _begin_bars(dampers: BarDamperArrays, model: object, point: Point) -> list[tuple]:
    inputs = [dampers, model.of_kind("bars"), point.h, point.x, dampers]
    return [(begin_bars_kernel, (model.worlds, dampers.place.count), inputs)]


def _kind(damped: str, begin: object, kernels: tuple[wp.Kernel, ...], **fields: object) -> Kind:
    """A kind of dampers by the name of the elements that they damp; `kernels` are those of forces and stiffness."""
    force, stiffness = kernels

    def forces_of(dampers: object, model: object, point: Point) -> list[tuple]:
        inputs = [dampers, model.of_kind(damped), point.h, point.active, point.x, point.u, model.workspace.force]
        return [(force, (model.worlds, dampers.place.count), inputs)]

    def stiffness_of(dampers: object, model: object, point: Point) -> list[tuple]:
        constants = [dampers, model.of_kind(damped)]
        inputs = [*constants, point.h, point.x, point.u, model.workspace.block]
        return [(stiffness, (model.worlds, dampers.place.count), inputs)]

    return Kind(
        name=f"damped_{damped}", begin=begin, viscous=True, forces=forces_of, stiffness=stiffness_of, **fields
    )  # fmt: skip


DAMPED_TRIANGLES = _kind(
    "triangles",
    _begin_triangles,
    (triangles_kernel, triangles_stiffness_kernel),
    arrays=TriangleDamperArrays,
    node=wp.vec3i,
    rested={"carried": _mat, "ratio": real},
    blocks=_triangle_blocks,
    scaling=triangles_scaling_kernel,
)
"""Dampers of the triangles of sheets."""

DAMPED_BARS = _kind(
    "bars",
    _begin_bars,
    (bars_kernel, bars_stiffness_kernel),
    arrays=BarDamperArrays,
    node=wp.vec2i,
    rested={"carried": real, "ratio": real},
    blocks=_bar_blocks,
    scaling=bars_scaling_kernel,
)
"""Dampers of the bars of trusses."""
