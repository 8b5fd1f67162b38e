"""The response of matter: the stress of its energy, plus F S for the stress S of actuators in the undeformed body."""

import functools

import warp as wp

from warpbots.actuation_laws import activation_arrays, active_stress
from warpbots.numerics import matrix, real
from warpbots.solvers.projective.elements.generator.energy import Energy, Response
from warpbots.solvers.projective.elements.generator.family import Family

__all__ = ["elastic"]

_mat = matrix(3)
_ActivationArrays = activation_arrays(3)
_active = active_stress(3)


@functools.cache
def elastic(family: Family, energy: Energy) -> Response:
    """The response of matter with an energy, as a `Response`."""
    Elements, mat, stressed = family.arrays, family.deformation_gradient, family.stressed
    numbers, Second = energy.numbers(family), energy.numbers_type

    @wp.struct
    class Numbers:
        """Numbers that are the same at all points of an element.

        k: Stiffness k of the energy [Pa].
        s: Second number s of the energy.
        S: Stress S of actuators in the undeformed body [Pa].
        driven: 1 for an element with stress actuators, else 0.
        """

        k: real
        s: Second
        S: _mat
        driven: int

    @wp.func
    def constants(
        own: Elements, elements: Elements, activation: _ActivationArrays, h: real, control: wp.array2d[real], w: int,
        e: int,
    ):  # fmt: skip
        """k, s and S."""
        k, s = numbers(elements, control, w, e)
        c = Numbers()
        c.k = k
        c.s = s
        if wp.static(stressed):  # noqa: SIM102 (pruned only where it stands alone)
            if activation.start[e] < activation.start[e + 1]:
                c.S = _active(activation, e, w, control)
                c.driven = 1
        return c

    @wp.func
    def stress(own: Elements, P: mat, F: mat, c: Numbers, q: int):
        """P + F S."""
        T = P
        if wp.static(stressed):  # noqa: SIM102 (pruned only where it stands alone)
            if c.driven == 1:
                T += F @ c.S
        return T

    return Response("elastic", Elements, constants, stress)
