"""Solid elements with several points of quadrature as Warp structs, and what there is at a point."""

import functools
from collections.abc import Callable

import warp as wp

from warpbots.materials import lame_lambda, lame_mu
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements.element import Place, row, span
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement

__all__ = [
    "deformation",
    "entries",
    "gradient_of_positions",
    "jacobian_at_rest",
    "node_vector",
    "point_of_quadrature",
    "reference_arrays",
    "rest_at_points_by",
    "rows",
    "solid_arrays",
    "weight_of",
]

_vec, _mat = vector(3), matrix(3)


@wp.func
def weight_of(E: real, nu: real):
    """Weight in the matrix of the global step [Pa], as `tetrahedra.weights` has it."""
    mu = lame_mu(E, nu)
    lam = lame_lambda(E, nu)
    return wp.max(real(2.0) * mu + lam, mu + real(1.5) * lam)


def node_vector(nodes: int) -> type:
    """Type of the numbers of the nodes of an element."""
    return wp.types.vector(nodes, wp.int32)


def entries(nodes: int) -> type:
    """Type of a vector with a number for each node of an element."""
    return wp.types.vector(nodes, real)


def rows(nodes: int) -> type:
    """Type of a matrix with a vector for each node of an element, as its rows."""
    return wp.types.matrix((nodes, 3), real)


@functools.cache
def solid_arrays(nodes: int, points: int) -> type:
    """Warp struct of solid elements with so many nodes and points of quadrature."""
    numbers, gradients = node_vector(nodes), rows(nodes)

    @wp.struct
    class SolidArrays:
        """Solid elements; arrays that may differ between worlds hold all worlds in one row.

        place: Where they are among all elements.
        node: Nodes of the elements, shape (count,).
        youngs_modulus: Young's modulus E [Pa], shape (worlds * elements,).
        poissons_ratio: Poisson's ratio nu [1], shape (worlds * elements,).
        density: Density rho [kg/m^3], shape (worlds * elements,).
        rest_position: Positions at rest [m], shape (worlds * nodes,).
        gradient: Gradients G of the shape functions at the points [1/m], shape (worlds * count * points,).
        volume: Volumes V for which the points stand [m^3], shape (worlds * count * points,).
        mass: Masses of these volumes before they grew [kg], shape (worlds * count * points,).
        nominal: Stiffness of an element in the matrix of the global step [N/m], shape (count,).
        """

        place: Place
        node: wp.array[numbers]
        youngs_modulus: wp.array[real]
        poissons_ratio: wp.array[real]
        density: wp.array[real]
        rest_position: wp.array[_vec]
        gradient: wp.array[gradients]
        volume: wp.array[real]
        mass: wp.array[real]
        nominal: wp.array[real]

    return SolidArrays


@functools.cache
def reference_arrays(reference: ReferenceElement, device: str) -> tuple[wp.array, wp.array, wp.array]:
    """Gradients and weights at the points of quadrature, and shares of mass, of a reference element on a device."""
    return (
        wp.array(reference.gradients, dtype=rows(reference.gradients.shape[1]), device=device),
        wp.array(reference.weights, dtype=real, device=device),
        wp.array(reference.shares, dtype=real, device=device),
    )


def rest_at_points_by(kernel: wp.Kernel, reference: ReferenceElement) -> Callable:
    """`Kind.rest` of elements without mass at the points of solids, by (elements, gradients, weights) -> (elements)."""

    def rest(elements: object, model: object, control: wp.array) -> list[tuple]:
        gradients, weights, _ = reference_arrays(reference, model.device.alias)
        dim = model.worlds, elements.place.count, len(reference.weights)
        return [(kernel, dim, [elements, gradients, weights, elements])]

    return rest


@functools.cache
def jacobian_at_rest(nodes: int) -> wp.Function:
    """Warp function J(place, X, node, N, w) of an element at rest, for gradients N in its own coordinates."""
    numbers, gradients = node_vector(nodes), rows(nodes)

    @wp.func
    def jacobian(place: Place, X: wp.array[_vec], node: numbers, N: gradients, w: int):
        """sum_a (X_a - X_0) N_a^T."""
        n = w * place.nodes
        J = _mat()
        for a in range(1, nodes):
            J += wp.outer(X[n + node[a]] - X[n + node[0]], N[a])
        return J

    return jacobian


@functools.cache
def gradient_of_positions(nodes: int) -> wp.Function:
    """Warp function F(place, node, G, x, u, w) at x + u and the point of an element where G are the gradients."""
    numbers, gradients = node_vector(nodes), rows(nodes)

    @wp.func
    def gradient(place: Place, node: numbers, G: gradients, x: wp.array[_vec], u: wp.array[NODE], w: int):
        """sum_a (x_a - x_0) G_a^T."""
        F = _mat()
        for a in range(1, nodes):
            F += wp.outer(span(place, x, u, w, node[0], node[a]), G[a])
        return F

    return gradient


@wp.func
def point_of_quadrature(place: Place, points: int, w: int, e: int, i: int):
    """Index of what point i of an element has: points follow one another, element after element."""
    return points * row(place, w, e) + i


@functools.cache
def deformation(nodes: int, points: int) -> wp.Function:
    """Warp function F(solids, x, u, w, e, i) at x + u and point i of an element."""
    SolidArrays, gradient = solid_arrays(nodes, points), gradient_of_positions(nodes)

    @wp.func
    def deformed(solids: SolidArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int, i: int):
        """F of its nodes."""
        q = point_of_quadrature(solids.place, points, w, e, i)
        return gradient(solids.place, solids.node[e], solids.gradient[q], x, u, w)

    return deformed
