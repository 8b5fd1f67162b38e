"""Where the search of a step begins: free flight, or as much of it as tears no element.

Free flight takes what moves freely to its end, and what is held as far from it: a bar that hangs on a wall falls by
h^2 g but for its root, in a step of a second 200 times the length of an element. From there the iteration finds another
end than the one that matter would come to, turned inside out or snapped through, or none. With the edges D of a simplex
and what free flight adds to them, U, less the rotation of a body that turns freely, the search begins after the part

    min(1, most / |U D^+|_F)

of free flight, the least of all simplices of a world. Below 1, |U D^+| keeps D + U from being turned inside out.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.free_rotation import TurningArrays
from warpbots.solvers.projective.elements.element import Place, at

__all__ = ["bars_kernel", "shorten_kernel", "tets_kernel", "triangles_kernel"]

_vec = vector(3)
_MOST = wp.constant(real(0.5))


@wp.func
def edge(place: Place, x: wp.array[_vec], w: int, i: int, k: int):
    """From node i to node k where the step begins."""
    return x[w * place.nodes + k] - x[w * place.nodes + i]


@wp.func
def change(place: Place, turning: TurningArrays, u: wp.array[NODE], e: _vec, w: int, i: int, k: int):
    """What free flight adds to the edge `e` from node i to node k, less the rotation of its body."""
    m = w * place.stride
    d = at(u, m + k) - at(u, m + i)
    body = turning.body[i]
    if body >= 0:
        d -= wp.cross(_vec(turning.turn[w * turning.count + body]), e)
    return d


@wp.func
def shorten(square: real, w: int, flight: wp.array[real]):
    """Leave of the free flight of a world what the square of |U D^+| allows."""
    if square > _MOST * _MOST:
        wp.atomic_min(flight, w, _MOST / wp.sqrt(square))


@wp.kernel(enable_backward=False)
def tets_kernel(
    place: Place, node: wp.array[wp.vec4i], turning: TurningArrays, x: wp.array[_vec], u: wp.array[NODE],
    flight_out: wp.array[real],
):  # fmt: skip
    """U D^-1."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    b = edge(place, x, w, k[0], k[2])
    c = edge(place, x, w, k[0], k[3])
    U = wp.matrix_from_cols(
        change(place, turning, u, a, w, k[0], k[1]),
        change(place, turning, u, b, w, k[0], k[2]),
        change(place, turning, u, c, w, k[0], k[3]),
    )
    H = U @ wp.inverse(wp.matrix_from_cols(a, b, c))
    shorten(wp.ddot(H, H), w, flight_out)


@wp.kernel(enable_backward=False)
def triangles_kernel(
    place: Place, node: wp.array[wp.vec3i], turning: TurningArrays, x: wp.array[_vec], u: wp.array[NODE],
    flight_out: wp.array[real],
):  # fmt: skip
    """U D^+ by tr(U^T U (D^T D)^-1)."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    b = edge(place, x, w, k[0], k[2])
    p = change(place, turning, u, a, w, k[0], k[1])
    q = change(place, turning, u, b, w, k[0], k[2])
    area = wp.cross(a, b)
    square = wp.dot(b, b) * wp.dot(p, p) - real(2.0) * wp.dot(a, b) * wp.dot(p, q) + wp.dot(a, a) * wp.dot(q, q)
    shorten(square / wp.dot(area, area), w, flight_out)


@wp.kernel(enable_backward=False)
def bars_kernel(
    place: Place, node: wp.array[wp.vec2i], turning: TurningArrays, x: wp.array[_vec], u: wp.array[NODE],
    flight_out: wp.array[real],
):  # fmt: skip
    """U D^+ of one edge."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    p = change(place, turning, u, a, w, k[0], k[1])
    shorten(wp.dot(p, p) / wp.dot(a, a), w, flight_out)


@wp.kernel(enable_backward=False)
def shorten_kernel(stride: int, nodes: int, held: wp.array[int], flight: wp.array[real], u_out: wp.array[NODE]):
    """Leave a part of free flight to nodes and joints; what is fixed is where it is."""
    w, i = wp.tid()
    if flight[w] == real(1.0) or (i < nodes and held[i] >= 0):
        return
    u_out[w * stride + i] = flight[w] * u_out[w * stride + i]
