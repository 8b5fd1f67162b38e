"""Laws of stress actuators: their stress as a function of deformation, control signal and constants.

An actuator adds F S(F, u, c) F^T to the Kirchhoff stress of the matter that it drives: S is a second Piola-Kirchhoff
stress, given in the undeformed body, F the deformation gradient, u the control signal, and c are constants of the
actuator (ChainQueen eq. 15, read as in its eq. A69: it adds F sigma to P). A positive S pulls matter together.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from warpbots.actuation_laws.contraction import contraction
from warpbots.numerics import matrix, real, vector
from warpbots.scene import Actuator, DielectricElastomer, Muscle, Pressure

__all__ = ["StressFunction", "acts_as_stress", "ideal_dielectric", "proportional", "stress_law"]

StressFunction = Callable[[int], wp.Function]
"""A function of the dimension that returns S(F, u, c) as a Warp function."""

_VACUUM = 8.8541878128e-12
"""Permittivity of the vacuum [F/m]."""


@functools.singledispatch
def stress_law(actuator: Actuator, dim: int) -> tuple[StressFunction, ArrayLike]:
    """The law of a stress actuator, and its constants.

    Register a function for your own class with ``@stress_law.register``. It returns a function of the dimension that
    makes the Warp function S(F, u, c) [Pa], and the constants c: a number, a vector or a matrix, which the Warp
    function gets as `real`, `vector(n)` or `matrix(dim)` of `warpbots.numerics`. S must be symmetric and a smooth
    function of F and u; Warp differentiates it, so that it may contain no loop over more than three passes. Kernels are
    made once for each law, whatever the constants.

    Raises:
        TypeError: The actuator does not act as a stress.
    """
    raise TypeError(f"{type(actuator).__name__} is not a stress actuator; register its law with stress_law")


def acts_as_stress(actuator: Actuator) -> bool:
    """Whether an actuator acts as a stress: a `stress_law` is registered for its class or a base class."""
    return stress_law.dispatch(type(actuator)) is not stress_law.dispatch(object)


def proportional(dim: int) -> wp.Function:
    """S = u c, with the stress c at u = 1."""
    mat = matrix(dim)

    @wp.func
    def stress(F: mat, u: real, c: mat):
        """u c."""
        return u * c

    return stress


@stress_law.register
def _(actuator: Pressure, dim: int) -> tuple[StressFunction, ArrayLike]:
    return proportional, -actuator.max_pressure * np.eye(dim)


@stress_law.register
def _(actuator: Muscle, dim: int) -> tuple[StressFunction, ArrayLike]:
    return proportional, actuator.max_stress * np.outer(actuator.direction, actuator.direction)


def ideal_dielectric(dim: int) -> wp.Function:
    """Maxwell's stress of an ideal dielectric in a field E = u F^-T E_0 that follows the electrodes.

        tau = J eps (E E^T - |E|^2/2 I),   Psi = -J eps/2 |E|^2,   c = sqrt(eps) E_0

    with J = det F, the permittivity eps [F/m], and the field E_0 in the undeformed body at u = 1 [V/m] (Suo 2010,
    "Theory of dielectric elastomers"; Zhao and Suo 2007). Incompressible matter is deformed as if the pressure eps
    |E|^2 acted on
    the electrodes (Pelrine, Kornbluh and Joseph 1998): the two stresses differ by a pressure on all sides.
    """
    vec, mat = vector(dim), matrix(dim)

    @wp.func
    def stress(F: mat, u: real, c: vec):
        """J (D D^T - |E|^2/2 C^-1), E = u F^-T c, D = F^-1 E, C^-1 = F^-1 F^-T."""
        G = wp.inverse(F)
        E = u * (wp.transpose(G) @ c)
        D = G @ E
        return wp.determinant(F) * (wp.outer(D, D) - real(0.5) * wp.dot(E, E) * (G @ wp.transpose(G)))

    return stress


@stress_law.register
def _(actuator: DielectricElastomer, dim: int) -> tuple[StressFunction, ArrayLike]:
    permittivity = _VACUUM * actuator.relative_permittivity
    return ideal_dielectric, math.sqrt(permittivity) * actuator.max_field * np.array(actuator.direction)


@contraction.register
def _(actuator: DielectricElastomer, signal: float) -> float:
    return signal**2
