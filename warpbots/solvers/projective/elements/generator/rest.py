"""Elements at rest: gradients, volumes, masses, and ratios of stiffnesses to their values in the global matrix.

With the gradients N of the shape functions in coordinates xi of an element and J = dX/dxi = sum_a X_a N_a^T,

    G = N R^-1,   V = w det R

for a point of quadrature of the weight w. R is J for solids; for others, it is J in an orthonormal basis of its
columns.
"""

import functools
from collections.abc import Callable

import warp as wp

from warpbots.actuation_laws import ActivationArrays, active_stress
from warpbots.numerics import matrix, real, vector
from warpbots.solvers.projective.elements.element import Place, corner, element, raise_to
from warpbots.solvers.projective.elements.generator.family import Family, point_of_quadrature, rows
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement

__all__ = ["inverse_of", "rest_of", "scaling_kernel", "stiffness_at"]

_vec, _mat = vector(3), matrix(3)
_active = active_stress(3)


@functools.cache
def inverse_of(m: int) -> wp.Function:
    """Warp function for the inverse of a matrix with m rows and columns."""
    mat = rows(m, m)

    @wp.func
    def inverse(A: mat):
        """A^-1."""
        return wp.inverse(A)

    @wp.func
    def inverse_of_number(A: mat):
        """1 / A."""
        return mat(real(1.0) / A[0, 0])

    return inverse_of_number if m == 1 else inverse


