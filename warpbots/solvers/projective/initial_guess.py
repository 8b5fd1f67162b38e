"""The initial guess of a step: free flight, or the fraction of free flight that tears no element.

Free flight is a good guess for matter that moves freely, and a bad one for matter that is held: a bar that is fixed to
a wall falls by h^2 g except at its root, which in a step of one second may be 200 times the length of an element. From
such a guess the iteration converges to a wrong end, inverted or snapped through, or not at all. With the deformation
gradient F at the start of the step and its change dF in free flight, without the rotation of an unconstrained body, the
iteration begins after the fraction

    min(1, most / |dF F^+|)

of free flight, the smallest over all quadrature points of elements with mass. If |dF F^+| is below 1, F + dF is not
inverted.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.elements.element import Place, at
from warpbots.solvers.projective.elements.generator.family import Family, point_of_quadrature, rows
from warpbots.solvers.projective.elements.generator.rest import inverse_of
from warpbots.solvers.projective.islands import Islands

__all__ = ["flight_kernel", "shorten_kernel"]

_vec = vector(3)
_MOST = wp.constant(real(0.5))


@wp.func
def edge(place: Place, x: wp.array[_vec], w: int, i: int, k: int):
    """Edge from node i to node k at the start of the step."""
    return x[w * place.nodes + k] - x[w * place.nodes + i]


@wp.func
def change(place: Place, rotation: RotationArrays, u: wp.array[NODE], e: _vec, w: int, i: int, k: int):
    """Change of the edge `e` from node i to node k in free flight, without the rotation of its body."""
    m = w * place.stride
    d = at(u, m + k) - at(u, m + i)
    body = rotation.body[i]
    if body >= 0:
        d -= wp.cross(_vec(rotation.angle[w * rotation.count + body]), e)
    return d


@wp.func
def shorten(square: real, islands: Islands, w: int, i: int, flight: wp.array[real]):
    """Limit the fraction of free flight of the component of node i so that |dF F^+| stays below `_MOST`.

    `square` is |dF F^+|^2 of the whole free flight.
    """
    if square > _MOST * _MOST:
        wp.atomic_min(flight, w * islands.count + islands.component[i], _MOST / wp.sqrt(square))


@functools.cache
def _part_of(m: int) -> wp.Function:
    """Warp function of |dF F^+|^2 for F with m columns."""
    mat, inverse = rows(3, m), inverse_of(m)

    @wp.func
    def square(F: mat, dF: mat):
        """|dF F^-1|^2."""
        H = dF @ wp.inverse(F)
        return wp.ddot(H, H)

    @wp.func
    def thin_square(F: mat, dF: mat):
        """tr(dF (F^T F)^-1 dF^T)."""
        return wp.ddot(dF, dF @ inverse(wp.transpose(F) @ F))

    return square if m == 3 else thin_square


@functools.cache
def flight_kernel(family: Family) -> wp.Kernel:
    """Kernel over (worlds, elements) that limits the fraction of free flight; the loop over points is not unrolled."""
    Elements, nodes, points, mat = family.arrays, family.nodes, family.points, family.deformation_gradient
    square_of = _part_of(family.columns)

    @wp.kernel(module=family.module("flight"), enable_backward=False)
    def limit(
        # model
        elements: Elements,
        count: int,
        islands: Islands,
        # state
        rotation: RotationArrays,
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        flight_out: wp.array[real],
    ):
        """Limit the fraction of free flight by |dF F^+| with F = sum_a (x_a - x_0) G_a^T."""
        w, e = wp.tid()
        node = elements.node[e]
        for i in range(count):
            G = elements.gradient[point_of_quadrature(elements.place, points, w, e, i)]
            F = mat()
            dF = mat()
            for a in range(1, nodes):
                d = edge(elements.place, x, w, node[0], node[a])
                F += wp.outer(d, G[a])
                dF += wp.outer(change(elements.place, rotation, u, d, w, node[0], node[a]), G[a])
            shorten(square_of(F, dF), islands, w, node[0], flight_out)

    return limit


@wp.kernel(enable_backward=False)
def shorten_kernel(
    # model
    stride: int,
    nodes: int,
    held: wp.array[int],
    islands: Islands,
    # work
    flight: wp.array[real],
    # out
    u_out: wp.array[NODE],
):
    """Scale displacements of nodes and joints to the fraction of free flight; fixed nodes stay at their anchors."""
    w, i = wp.tid()
    part = flight[w * islands.count + islands.component[i]]
    if part == real(1.0) or (i < nodes and held[i] >= 0):
        return
    u_out[w * stride + i] = part * u_out[w * stride + i]
