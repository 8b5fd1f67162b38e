"""The elasticity of a material: its law plus its added volumetric energy, in terms of E and nu."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

import warp as wp

from warpbots.materials.incompressible import incompressible
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.materials.law_constants import CONSTANTS, LawConstant
from warpbots.numerics import matrix, real, wrong_arguments
from warpbots.scene import SceneError

__all__ = [
    "DIFFERENTIALS", "FLUIDS", "LAWS", "Law", "arguments_of", "constants_of", "elasticity", "functions_of", "kept_laws",
    "law_of", "numbers_type", "of_poissons_ratio", "p_wave_modulus",
]  # fmt: skip

Definition = Callable[[int], tuple[wp.Function, wp.Function, wp.Function]]
Differential = Callable[[int], tuple[type, wp.Function, wp.Function]]

LAWS: dict[str, Definition] = {}
"""The laws by name: each is a function of the dimension that returns Psi, tau and P as functions of (F, mu, lambda).

A law with constants of its own declares these constants (`with_constants`); the functions of the law take a vector of
the constants as last argument.
"""

DIFFERENTIALS: dict[Definition, Differential] = {}
"""Closed forms of dP, by value of `LAWS`.

Each is a function of the dimension that returns a Warp struct of the terms of dP at F, the function of (F, mu, lambda)
that fills it, and dP(point, dF). For a law with constants of its own, the function that fills the struct takes the
vector of the constants, too.
"""

FLUIDS = ("weakly_compressible",)
"""Laws of fluids, whose shear deformation is reset after each step; with `MPM` only."""

_Parts = tuple[Definition, Differential | None, tuple[LawConstant, ...]]

_REGISTERED: dict[str, list[_Parts]] = {}
"""Laws that have been registered under each name, in the order of their first use."""

_kept: ContextVar[Mapping[str, "Law"]] = ContextVar("kept laws", default=MappingProxyType({}))


class Law(NamedTuple):
    """A snapshot of a registered law. Kernels are made for a snapshot: a later registration leads to new kernels.

    Attributes:
        name: Name of the law, a key of `LAWS`.
        module: Part of the names of the Warp modules with the kernels of the law; laws that were registered under the
            same name differ in it.
        definition: Entry of the law in `LAWS`: the function that makes the Warp functions of the law.
        differential: Entry of the law in `DIFFERENTIALS`; None for a law without a closed form of dP.
        constants: Constants of the law in addition to E and nu.
    """

    name: str
    module: str
    definition: Definition
    differential: Differential | None
    constants: tuple[LawConstant, ...]


@contextlib.contextmanager
def kept_laws(laws: Mapping[str, Law]) -> Iterator[None]:
    """Context in which `law_of` returns `laws`, by name, whatever has been registered since."""
    token = _kept.set(laws)
    try:
        yield
    finally:
        _kept.reset(token)


def law_of(name: str) -> Law:
    """The law that was registered last under a name, or the one of `kept_laws`.

    Raises:
        ValueError: There is no such law, or its differential or constants are registered by its name.
    """
    if name in (kept := _kept.get()):
        return kept[name]
    if name not in LAWS:
        raise ValueError(f"Material: law must be one of {', '.join(LAWS)}, got {name!r}")
    for table, keys in (("DIFFERENTIALS", DIFFERENTIALS), ("CONSTANTS", CONSTANTS)):
        if name in keys:
            raise ValueError(f"{table}[{name!r}]: the key must be the definition of the law, LAWS[{name!r}]")
    parts = LAWS[name], DIFFERENTIALS.get(LAWS[name]), CONSTANTS.get(LAWS[name], ())
    registered = _REGISTERED.setdefault(name, [])
    if parts not in registered:
        registered.append(parts)
    number = registered.index(parts)
    return Law(name, f"{name}_{number + 1}" if number else name, *parts)


@functools.cache
def functions_of(law: Law, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi, tau and P of a law as its definition returns them: of (F, mu, lambda), and c if it has constants c.

    Raises:
        SceneError: The definition returns something else.
    """
    found, names = law.definition(dim), ("energy Psi", "Kirchhoff stress tau", "first Piola-Kirchhoff stress P")
    if not isinstance(found, tuple) or len(found) != len(names):
        raise SceneError(f"law {law.name!r} must return three Warp functions: {', '.join(names)}; got {found!r}")
    declared = f"c holds the constants in with_constants, {', '.join(c.name for c in law.constants)}" if (
        law.constants
    ) else "an argument c needs constants declared by with_constants"  # fmt: skip
    for name, function in zip(names, found, strict=True):
        if fault := wrong_arguments(function, **arguments_of(law, dim)):
            raise SceneError(f"law {law.name!r}: its {name} {fault}; {declared}")
    return found


def arguments_of(law: Law, dim: int) -> dict[str, type]:
    """Types of the arguments of Psi, tau and P of a law by name: F, mu, lambda, and c if the law has constants."""
    count = len(law.constants)
    numbers = {"c": wp.types.vector(count, real)} if count else {}
    return {"F": matrix(dim), "mu": real, "lam": real, **numbers}


def numbers_type(law: Law) -> type:
    """Warp type of the argument s of a law: Poisson's ratio nu, or the vector (nu, c) if the law has constants c."""
    return wp.types.vector(1 + len(law.constants), real) if law.constants else real