@functools.cache
def _frame_of(m: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions that return R for J, and det R."""
    R, J3 = rows(m, m), rows(3, m)

    @wp.func
    def of_solid(J: J3):
        """J."""
        return J

    @wp.func
    def of_sheet(J: J3):
        """J in the frame of the plane of its columns, with the first axis along the first column."""
        a = _vec(J[0, 0], J[1, 0], J[2, 0])
        b = _vec(J[0, 1], J[1, 1], J[2, 1])
        base = wp.length(a)
        return R(base, wp.dot(a, b) / base, real(0.0), wp.length(wp.cross(a, b)) / base)

    @wp.func
    def of_line(J: J3):
        """|J|."""
        return R(wp.length(_vec(J[0, 0], J[1, 0], J[2, 0])))

    @wp.func
    def determinant(A: R):
        """det A."""
        return wp.determinant(A)

    @wp.func
    def number(A: R):
        """A."""
        return A[0, 0]

    return {1: (of_line, number), 2: (of_sheet, determinant), 3: (of_solid, determinant)}[m]


@functools.cache
def _jacobian(nodes: int, m: int) -> wp.Function:
    """Warp function J(place, X, node, N, w) of an element at rest."""
    numbers = wp.types.vector(nodes, wp.int32)
    relative, mat = rows(nodes, m), rows(3, m)

    @wp.func
    def jacobian(place: Place, X: wp.array[_vec], node: numbers, N: relative, w: int):
        """sum_a (X_a - X_0) N_a^T."""
        n = w * place.nodes
        J = mat()
        for a in range(1, nodes):
            J += wp.outer(X[n + node[a]] - X[n + node[0]], N[a])
        return J

    return jacobian


@functools.cache
def _on_device(reference: ReferenceElement, device: str) -> tuple[wp.array, wp.array, wp.array]:
    """Gradients and weights of a reference element at its points of quadrature, and its mass shares, on a device."""
    relative = rows(*reference.gradients.shape[1:])
    tables = (reference.gradients, relative), (reference.weights, real), (reference.shares, real)
    return tuple(wp.array(values, dtype=dtype, device=device) for values, dtype in tables)


def rest_of(
    family: Family, reference: ReferenceElement, size_of: Callable | None = None, gradient_of: Callable | None = None
) -> Callable:
    """`Kind.rest` of elements with the shape of a reference element.

    Args:
        family: The elements; actuators can change the rest lengths of solids with a mass.
        reference: The reference element with the shape functions.
        size_of: Function of the struct: the Warp function (elements, w, e) of a thickness [m] or a cross-section [m^2],
            by which volumes are multiplied; None for solids.
        gradient_of: Function of the struct: the Warp function (elements, e, G) that turns the gradients G of the
            reference element into the gradients of the elements; None to use G.
    """
    shape = _shape_kernel(family, reference, size_of, gradient_of)

    def rest(elements: object, model: object, control: wp.array) -> list[tuple]:
        tables = [family.points, *_on_device(reference, model.device.alias)]
        inputs = [elements, *tables, model.growth, control, elements, model.workspace.corner_mass]
        return [(shape, (model.worlds, elements.place.count), inputs)]

    return rest


def _shape_kernel(
    family: Family, reference: ReferenceElement, size_of: Callable | None, gradient_of: Callable | None
) -> wp.Kernel:
    """Kernel over (worlds, elements) that writes gradients and volumes after growth, and masses of corners before it.

    The mass m of an element gives each of its corners the share s_a of it.
    """
    nodes, m = reference.gradients.shape[1:]
    Elements, points, relative, jacobian = family.arrays, family.points, rows(nodes, m), _jacobian(nodes, m)
    inverse, (frame, determinant), massive = inverse_of(m), _frame_of(m), family.massive
    grows = massive and size_of is None
    size, gradient = size_of and size_of(Elements), gradient_of and gradient_of(Elements)

    @wp.func
    def at_point(
        elements: Elements,
        N: relative,
        weight: real,
        growth: ActivationArrays,
        control: wp.array2d[real],
        w: int,
        e: int,
        i: int,
        elements_out: Elements,
    ):
        """Write G = N (A R)^-1 and V = det A w det R, with the growth A of rest lengths.

        Returns rho w det R, the mass before growth: the adjoint of a sum over points in a loop must not need the sum.
        """
        R = frame(jacobian(elements.place, elements.rest_position, elements.node[e], N, w))
        before = weight * determinant(R)
        if wp.static(size is not None):
            before *= size(elements, w, e)
        V = before
        if wp.static(grows):
            A = wp.identity(n=3, dtype=real) + _active(growth, e, w, control, _mat())
            R = A @ R
            V *= wp.determinant(A)
        q = point_of_quadrature(elements.place, points, w, e, i)
        elements_out.volume[q] = V
        if wp.static(gradient is not None):
            elements_out.gradient[q] = gradient(elements, e, N @ inverse(R))
        else:
            elements_out.gradient[q] = N @ inverse(R)
        if wp.static(massive):
            return elements.density[element(elements.place, w, e)] * before
        else:
            return real(0.0)

    @wp.kernel(module=family.module())
    def shape(
        # model
        elements: Elements,
        count: int,
        reference: wp.array[relative],
        weight: wp.array[real],
        share: wp.array[real],
        growth: ActivationArrays,
        # state
        control: wp.array2d[real],
        # out
        elements_out: Elements,
        mass_out: wp.array[real],
    ):
        """G, V, and m_a = s_a sum m, over `count` points: a loop of unknown length is compiled once."""
        w, e = wp.tid()
        m = real(0.0)
        if wp.static(points == 1):
            m = at_point(elements, reference[0], weight[0], growth, control, w, e, 0, elements_out)
        else:
            for i in range(count):
                m += at_point(elements, reference[i], weight[i], growth, control, w, e, i, elements_out)
        if wp.static(massive):
            for a in range(nodes):
                mass_out[corner(elements.place, w, nodes * e + a)] = share[a] * m

    return shape


@functools.cache
def stiffness_at(family: Family, modulus: wp.Function, numbers_type: type = real) -> wp.Function:
    """Warp function for the contribution of point q to k w sum V |G|^2, summed over all nodes but the first."""
    Elements = family.arrays

    @wp.func
    def stiffness_at_point(elements: Elements, k: real, s: numbers_type, q: int):
        """k w V |G|^2."""
        G = elements.gradient[q]
        return k * modulus(s) * elements.volume[q] * (wp.ddot(G, G) - wp.dot(G[0], G[0]))

    return stiffness_at_point


def scaling_kernel(family: Family, modulus: wp.Function) -> wp.Kernel:
    """Kernel over (worlds, elements) for the largest ratio of a stiffness to its value in the global matrix."""
    Elements, numbers, points = family.arrays, family.numbers, family.points
    stiffness_at_point = stiffness_at(family, modulus)

    @wp.kernel(module=family.module(), enable_backward=False)
    def scaling(
        # model
        elements: Elements,
        # state
        control: wp.array2d[real],
        # out
        scaling_out: wp.array2d[real],
    ):
        """Raise the maxima to the stiffness of each element divided by its nominal stiffness in the global matrix."""
        w, e = wp.tid()
        k, s = numbers(elements, control, w, e)
        total = real(0.0)
        for i in range(points):
            total += stiffness_at_point(elements, k, s, point_of_quadrature(elements.place, points, w, e, i))
        raise_to(scaling_out, w, e, total / elements.nominal[e])

    return scaling
