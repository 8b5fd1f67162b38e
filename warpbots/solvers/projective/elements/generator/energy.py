"""Energy densities of F, and the response of elements to their stress."""

import dataclasses
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.numerics import real
from warpbots.solvers.projective.elements.generator.family import Family, rows

__all__ = ["Energy", "Response", "derivative_of", "modulus_at", "one"]


@dataclasses.dataclass(frozen=True, eq=False)
class Energy:
    """An energy density that is proportional to a stiffness k [Pa] and depends on one more number s, or a vector s.

    Attributes:
        name: Part of the names of the Warp modules with its kernels, unique among the energies of the same elements.
        density: Psi(F, k, s) [Pa].
        stress: P(F, k, s) = dPsi/dF [Pa].
        modulus: w(s) as a Warp function: the weight of |F|^2 in the matrix of the global step, per k [1]. The iteration
            converges if it is nowhere below half of the second derivative.
        derivative: Warp struct of the quantities that dP needs, the function of (F, k, s) that returns this struct, and
            the function dP(struct, dF) [Pa]; None to differentiate P by Warp.
        linear: Whether P is linear in F.
        numbers_type: Type of s.
        numbers_of: Function of the struct of the elements: the Warp function (elements, control, w, e) of k and s; None
            to use `Family.numbers`.
    """

    name: str
    density: wp.Function
    stress: wp.Function
    modulus: wp.Function
    derivative: tuple[type, wp.Function, wp.Function] | None = None
    linear: bool = False
    numbers_type: type = real
    numbers_of: Callable[[type], wp.Function] | None = None

    def numbers(self, family: Family) -> wp.Function:
        """Warp function (elements, control, w, e) of k and s for elements of a family."""
        return self.numbers_of(family.arrays) if self.numbers_of else family.numbers


@dataclasses.dataclass(frozen=True, eq=False)
class Response:
    """How the stress T of elements follows from the stress P of an energy and from F, as Warp functions.

    Attributes:
        name: Part of the names of Warp modules.
        arrays: Type of the struct `own`: the elements, or the dampers of the elements.
        constants: Function (own, elements, activation, h, control, w, e): a struct of numbers that are the same at all
            points of an element, with k and s of its energy.
        stress: Function (own, activation, control, w, e, P, F, constants, q): T at point q [Pa].
        change: Function (own, activation, control, w, e, dP, dF, F, constants, q): change dT of T with dP and dF [Pa].
            If dT/dF is not symmetric, it is the product with the transpose, which adjoints need.
    """

    name: str
    arrays: type
    constants: wp.Function
    stress: wp.Function
    change: wp.Function


@wp.func
def one(s: real):
    """`Energy.modulus` of energies with no second derivative above k."""
    return real(1.0)


def derivative_of(energy: Energy, m: int) -> tuple[type, wp.Function, wp.Function]:
    """`Energy.derivative` for F with m columns; differentiated by Warp if the energy gives none.

    As dP/dF is symmetric, dP/dF : dF is the gradient of dF : P.
    """
    if energy.derivative is not None:
        return energy.derivative
    mat, stress, Numbers = rows(3, m), energy.stress, energy.numbers_type

    @wp.struct
    class StressPoint:
        """Arguments of the stress.

        F: Deformation gradient F.
        k: Stiffness k [Pa].
        s: Second number s.
        """

        F: mat
        k: real
        s: Numbers

    @wp.func
    def point(F: mat, k: real, s: Numbers):
        """The arguments as a struct."""
        p = StressPoint()
        p.F = F
        p.k = k
        p.s = s
        return p

    @wp.func
    def pull(F: mat, k: real, s: Numbers, dF: mat):
        """dF : P."""
        return wp.ddot(dF, stress(F, k, s))

    @wp.func
    def differential(p: StressPoint, dF: mat):
        """The gradient of dF : P with respect to F."""
        dP, _k, _s, _dF = wp.grad(pull)(p.F, p.k, p.s, dF)
        return dP

    return StressPoint, point, differential


def modulus_at(modulus: Callable, s: np.ndarray) -> np.ndarray:
    """`Energy.modulus` on the host [1], evaluated only once for equal entries of `s`, shape (n,)."""
    values, number = np.unique(s, return_inverse=True)
    return np.array([float(modulus(real(value))) for value in values], dtype=float)[number]