def constants_of(law: Law) -> wp.Function:
    """Warp function s -> c for a law with constants c of its own."""
    count = len(law.constants)
    Numbers, Constants = numbers_type(law), wp.types.vector(count, real)

    @wp.func
    def own_constants(s: Numbers):
        """The constants c of s = (nu, c)."""
        c = Constants()
        for k in range(count):
            c[k] = s[k + 1]
        return c

    return own_constants


def of_poissons_ratio(law: Law, function: wp.Function, dim: int) -> wp.Function:
    """Turn `function`, with the arguments (F, E, nu), into a function of (F, E, s)."""
    if not law.constants:
        return function
    mat, Numbers = matrix(dim), numbers_type(law)

    @wp.func
    def of_numbers(F: mat, E: real, s: Numbers):
        """The function at nu = s[0]."""
        return function(F, E, s[0])

    return of_numbers


def elasticity(law: str | Law, incompressibility: int, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Energy density Psi(F, E, s), Kirchhoff stress tau = dPsi/dF F^T, first Piola-Kirchhoff stress P = dPsi/dF [Pa].

    The argument s is Poisson's ratio nu or, for a law with constants c of its own, the vector (nu, c), see
    `numbers_type`.

    Args:
        law: The law, or its name; a name means the law that was registered last under this name.
        incompressibility: Even exponent of the added volumetric energy; 0 for no added energy.
        dim: 2 or 3.

    Raises:
        ValueError: There is no such law.
    """
    return _elasticity(law_of(law) if isinstance(law, str) else law, incompressibility, dim)


@functools.cache
def _elasticity(law: Law, incompressibility: int, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    energy, stress, piola = _with_own_constants(law, dim) if law.constants else _without_constants(law, dim)
    mat, Numbers = matrix(dim), numbers_type(law)
    if incompressibility == 0:
        return energy, stress, piola

    volumetric_energy, volumetric_stress, volumetric_piola = (
        of_poissons_ratio(law, function, dim) for function in incompressible(dim, incompressibility)
    )

    @wp.func
    def stiffened_energy(F: mat, E: real, s: Numbers):
        """Psi of the base law plus Psi of the volumetric energy."""
        return energy(F, E, s) + volumetric_energy(F, E, s)

    @wp.func
    def stiffened_stress(F: mat, E: real, s: Numbers):
        """Kirchhoff stress tau of the base law plus tau of the volumetric energy."""
        return stress(F, E, s) + volumetric_stress(F, E, s)

    @wp.func
    def stiffened_piola(F: mat, E: real, s: Numbers):
        """P of the base law plus P of the volumetric energy."""
        return piola(F, E, s) + volumetric_piola(F, E, s)

    return stiffened_energy, stiffened_stress, stiffened_piola


def _without_constants(law: Law, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi, tau and P of (F, E, nu)."""
    law_energy, law_stress, law_piola = functions_of(law, dim)
    mat = matrix(dim)

    @wp.func
    def energy(F: mat, E: real, nu: real):
        """Psi of the base law, with Lamé's constants computed from E and nu."""
        return law_energy(F, lame_mu(E, nu), lame_lambda(E, nu))

    @wp.func
    def stress(F: mat, E: real, nu: real):
        """Kirchhoff stress tau of the base law, with Lamé's constants computed from E and nu."""
        return law_stress(F, lame_mu(E, nu), lame_lambda(E, nu))

    @wp.func
    def piola(F: mat, E: real, nu: real):
        """P of the base law, with Lamé's constants computed from E and nu."""
        return law_piola(F, lame_mu(E, nu), lame_lambda(E, nu))

    return energy, stress, piola


def _with_own_constants(law: Law, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi, tau and P of (F, E, s), with s = (nu, c)."""
    law_energy, law_stress, law_piola = functions_of(law, dim)
    mat, Numbers, constants = matrix(dim), numbers_type(law), constants_of(law)

    @wp.func
    def energy(F: mat, E: real, s: Numbers):
        """Psi of the base law, with Lamé's constants computed from E and nu, and its own constants."""
        return law_energy(F, lame_mu(E, s[0]), lame_lambda(E, s[0]), constants(s))

    @wp.func
    def stress(F: mat, E: real, s: Numbers):
        """Kirchhoff stress tau of the base law, with Lamé's constants computed from E and nu, and its own constants."""
        return law_stress(F, lame_mu(E, s[0]), lame_lambda(E, s[0]), constants(s))

    @wp.func
    def piola(F: mat, E: real, s: Numbers):
        """P of the base law, with Lamé's constants computed from E and nu, and its own constants."""
        return law_piola(F, lame_mu(E, s[0]), lame_lambda(E, s[0]), constants(s))

    return energy, stress, piola


def p_wave_modulus(E: float, nu: float, incompressibility: int) -> float:
    """P-wave modulus M of undeformed matter [Pa]; compression waves have the speed sqrt(M / rho).

    M = E (1 - nu) / ((1 + nu) (1 - 2 nu)) for every law, plus 2 K, with the bulk modulus K, for an added
    incompressibility with exponent 2; higher exponents add no stiffness at J = 1.
    """
    modulus = E * (1.0 - nu) / ((1.0 + nu) * (1.0 - 2.0 * nu))
    return modulus + (2.0 * E / (3.0 * (1.0 - 2.0 * nu)) if incompressibility == 2 else 0.0)
