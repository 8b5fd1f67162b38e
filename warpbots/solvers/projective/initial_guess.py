"""The initial guess of a step: free flight, or as much of it as tears no element.

Free flight takes what moves freely to its end, and what is held just as far from it: a bar that hangs on a wall falls
by h^2 g except for its root, in a step of a second 200 times the length of an element. From there the iteration
converges to another end than matter would reach, inverted or snapped through, or does not converge. With the edges D of
a simplex and their change U in free flight, without the rotation of an unconstrained body, the iteration begins after
the part

    min(1, most / |U D^+|_F)

of free flight, the least of all simplices that elements connect. Below 1, |U D^+| keeps D + U from being inverted.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.elements.element import Place, at
from warpbots.solvers.projective.elements.reference_elements import HEXAHEDRON, QUADRATIC_TETRAHEDRON, ReferenceElement
from warpbots.solvers.projective.islands import Islands

__all__ = ["KERNELS", "shorten_kernel"]

_vec, _mat = vector(3), matrix(3)
_MOST = wp.constant(real(0.5))


@wp.func
def edge(place: Place, x: wp.array[_vec], w: int, i: int, k: int):
    """From node i to node k at the start of the step."""
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
    """Limit the part of free flight of the component of a node by the square of |U D^+|."""
    if square > _MOST * _MOST:
        wp.atomic_min(flight, w * islands.count + islands.component[i], _MOST / wp.sqrt(square))


@wp.kernel(enable_backward=False)
def tets_kernel(
    # model
    place: Place,
    node: wp.array[wp.vec4i],
    islands: Islands,
    # state
    rotation: RotationArrays,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    flight_out: wp.array[real],
):
    """U D^-1."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    b = edge(place, x, w, k[0], k[2])
    c = edge(place, x, w, k[0], k[3])
    U = wp.matrix_from_cols(
        change(place, rotation, u, a, w, k[0], k[1]),
        change(place, rotation, u, b, w, k[0], k[2]),
        change(place, rotation, u, c, w, k[0], k[3]),
    )
    H = U @ wp.inverse(wp.matrix_from_cols(a, b, c))
    shorten(wp.ddot(H, H), islands, w, k[0], flight_out)


@wp.kernel(enable_backward=False)
def triangles_kernel(
    # model
    place: Place,
    node: wp.array[wp.vec3i],
    islands: Islands,
    # state
    rotation: RotationArrays,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    flight_out: wp.array[real],
):
    """U D^+ by tr(U^T U (D^T D)^-1)."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    b = edge(place, x, w, k[0], k[2])
    p = change(place, rotation, u, a, w, k[0], k[1])
    q = change(place, rotation, u, b, w, k[0], k[2])
    area = wp.cross(a, b)
    square = wp.dot(b, b) * wp.dot(p, p) - real(2.0) * wp.dot(a, b) * wp.dot(p, q) + wp.dot(a, a) * wp.dot(q, q)
    shorten(square / wp.dot(area, area), islands, w, k[0], flight_out)


@wp.kernel(enable_backward=False)
def bars_kernel(
    # model
    place: Place,
    node: wp.array[wp.vec2i],
    islands: Islands,
    # state
    rotation: RotationArrays,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    flight_out: wp.array[real],
):
    """U D^+ of one edge."""
    w, s = wp.tid()
    k = node[s]
    a = edge(place, x, w, k[0], k[1])
    p = change(place, rotation, u, a, w, k[0], k[1])
    shorten(wp.dot(p, p) / wp.dot(a, a), islands, w, k[0], flight_out)


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
    """Reduce nodes and joints to a part of free flight; fixed nodes stay at their anchors."""
    w, i = wp.tid()
    part = flight[w * islands.count + islands.component[i]]
    if part == real(1.0) or (i < nodes and held[i] >= 0):
        return
    u_out[w * stride + i] = part * u_out[w * stride + i]


@functools.cache
def solid_kernel(reference: ReferenceElement) -> wp.Kernel:
    """Kernel of solid elements with several points of quadrature."""
    points, nodes = reference.gradients.shape[:2]
    gradients = wp.types.matrix((points * nodes, 3), real)(reference.gradients.reshape(-1).tolist())
    numbers = wp.types.vector(nodes, wp.int32)
    module = wp.get_module(f"warpbots.projective.{reference.name}_initial_guess")
    wp.set_module_options({"max_unroll": 3}, module)

    @wp.kernel(module=module, enable_backward=False)
    def solids(
        # model
        place: Place,
        node: wp.array[numbers],
        islands: Islands,
        # state
        rotation: RotationArrays,
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        flight_out: wp.array[real],
    ):
        """U N (D N)^-1 at every point, with the gradients N of the shape functions in coordinates of the element."""
        w, s = wp.tid()
        k = node[s]
        for q in range(points):
            UN = _mat()
            DN = _mat()
            for a in range(1, nodes):
                d = edge(place, x, w, k[0], k[a])
                N = gradients[nodes * q + a]
                UN += wp.outer(change(place, rotation, u, d, w, k[0], k[a]), N)
                DN += wp.outer(d, N)
            H = UN @ wp.inverse(DN)
            shorten(wp.ddot(H, H), islands, w, k[0], flight_out)

    return solids


KERNELS = {"tets": tets_kernel, "triangles": triangles_kernel, "bars": bars_kernel} | {
    e.name: solid_kernel(e) for e in (QUADRATIC_TETRAHEDRON, HEXAHEDRON)
}
"""Kernels (place, node, islands, rotation, x, u) -> (flight) by the kinds of elements that limit free flight."""
