"""The response of matter: the stress of its energy, plus F S for the stress S of actuators in the undeformed body."""

import functools

import warp as wp

from warpbots.actuation_laws import ActivationArrays, ActiveLaw, active_stress, active_work
from warpbots.numerics import matrix, real
from warpbots.solvers.projective.elements.generator.energy import Energy, Response
from warpbots.solvers.projective.elements.generator.family import Family

__all__ = ["elastic"]

_mat = matrix(3)


@functools.cache
def elastic(family: Family, energy: Energy, laws: tuple[ActiveLaw, ...]) -> Response:
    """The response of matter with an energy; `laws` are those of the stress actuators that drive the matter."""
    Elements, mat, stressed = family.arrays, family.deformation_gradient, family.stressed
    numbers, Second = energy.numbers(family), energy.numbers_type
    active, work, varies = active_stress(3, laws), active_work(3, laws), len(laws) > 1

    @wp.struct
    class Numbers:
        """Numbers that are the same at all points of an element.

        k: Stiffness k of the energy [Pa].
        s: Second number s of the energy.
        S: Stress of actuators in the undeformed body [Pa], if it does not depend on F.
        driven: 1 for an element with stress actuators, else 0.
        """

        k: real
        s: Second
        S: _mat
        driven: int

    @wp.func
    def constants(
        own: Elements, elements: Elements, activation: ActivationArrays, h: real, control: wp.array2d[real], w: int,
        e: int,
    ):  # fmt: skip
        """k, s, and whether actuators drive the element."""
        k, s = numbers(elements, control, w, e)
        c = Numbers()
        c.k = k
        c.s = s
        if wp.static(stressed):  # noqa: SIM102 (pruned only where it stands alone)
            if activation.start[e] < activation.start[e + 1]:
                c.driven = 1
                if wp.static(not varies):
                    c.S = active(activation, e, w, control, _mat())
        return c

    @wp.func
    def stress(
        own: Elements, activation: ActivationArrays, control: wp.array2d[real], w: int, e: int, P: mat, F: mat,
        c: Numbers, q: int,
    ):  # fmt: skip
        """P + F S."""
        T = P
        if wp.static(stressed):  # noqa: SIM102 (pruned only where it stands alone)
            if c.driven == 1:
                if wp.static(varies):
                    T += F @ active(activation, e, w, control, F)
                else:
                    T += F @ c.S
        return T

    @wp.func
    def change(
        own: Elements, activation: ActivationArrays, control: wp.array2d[real], w: int, e: int, dP: mat, dF: mat,
        F: mat, c: Numbers, q: int,
    ):  # fmt: skip
        """dP + dF S + F dS, where F dS is the gradient of F^T dF : S with respect to F."""
        dT = dP
        if wp.static(stressed):  # noqa: SIM102 (pruned only where it stands alone)
            if c.driven == 1:
                if wp.static(varies):
                    D = wp.transpose(F) @ dF
                    for i in range(activation.start[e], activation.start[e + 1]):
                        a = activation.actuator[i]
                        u = control[w, activation.channel[a]]
                        _activation, _a, F_adj, _u_adj, _D_adj = wp.grad(work)(activation, a, F, u, D)
                        dT += F_adj
                    dT += dF @ active(activation, e, w, control, F)
                else:
                    dT += dF @ c.S
        return dT

    name = "_".join(["elastic", *(law.name for law in laws[1:])])
    return Response(name, Elements, constants, stress, change)
