"""Fibres of muscles in tetrahedra, with an energy of their own (`warpbots.actuation_laws.fibre`).

With the gradients G_k of the shape functions and the direction m of the fibre in the undeformed body,

    y = F m = sum_k (G_k . m) x_k,   f_k = -V (G_k . m) p(y).

A fibre adds V k (G_k . m) (G_l . m) to the matrix of the global step, which is never below its second derivative.
"""

import numpy as np
import warp as wp

from warpbots.actuation_laws import fibre_pull
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    edges_at_rest,
    energy_by,
    forces_by,
    raise_to,
    rest_by,
    row,
    span,
    stiffness_by,
)

__all__ = [
    "FIBRES",
    "FibreArrays",
    "energy_kernel",
    "force_kernel",
    "rest_kernel",
    "scaling_kernel",
    "stiffness_kernel",
]

_vec, _vec4 = vector(3), vector(4)
_pull = fibre_pull(3)


@wp.struct
class FibreArrays:
    """Fibres, one for each tetrahedron that a muscle drives.

    Arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    fibre_stiffness: Stiffness k [Pa], shape (worlds * count,).
    fibre_direction: Direction m in the undeformed body [1], shape (count,).
    fibre_contraction: Part of its length that a fibre loses at u = 1 [1], shape (count,).
    fibre_channel: Control channel, shape (count,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    slope: G_k . m of the last three corners [1/m], shape (worlds * count,).
    volume: V [m^3], shape (worlds * count,).
    nominal: Stiffness of a fibre in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    fibre_stiffness: wp.array[real]
    fibre_direction: wp.array[_vec]
    fibre_contraction: wp.array[real]
    fibre_channel: wp.array[int]
    rest_position: wp.array[_vec]
    slope: wp.array[_vec]
    volume: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(
    # model
    fibres: FibreArrays,
    # out
    fibres_out: FibreArrays,
    mass_out: wp.array[real],
):
    """G_k . m and V of every fibre, which has no mass."""
    w, e = wp.tid()
    D = edges_at_rest(fibres.place, fibres.rest_position, w, fibres.node[e])
    r = row(fibres.place, w, e)
    fibres_out.slope[r] = wp.inverse(D) @ fibres.fibre_direction[e]
    fibres_out.volume[r] = wp.determinant(D) / real(6.0)
    for c in range(4):
        mass_out[corner(fibres.place, w, 4 * e + c)] = real(0.0)


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    fibres: FibreArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step."""
    w, e = wp.tid()
    r = row(fibres.place, w, e)
    g = fibres.slope[r]
    stiff = fibres.fibre_stiffness[r] * fibres.volume[r] * wp.dot(g, g)
    raise_to(scaling_out, w, e, stiff / fibres.nominal[e])


@wp.func
def along(fibres: FibreArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """The vector y at x + u."""
    k = fibres.node[e]
    g = fibres.slope[row(fibres.place, w, e)]
    return (
        g[0] * span(fibres.place, x, u, w, k[0], k[1])
        + g[1] * span(fibres.place, x, u, w, k[0], k[2])
        + g[2] * span(fibres.place, x, u, w, k[0], k[3])
    )


@wp.func
def resting(fibres: FibreArrays, control: wp.array2d[real], w: int, e: int):
    """Stretch of a fibre at rest."""
    return real(1.0) - control[w, fibres.fibre_channel[e]] * fibres.fibre_contraction[e]


@wp.kernel(module=wp.get_module("warpbots.projective.fibres_energy"))
def energy_kernel(
    # model
    fibres: FibreArrays,
    # state
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """V k/2 (|y| - L)^2."""
    w, e = wp.tid()
    r = row(fibres.place, w, e)
    d = wp.length(along(fibres, x, u, w, e)) - resting(fibres, control, w, e)
    energy_out[corner(fibres.place, w, 4 * e)] = real(0.5) * fibres.fibre_stiffness[r] * fibres.volume[r] * d * d


@wp.kernel
def force_kernel(
    # model
    fibres: FibreArrays,
    # state
    active: wp.array[int],
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_k = -V (G_k . m) p."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(fibres.place, w, e)
    y = along(fibres, x, u, w, e)
    f = -fibres.volume[r] * _pull(y, fibres.fibre_stiffness[r], resting(fibres, control, w, e))
    g = fibres.slope[r]
    c = corner(fibres.place, w, 4 * e)
    force_out[c] = -(g[0] + g[1] + g[2]) * f
    for k in range(3):
        force_out[c + 1 + k] = g[k] * f


@wp.func
def work(y: _vec, k: real, L: real, t: _vec):
    """t . p, whose gradient with respect to y is the column of the stiffness for t."""
    return wp.dot(t, _pull(y, k, L))


@wp.kernel(enable_backward=False)
def stiffness_kernel(
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
    y = along(fibres, x, u, w, e)
    g = fibres.slope[r]
    G = _vec4(-(g[0] + g[1] + g[2]), g[0], g[1], g[2])
    for b in range(3):
        t = _vec()
        t[b] = fibres.volume[r]
        t, _k, _L, _t = wp.grad(work)(y, fibres.fibre_stiffness[r], resting(fibres, control, w, e), t)
        for k in range(4):
            for l in range(4):
                add_block(fibres.place, w, 16 * e + 4 * k + l, b, G[k] * G[l] * t, block_out)


def _blocks(mesh: object) -> np.ndarray:
    """V k (G_k . m) (G_l . m)."""
    x = mesh.position[mesh.fibres]
    edges = np.swapaxes(x[:, 1:] - x[:, :1], 1, 2)
    g = np.linalg.solve(edges, mesh.fibre_direction[:, :, None])[:, :, 0]
    g = np.concatenate([-g.sum(axis=1, keepdims=True), g], axis=1)
    stiff = mesh.fibre_stiffness * np.linalg.det(edges) / 6.0
    return stiff[:, None, None] * g[:, :, None] * g[:, None, :]


FIBRES = Kind(
    name="fibres",
    arrays=FibreArrays,
    node=wp.vec4i,
    constant={"fibre_direction": _vec, "fibre_contraction": real, "fibre_channel": int},
    rested={"slope": _vec, "volume": real},
    blocks=_blocks,
    rest=rest_by(rest_kernel),
    scaling=scaling_kernel,
    forces=forces_by(force_kernel, driven=True),
    energy=energy_by(energy_kernel, driven=True),
    stiffness=stiffness_by(stiffness_kernel, driven=True),
)
"""Fibres of muscles."""
