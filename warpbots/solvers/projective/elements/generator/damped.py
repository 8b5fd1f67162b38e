"""Kelvin-Voigt damping: a viscous stress of beta times the elastic stress of the strain rate, for every energy.

The viscous stress follows from the rate of the second Piola-Kirchhoff stress S = F^-1 P, which does not change when
matter rotates. For a step from a start with the index 0 to its end,

    P_v = beta F dS/dt = beta/h (P(F) - F S_0),   S_0 = F_0^-1 P(F_0).

S_0 is constant during a step, so that P_v has the energy beta/h V (Psi(F) - 1/2 S_0 : F^T F), and a symmetric second
derivative. If strains are small, P_v is beta/h times the elastic stress of the change of strain; if nothing moves, P_v
is 0 under any stress. In sheets and bars F^-1 is (F^T F)^-1 F^T. An energy whose P is linear in F has P_v = beta/h
(P(F) - P(F_0)).
"""

import functools

import warp as wp

from warpbots.actuation_laws import ActivationArrays
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import Place, element, raise_to
from warpbots.solvers.projective.elements.generator.energy import Energy, Response
from warpbots.solvers.projective.elements.generator.family import Family, point_of_quadrature, rows
from warpbots.solvers.projective.elements.generator.rest import inverse_of, stiffness_at

__all__ = ["begin_kernel", "carried_type", "damped", "damper_arrays", "damper_scaling_kernel"]

_vec = vector(3)


def carried_type(family: Family) -> type:
    """Type of S_0, or of P(F_0) for solids whose P is linear in F."""
    return rows(family.columns, family.columns)


@functools.cache
def damper_arrays(family: Family) -> type:
    """Warp struct of the dampers of elements."""
    numbers, stress = family.node, carried_type(family)

    @wp.struct
    class DamperArrays:
        """Dampers of elements; arrays that may differ between worlds hold all worlds in one row.

        place: Location of these elements among the elements of all kinds.
        node: Nodes of the elements, shape (count,).
        damping: Time beta [s], shape (worlds * elements,).
        carried: beta/h S_0 [Pa], or beta/h P(F_0) of a linear P, shape (worlds * count * points,).
        ratio: Contributions of the points to the ratio of the stiffness of an element with damping to its value in the
            matrix of the global step [1], shape (worlds * count * points,).
        nominal: Resistance of an element in the matrix of the global step [N s/m], shape (count,).
        """

        place: Place
        node: wp.array[numbers]
        damping: wp.array[real]
        carried: wp.array[stress]
        ratio: wp.array[real]
        nominal: wp.array[real]

    return DamperArrays


@functools.cache
def _carrying(family: Family, linear: bool) -> tuple[wp.Function, wp.Function]:
    """Warp functions back(F, P), the quantity C that a step carries, and on(F, C), the stress that follows from C."""
    mat, carried, inverse = family.deformation_gradient, carried_type(family), inverse_of(family.columns)

    @wp.func
    def back(F: mat, P: mat):
        """S = F^-1 P."""
        return wp.inverse(F) @ P

    @wp.func
    def thin_back(F: mat, P: mat):
        """S = (F^T F)^-1 F^T P."""
        T = wp.transpose(F)
        return inverse(T @ F) @ (T @ P)

    @wp.func
    def on(F: mat, C: carried):
        """F S."""
        return F @ C

    @wp.func
    def linear_back(F: mat, P: mat):
        """P."""
        return P

    @wp.func
    def linear_on(F: mat, C: carried):
        """P."""
        return C

    if linear:
        return linear_back, linear_on
    return (back if family.columns == 3 else thin_back), on


@functools.cache
def damped(family: Family, energy: Energy) -> Response:
    """The response of dampers for an energy."""
    Dampers, Elements, mat = damper_arrays(family), family.arrays, family.deformation_gradient
    numbers, Second = energy.numbers(family), energy.numbers_type
    _, on = _carrying(family, energy.linear)

    @wp.struct
    class DampedNumbers:
        """Numbers that are the same at all points of an element.

        k: Stiffness k of the energy [Pa].
        s: Second number s of the energy.
        rate: beta/h [1].
        """

        k: real
        s: Second
        rate: real

    @wp.func
    def constants(
        own: Dampers, elements: Elements, activation: ActivationArrays, h: real, control: wp.array2d[real], w: int,
        e: int,
    ):  # fmt: skip
        """k, s and beta/h."""
        k, s = numbers(elements, control, w, e)
        c = DampedNumbers()
        c.k = k
        c.s = s
        c.rate = own.damping[element(elements.place, w, e)] / h
        return c

    @wp.func
    def stress(
        own: Dampers, activation: ActivationArrays, control: wp.array2d[real], w: int, e: int, P: mat, F: mat,
        c: DampedNumbers, q: int,
    ):  # fmt: skip
        """P_v = beta/h P - F beta/h S_0."""
        return c.rate * P - on(F, own.carried[q])

    @wp.func
    def change(
        own: Dampers, activation: ActivationArrays, control: wp.array2d[real], w: int, e: int, dP: mat, dF: mat,
        F: mat, c: DampedNumbers, q: int,
    ):  # fmt: skip
        """dP_v = beta/h dP - dF beta/h S_0, or beta/h dP for a linear P."""
        dT = c.rate * dP
        if wp.static(not energy.linear):
            dT -= on(dF, own.carried[q])
        return dT

    return Response("damped", Dampers, constants, stress, change)


@functools.cache
def begin_kernel(family: Family, energy: Energy) -> wp.Kernel:
    """Kernel over (worlds, elements of one energy, points) that writes the quantities dampers carry through a step."""
    Dampers, Elements, deformed, numbers = damper_arrays(family), family.arrays, family.deformed, energy.numbers(family)
    stiffness_at_point, points = stiffness_at(family, energy.modulus, energy.numbers_type), family.points
    energy_stress = energy.stress
    back, _ = _carrying(family, energy.linear)

    @wp.kernel(module=family.module(energy.name, "damped"))
    def begin(
        # model
        dampers: Dampers,
        elements: Elements,
        first: int,
        # step
        h: real,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        still: wp.array[NODE],
        # out
        dampers_out: Dampers,
    ):
        """Write beta/h S_0, and the contribution of a point to stiffness with damping over nominal stiffness."""
        w, n, i = wp.tid()
        e = first + n
        q = point_of_quadrature(elements.place, points, w, e, i)
        k, s = numbers(elements, control, w, e)
        beta = dampers.damping[element(elements.place, w, e)]
        F = deformed(elements.place, elements.node[e], elements.gradient[q], x, still, w)
        dampers_out.carried[q] = beta / h * back(F, energy_stress(F, k, s))
        size = stiffness_at_point(elements, k, s, q)
        dampers_out.ratio[q] = (h + beta) * size / (h * elements.nominal[e] + dampers.nominal[e])

    return begin


@functools.cache
def damper_scaling_kernel(family: Family) -> wp.Kernel:
    """Kernel over (worlds, elements) for the largest ratio of a stiffness with damping to its value in the matrix."""
    Dampers, points = damper_arrays(family), family.points

    @wp.kernel(module=family.module("damped"), enable_backward=False)
    def scaling(
        # model
        dampers: Dampers,
        # out
        scaling_out: wp.array2d[real],
    ):
        """Raise the maxima to the sum of the contributions of all points."""
        w, e = wp.tid()
        ratio = real(0.0)
        for i in range(points):
            ratio += dampers.ratio[point_of_quadrature(dampers.place, points, w, e, i)]
        raise_to(scaling_out, w, e, ratio)

    return scaling
