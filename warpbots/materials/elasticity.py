"""The elasticity of a material: its law plus its added volumetric energy, in terms of E and nu."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import warp as wp

from warpbots.materials.incompressible import incompressible
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import matrix, real

__all__ = ["DIFFERENTIALS", "FLUIDS", "LAWS", "Law", "elasticity", "law_of", "p_wave_modulus"]

Definition = Callable[[int], tuple[wp.Function, wp.Function, wp.Function]]
Differential = Callable[[int], tuple[type, wp.Function, wp.Function]]

LAWS: dict[str, Definition] = {}
"""The laws by name: each is a function of the dimension that returns Psi, tau and P as functions of (F, mu, lambda)."""

DIFFERENTIALS: dict[Definition, Differential] = {}
"""Closed forms of dP, by value of `LAWS`.

Each is a function of the dimension that returns a Warp struct of the terms of dP at F, the function of (F, mu, lambda)
that fills it, and dP(point, dF).
"""

FLUIDS = ("weakly_compressible",)
"""Laws of fluids, whose shear deformation is reset after each step; with `MPM` only."""

_REGISTERED: dict[str, list[tuple[Definition, Differential | None]]] = {}
"""Laws that have been registered under each name, in the order of their first use."""


class Law(NamedTuple):
    """A snapshot of a registered law. Kernels are made for a snapshot: a later registration leads to new kernels.

    Attributes:
        name: Its name, a key of `LAWS`.
        module: Part of the names of the modules of its kernels; it differs between laws that were registered under one
            name.
        definition: Its entry in `LAWS`, the function that makes its Warp functions.
        differential: Its entry in `DIFFERENTIALS`; None for a law without a closed form of dP.
    """

    name: str
    module: str
    definition: Definition
    differential: Differential | None


def law_of(name: str) -> Law:
    """The law that was registered last under a name.

    Raises:
        ValueError: There is no such law.
    """
    if name not in LAWS:
        raise ValueError(f"Material: law must be one of {', '.join(LAWS)}, got {name!r}")
    parts = LAWS[name], DIFFERENTIALS.get(LAWS[name])
    registered = _REGISTERED.setdefault(name, [])
    if parts not in registered:
        registered.append(parts)
    number = registered.index(parts)
    return Law(name, f"{name}_{number + 1}" if number else name, *parts)


def elasticity(law: str | Law, incompressibility: int, dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Energy density Psi(F, E, nu), Kirchhoff stress tau = dPsi/dF F^T, first Piola-Kirchhoff stress P = dPsi/dF [Pa].

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
    law_energy, law_stress, law_piola = law.definition(dim)
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

    if incompressibility == 0:
        return energy, stress, piola

    volumetric_energy, volumetric_stress, volumetric_piola = incompressible(dim, incompressibility)

    @wp.func
    def stiffened_energy(F: mat, E: real, nu: real):
        """Psi of the base law plus Psi of the volumetric energy."""
        return energy(F, E, nu) + volumetric_energy(F, E, nu)

    @wp.func
    def stiffened_stress(F: mat, E: real, nu: real):
        """Kirchhoff stress tau of the base law plus tau of the volumetric energy."""
        return stress(F, E, nu) + volumetric_stress(F, E, nu)

    @wp.func
    def stiffened_piola(F: mat, E: real, nu: real):
        """P of the base law plus P of the volumetric energy."""
        return piola(F, E, nu) + volumetric_piola(F, E, nu)

    return stiffened_energy, stiffened_stress, stiffened_piola


def p_wave_modulus(E: float, nu: float, incompressibility: int) -> float:
    """P-wave modulus M of undeformed matter [Pa]; compression waves have the speed sqrt(M / rho).

    M = E (1 - nu) / ((1 + nu) (1 - 2 nu)) for every law, plus 2 K for an added incompressibility with exponent 2;
    higher exponents add no stiffness at J = 1.
    """
    modulus = E * (1.0 - nu) / ((1.0 + nu) * (1.0 - 2.0 * nu))
    return modulus + (2.0 * E / (3.0 * (1.0 - 2.0 * nu)) if incompressibility == 2 else 0.0)
