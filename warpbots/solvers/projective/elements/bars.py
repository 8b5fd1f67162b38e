"""Bars of a truss: springs between two nodes.

With d = x_1 - x_0 and the length L_0 at rest,

    E = k/2 (|d| - L_0)^2,   k = E A / L_0,   f_1 = -k (d - L_0 d / |d|),   f_0 = -f_1.

A bar that is crushed to a point pulls nowhere: d / |d| is 0, the mean over all directions. The second derivative is
nowhere above k, which is the weight in the matrix of the global step.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    raise_to,
    rest_by,
    row,
    simplices,
    span,
    stiffness_by,
)

__all__ = ["BARS", "BarArrays", "energy_kernel", "force_kernel", "rest_kernel", "scaling_kernel", "stiffness_kernel"]

_vec = vector(3)


@wp.struct
class BarArrays:
    """Bars; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the ends, shape (count,).
    youngs_modulus: Young's modulus E [Pa], shape (worlds * elements,).
    density: Density rho [kg/m^3], shape (worlds * elements,).
    section: Cross-section A [m^2], shape (worlds * count,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    length: L_0 [m], shape (worlds * count,).
    spring: k [N/m], shape (worlds * count,).
    nominal: k of a bar in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec2i]
    youngs_modulus: wp.array[real]
    density: wp.array[real]
    section: wp.array[real]
    rest_position: wp.array[_vec]
    length: wp.array[real]
    spring: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(
    # model
    bars: BarArrays,
    # out
    bars_out: BarArrays,
    mass_out: wp.array[real],
):
    """L_0 and k of every bar, and the mass rho A L_0 / 2 of each of its ends."""
    w, e = wp.tid()
    n = w * bars.place.nodes
    r = row(bars.place, w, e)
    i = element(bars.place, w, e)
    k = bars.node[e]
    length = wp.length(bars.rest_position[n + k[1]] - bars.rest_position[n + k[0]])
    bars_out.length[r] = length
    bars_out.spring[r] = bars.youngs_modulus[i] * bars.section[r] / length
    m = real(0.5) * bars.density[i] * bars.section[r] * length
    for c in range(2):
        mass_out[corner(bars.place, w, 2 * e + c)] = m


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    bars: BarArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step."""
    w, e = wp.tid()
    raise_to(scaling_out, w, e, bars.spring[row(bars.place, w, e)] / bars.nominal[e])


@wp.func
def pull_of(d: _vec, k: real, length: real):
    """k (d - L_0 d / |d|): the force that draws the second end to the first."""
    return k * (d - length * wp.normalize(d))


@wp.kernel(module=wp.get_module("warpbots.projective.bars_energy"))
def energy_kernel(
    # model
    bars: BarArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """k/2 (|d| - L_0)^2."""
    w, e = wp.tid()
    r = row(bars.place, w, e)
    k = bars.node[e]
    d = wp.length(span(bars.place, x, u, w, k[0], k[1])) - bars.length[r]
    energy_out[corner(bars.place, w, 2 * e)] = real(0.5) * bars.spring[r] * d * d


@wp.kernel
def force_kernel(
    # model
    bars: BarArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_0 = k (d - L_0 d / |d|), f_1 = -f_0."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(bars.place, w, e)
    k = bars.node[e]
    f = pull_of(span(bars.place, x, u, w, k[0], k[1]), bars.spring[r], bars.length[r])
    c = corner(bars.place, w, 2 * e)
    force_out[c] = f
    force_out[c + 1] = -f


@wp.func
def work(d: _vec, k: real, length: real, t: _vec):
    """Product of the force with t, whose gradient with respect to d is the column of the stiffness for t."""
    return wp.dot(t, pull_of(d, k, length))


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    bars: BarArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += k (1 - L_0 / |d| (1 - d d^T / |d|^2)), and less that between the two ends."""
    w, e = wp.tid()
    r = row(bars.place, w, e)
    k = bars.node[e]
    d = span(bars.place, x, u, w, k[0], k[1])
    for b in range(3):
        t = _vec()
        t[b] = real(1.0)
        t, _k, _l, _t = wp.grad(work)(d, bars.spring[r], bars.length[r], t)
        add_block(bars.place, w, 4 * e, b, t, block_out)
        add_block(bars.place, w, 4 * e + 1, b, -t, block_out)
        add_block(bars.place, w, 4 * e + 2, b, -t, block_out)
        add_block(bars.place, w, 4 * e + 3, b, t, block_out)


def _blocks(mesh: object) -> np.ndarray:
    """k on the diagonal and -k beside it."""
    k = mesh.of("bars")
    weight = mesh.youngs_modulus[k] * mesh.element_volume[k]
    return weight[:, None, None] * simplices(mesh.position, mesh.bars)


BARS = Kind(
    name="bars",
    arrays=BarArrays,
    node=wp.vec2i,
    rested={"length": real, "spring": real},
    blocks=_blocks,
    rest=rest_by(rest_kernel),
    scaling=scaling_kernel,
    forces=forces_by(force_kernel),
    energy=energy_by(energy_kernel),
    stiffness=stiffness_by(stiffness_kernel),
)
"""Bars of trusses."""
