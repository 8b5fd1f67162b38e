"""Hinges: the bending of a sheet at every edge between two triangles (Bergou et al. 2006, with a fold at rest).

Triangles x_0 x_1 x_2 and x_1 x_0 x_3 share the edge e = x_1 - x_0. With the weights w_i of Bergou et al. for the rest
shape (sums of cotangents), and the unit normal n halfway between the normals of the triangles,

    v = sum_i w_i x_i,   w_2 = |e|^2 / a_2,   w_3 = |e|^2 / a_3,   a_2, a_3: twice the areas
    w_1 = -e . (x_2 - x_0) / a_2 - e . (x_3 - x_0) / a_3,   w_0 = -w_1 - w_2 - w_3
    E = k/2 |v - s n|^2,   s = v . n at rest
    f_i = -k (w_i (v - s n) - s (dn/dx_i)^T v).

v is |e| times the jump of the slope across the edge. If lengths do not change, v is 2 |e| sin(theta / 2) n for a fold
by the angle theta, so that E = 0 at rest and |v - s n| = |e| |theta - theta_0| near it: folds to different sides are
distinguished. A sheet that is flat at rest has s = 0, and forces that are linear in the positions.

The factor k follows from a strip that is bent to a cylinder of radius r along a grid of rectangles a x b: the edges
across the strip, one for each area a b, are folded by a / r, and all other edges are not folded. To match the energy of
a plate with the flexural rigidity D, D / (2 r^2) per area, k/2 (b a / r)^2 has to be D a b / (2 r^2), which gives

    k = D / (A_2 + A_3)

with the areas A of the two triangles. (The k of Bergou et al. is three times as large: the curvature whose square they
sum is 0 at most edges and three times the true curvature at the others.)

An effect of the triangulation remains: equilateral triangles bend like a plate of the rigidity D in all directions,
with a Poisson's ratio of -1/3; irregular ones from a good mesher are stiffer by some percent. Squares whose diagonals
alternate have 5/6 of D along the lines of the grid and 4/3 along the diagonals: a cylinder that is not relaxed has D
and 3/2 D there. Squares with one diagonal have D along the lines and 3 D along that diagonal; long rectangles are
worse.

A hinge that is folded onto itself has no normal: n and its derivative are 0.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    normal_bounds_by,
    raise_to,
    rest_by,
    row,
    scaling_by,
    span,
    stiffness_by,
)
from warpbots.solvers.projective.elements.free_normals import NormalArrays

__all__ = [
    "HINGES",
    "HingeArrays",
    "energy_kernel",
    "force_kernel",
    "hinges_of",
    "normal_bound_kernel",
    "rest_kernel",
    "scaling_kernel",
    "stiffness_kernel",
]

_vec = vector(3)


@wp.struct
class HingeArrays:
    """Hinges; arrays that may differ between worlds hold all worlds in one row.

    place: Location of these elements among the elements of all kinds.
    node: Nodes x_0 to x_3, shape (count,).
    bending: Flexural rigidity D [N m], shape (worlds * count,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    weight: Weights w_1, w_2 and w_3 [1], shape (worlds * count,).
    fold: s [m], shape (worlds * count,).
    spring: k [N/m], shape (worlds * count,).
    nominal: Stiffness k (w_1^2 + w_2^2 + w_3^2) of a hinge in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    bending: wp.array[real]
    rest_position: wp.array[_vec]
    weight: wp.array[_vec]
    fold: wp.array[real]
    spring: wp.array[real]
    nominal: wp.array[real]


@wp.func
def fold_of(d1: _vec, d2: _vec, d3: _vec, weight: _vec):
    """The jump v of the slope across the edge, times the length of the edge."""
    return weight[0] * d1 + weight[1] * d2 + weight[2] * d3


@wp.func
def normals_of(d1: _vec, d2: _vec, d3: _vec):
    """Normals of both triangles, with twice their areas as lengths, and the sum of the unit normals."""
    n2 = wp.cross(d1, d2)
    n3 = wp.cross(d3, d1)
    return n2, n3, wp.normalize(n2) + wp.normalize(n3)


@wp.kernel
def rest_kernel(
    # model
    hinges: HingeArrays,
    # out
    hinges_out: HingeArrays,
    mass_out: wp.array[real],
):
    """Write w, s and k of every hinge; hinges have no mass."""
    w, e = wp.tid()
    n = w * hinges.place.nodes
    r = row(hinges.place, w, e)
    k = hinges.node[e]
    X = hinges.rest_position[n + k[0]]
    d1 = hinges.rest_position[n + k[1]] - X
    d2 = hinges.rest_position[n + k[2]] - X
    d3 = hinges.rest_position[n + k[3]] - X
    n2, n3, m = normals_of(d1, d2, d3)
    a2 = wp.length(n2)
    a3 = wp.length(n3)
    square = wp.dot(d1, d1)
    weight = _vec(-wp.dot(d1, d2) / a2 - wp.dot(d1, d3) / a3, square / a2, square / a3)
    hinges_out.weight[r] = weight
    hinges_out.fold[r] = wp.dot(fold_of(d1, d2, d3, weight), wp.normalize(m))
    hinges_out.spring[r] = real(2.0) * hinges.bending[r] / (a2 + a3)
    for c in range(4):
        mass_out[corner(hinges.place, w, 4 * e + c)] = real(0.0)


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    hinges: HingeArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """Raise the maxima to the largest ratio of a stiffness to its nominal value in the matrix of the global step."""
    w, e = wp.tid()
    r = row(hinges.place, w, e)
    size = wp.dot(hinges.weight[r], hinges.weight[r])
    raise_to(scaling_out, w, e, hinges.spring[r] * size / hinges.nominal[e])


@wp.func
def swing(a: _vec, t: _vec):
    """(d(a/|a|)/da)^T t, and 0 for a = 0."""
    length = wp.length(a)
    if length == real(0.0):
        return _vec()
    n = a / length
    return (t - wp.dot(n, t) * n) / length


@wp.func
def slopes(d1: _vec, d2: _vec, d3: _vec, weight: _vec, fold: real, k: real):
    """Gradient of the energy with respect to d_1, d_2 and d_3; n depends on d through d_1 x d_2 and d_3 x d_1."""
    n2, n3, m = normals_of(d1, d2, d3)
    v = fold_of(d1, d2, d3, weight)
    g = v - fold * wp.normalize(m)
    t = fold * swing(m, v)
    t2 = swing(n2, t)
    t3 = swing(n3, t)
    g1 = k * (weight[0] * g - wp.cross(d2, t2) - wp.cross(t3, d3))
    g2 = k * (weight[1] * g - wp.cross(t2, d1))
    g3 = k * (weight[2] * g - wp.cross(d1, t3))
    return g1, g2, g3


@wp.kernel(module=wp.get_module("warpbots.projective.hinges_energy"))
def energy_kernel(
    # model
    hinges: HingeArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """k/2 |v - s n|^2."""
    w, e = wp.tid()
    r = row(hinges.place, w, e)
    k = hinges.node[e]
    d1 = span(hinges.place, x, u, w, k[0], k[1])
    d2 = span(hinges.place, x, u, w, k[0], k[2])
    d3 = span(hinges.place, x, u, w, k[0], k[3])
    _n2, _n3, m = normals_of(d1, d2, d3)
    g = fold_of(d1, d2, d3, hinges.weight[r]) - hinges.fold[r] * wp.normalize(m)
    energy_out[corner(hinges.place, w, 4 * e)] = real(0.5) * hinges.spring[r] * wp.dot(g, g)


@wp.kernel
def force_kernel(
    # model
    hinges: HingeArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_i = -k (w_i (v - s n) - s (dn/dx_i)^T v)."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(hinges.place, w, e)
    k = hinges.node[e]
    d1 = span(hinges.place, x, u, w, k[0], k[1])
    d2 = span(hinges.place, x, u, w, k[0], k[2])
    d3 = span(hinges.place, x, u, w, k[0], k[3])
    g1, g2, g3 = slopes(d1, d2, d3, hinges.weight[r], hinges.fold[r], hinges.spring[r])
    c = corner(hinges.place, w, 4 * e)
    force_out[c] = g1 + g2 + g3
    force_out[c + 1] = -g1
    force_out[c + 2] = -g2
    force_out[c + 3] = -g3


@wp.func
def work(d1: _vec, d2: _vec, d3: _vec, weight: _vec, fold: real, k: real, t1: _vec, t2: _vec, t3: _vec):
    """Product of `slopes` with t; its gradient with respect to d is the product of the stiffness with t."""
    g1, g2, g3 = slopes(d1, d2, d3, weight, fold, k)
    return wp.dot(t1, g1) + wp.dot(t2, g2) + wp.dot(t3, g3)


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    hinges: HingeArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += k w_i w_j, plus the terms of the fold at rest."""
    w, e = wp.tid()
    r = row(hinges.place, w, e)
    k = hinges.node[e]
    d1 = span(hinges.place, x, u, w, k[0], k[1])
    d2 = span(hinges.place, x, u, w, k[0], k[2])
    d3 = span(hinges.place, x, u, w, k[0], k[3])
    for l in range(4):
        for b in range(3):
            t = _vec()
            t[b] = real(1.0)
            t1 = _vec()
            t2 = _vec()
            t3 = _vec()
            if l == 0:  # the first corner moves all differences the other way
                t1 = -t
                t2 = -t
                t3 = -t
            elif l == 1:
                t1 = t
            elif l == 2:
                t2 = t
            else:
                t3 = t
            h1, h2, h3, _w, _f, _k, _1, _2, _3 = wp.grad(work)(
                d1, d2, d3, hinges.weight[r], hinges.fold[r], hinges.spring[r], t1, t2, t3
            )
            p = 16 * e + l
            add_block(hinges.place, w, p, b, -(h1 + h2 + h3), block_out)
            add_block(hinges.place, w, p + 4, b, h1, block_out)
            add_block(hinges.place, w, p + 8, b, h2, block_out)
            add_block(hinges.place, w, p + 12, b, h3, block_out)


@wp.kernel(enable_backward=False)
def normal_bound_kernel(
    # model
    hinges: HingeArrays,
    normals: NormalArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    bound_out: wp.array[real],
):
    """k |w_i| sum |w_j|."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(hinges.place, w, e)
    a = hinges.weight[r]
    first = a[0] + a[1] + a[2]
    total = wp.abs(first) + wp.abs(a[0]) + wp.abs(a[1]) + wp.abs(a[2])
    c = corner(hinges.place, w, 4 * e)
    bound_out[c] = hinges.spring[r] * wp.abs(first) * total
    for i in range(3):
        bound_out[c + 1 + i] = hinges.spring[r] * wp.abs(a[i]) * total


def hinges_of(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges between two faces.

    Args:
        faces: Vertex indices of the faces of a surface; adjacent faces have the same orientation; shape (n, 3).

    Returns:
        The vertices x_0 to x_3 of each edge, shape (m, 4), and its two faces, shape (m, 2).
    """
    start, end, tip = (np.concatenate([faces[:, (k + i) % 3] for k in range(3)]) for i in range(3))
    face = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort((start, np.maximum(start, end), np.minimum(start, end)))
    a, b = order[:-1], order[1:]
    both = (start[a] == end[b]) & (end[a] == start[b])
    a, b = a[both], b[both]
    return np.stack([start[a], end[a], tip[a], tip[b]], axis=1), np.stack([face[a], face[b]], axis=1)


def _blocks(mesh: object) -> np.ndarray:
    """k w w^T; k of a plate of the same material is used for sheets without bending stiffness."""
    d1, d2, d3 = (mesh.position[mesh.hinges[:, i]] - mesh.position[mesh.hinges[:, 0]] for i in (1, 2, 3))
    a2, a3 = (np.linalg.norm(np.cross(d1, d), axis=1) for d in (d2, d3))
    w1 = -(d1 * d2).sum(axis=1) / a2 - (d1 * d3).sum(axis=1) / a3
    w2, w3 = ((d1**2).sum(axis=1) / a for a in (a2, a3))
    weight = np.stack([-w1 - w2 - w3, w1, w2, w3], axis=1)
    spring = 2.0 * np.where(mesh.bending > 0.0, mesh.bending, mesh.plate) / (a2 + a3)
    return spring[:, None, None] * weight[:, :, None] * weight[:, None, :]


HINGES = Kind(
    name="hinges",
    arrays=HingeArrays,
    node=wp.vec4i,
    rested={"weight": _vec, "fold": real, "spring": real},
    blocks=_blocks,
    rest=rest_by(rest_kernel),
    scaling=scaling_by(scaling_kernel),
    forces=forces_by(force_kernel),
    energy=energy_by(energy_kernel),
    stiffness=stiffness_by(stiffness_kernel),
    normal_bounds=normal_bounds_by(normal_bound_kernel),
)
"""Edges between triangles of sheets."""
