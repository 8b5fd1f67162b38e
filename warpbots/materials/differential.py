"""The differential of the stress of a material: dP = dP/dF : dF, in closed form if its law has one."""

import functools

import warp as wp

from warpbots.materials.elasticity import (
    Law,
    arguments_of,
    constants_of,
    elasticity,
    law_of,
    numbers_type,
    of_poissons_ratio,
)
from warpbots.materials.incompressible import incompressible_differential
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import matrix, real, wrong_arguments
from warpbots.scene import SceneError

__all__ = ["differential"]


def differential(law: str | Law, incompressibility: int, dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, E, s) that fills it, and dP(point, dF) [Pa].

    `elasticity` explains the argument s. P is the first Piola-Kirchhoff stress. A law without a closed form of dP is
    differentiated by Warp: because dP/dF is symmetric, dP/dF : dF is the gradient of dF : P with respect to F.

    Args:
        law: The law, or its name; a name means the law that was registered last under this name.
        incompressibility: Even exponent of the added volumetric energy; 0 for no added energy.
        dim: 2 or 3.

    Raises:
        ValueError: There is no such law.
        SceneError: The closed form of the law does not consist of a struct and these functions.
    """
    return _differential(law_of(law) if isinstance(law, str) else law, incompressibility, dim)


@functools.cache
def _differential(law: Law, incompressibility: int, dim: int) -> tuple[type, wp.Function, wp.Function]:
    if law.differential is None:
        return _generated(law, incompressibility, dim)
    mat, Numbers = matrix(dim), numbers_type(law)
    LawPoint, law_point, law_differential = _closed_form(law, dim)
    point_of = _point_of(law, law_point, dim)
    if incompressibility == 0:
        return LawPoint, point_of, law_differential
    VolumetricPoint, of_volume, volumetric_differential = incompressible_differential(dim, incompressibility)
    volumetric_point = of_poissons_ratio(law, of_volume, dim)

    @wp.struct
    class StiffenedPoint:
        """The terms of dP of the base law and of the volumetric energy.

        law: Terms of the base law.
        volumetric: Terms of the volumetric energy.
        """

        law: LawPoint
        volumetric: VolumetricPoint

    @wp.func
    def stiffened_point(F: mat, E: real, s: Numbers):
        """The terms of dP at F of the base law and of the volumetric energy."""
        point = StiffenedPoint()
        point.law = point_of(F, E, s)
        point.volumetric = volumetric_point(F, E, s)
        return point

    @wp.func
    def stiffened_differential(point: StiffenedPoint, dF: mat):
        """dP of the base law plus dP of the volumetric energy."""
        return law_differential(point.law, dF) + volumetric_differential(point.volumetric, dF)

    return StiffenedPoint, stiffened_point, stiffened_differential


def _closed_form(law: Law, dim: int) -> tuple[type, wp.Function, wp.Function]:
    """The struct and the two functions that the `differential` of a law returns for a dimension.

    Raises:
        SceneError: It returns something else.
    """
    found, names = law.differential(dim), ("function that fills the struct", "function dP")
    if not isinstance(found, tuple) or len(found) != 3 or not isinstance(found[0], wp._src.codegen.Struct):
        raise SceneError(
            f"law {law.name!r}: its differential must return a Warp struct and two Warp functions, the "
            f"{' and the '.join(names)}; got {found!r}"
        )
    for name, function, expected in zip(
        names, found[1:], (arguments_of(law, dim), {"point": found[0], "dF": matrix(dim)}), strict=True
    ):
        if fault := wrong_arguments(function, **expected):
            raise SceneError(f"law {law.name!r}: in its differential the {name} {fault}")
    return found


def _point_of(law: Law, law_point: wp.Function, dim: int) -> wp.Function:
    """`law_point`, a function of (F, mu, lambda) or, with own constants c, (F, mu, lambda, c), as one of (F, E, s)."""
    mat = matrix(dim)

    @wp.func
    def point_of(F: mat, E: real, nu: real):
        """The terms of dP of the base law, with Lamé's constants computed from E and nu."""
        return law_point(F, lame_mu(E, nu), lame_lambda(E, nu))

    if not law.constants:
        return point_of
    Numbers, constants = numbers_type(law), constants_of(law)

    @wp.func
    def point_of_numbers(F: mat, E: real, s: Numbers):
        """The terms of dP of the base law, with Lamé's constants computed from E and nu, and its own constants."""
        return law_point(F, lame_mu(E, s[0]), lame_lambda(E, s[0]), constants(s))

    return point_of_numbers


def _generated(law: Law, incompressibility: int, dim: int) -> tuple[type, wp.Function, wp.Function]:
    """The result of `differential` for a law without a closed form, by Warp's derivative of the stress."""
    law = law_of(law) if isinstance(law, str) else law
    mat, Numbers = matrix(dim), numbers_type(law)
    _, _, piola = elasticity(law, incompressibility, dim)

    @wp.struct
    class GeneratedPoint:
        """The arguments of the stress; Warp differentiates the stress.

        F: Deformation gradient F.
        E: Young's modulus E [Pa].
        s: Poisson's ratio nu [1], or the vector (nu, c).
        """

        F: mat
        E: real
        s: Numbers

    @wp.func
    def generated_point(F: mat, E: real, s: Numbers):
        """The arguments of the stress at F."""
        point = GeneratedPoint()
        point.F = F
        point.E = E
        point.s = s
        return point

    @wp.func
    def pull(F: mat, E: real, s: Numbers, dF: mat):
        """dF : P."""
        return wp.ddot(dF, piola(F, E, s))

    @wp.func
    def generated_differential(point: GeneratedPoint, dF: mat):
        """The gradient of dF : P with respect to F."""
        dP, _E, _s, _dF = wp.grad(pull)(point.F, point.E, point.s, dF)
        return dP

    return GeneratedPoint, generated_point, generated_differential
