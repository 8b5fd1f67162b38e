"""Solids under the laws of `warpbots.materials`: tetrahedra, quadratic tetrahedra and hexahedra, and their dampers.

(Zienkiewicz, Taylor & Zhu 2013, "The finite element method".) Actuators add stresses, or change rest lengths.
"""

import functools

import warp as wp

from warpbots.materials import Law, differential, elasticity, lame_lambda, lame_mu, linear, numbers_type
from warpbots.numerics import real, vector
from warpbots.solvers.law_constants import pack_launches
from warpbots.solvers.law_groups import LawGroup
from warpbots.solvers.projective.elements.element import Kind, Point, element, row
from warpbots.solvers.projective.elements.generator.elastic import elastic
from warpbots.solvers.projective.elements.generator.energy import Energy
from warpbots.solvers.projective.elements.generator.family import Family
from warpbots.solvers.projective.elements.generator.kernels import forbid_kernel, measure_kernel
from warpbots.solvers.projective.elements.generator.kinds import blocks_of, damper_kind, element_kind
from warpbots.solvers.projective.elements.generator.rest import rest_of
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement

__all__ = ["MATTER", "matter_numbers", "solid_kinds"]

MATTER = {
    "youngs_modulus": real, "poissons_ratio": real, "density": real, "rest_position": vector(3),
}  # fmt: skip
"""Parameters of elements with a material."""


def matter_numbers(Arrays: type) -> wp.Function:
    """Warp function that returns Young's modulus E and Poisson's ratio nu of elements with a material."""

    @wp.func
    def numbers(elements: Arrays, control: wp.array2d[real], w: int, e: int):
        """E and nu."""
        k = element(elements.place, w, e)
        return elements.youngs_modulus[k], elements.poissons_ratio[k]

    return numbers


@wp.func
def modulus(nu: real):
    """max(2 mu + lambda, mu + 3/2 lambda) for E = 1.

    2 mu + lambda is the weight of projective dynamics. The other term is half of 2 mu + 3 lambda, the largest
    eigenvalue of the second derivative at rest; it is the larger term if Poisson's ratio is above 1/3.
    """
    mu = lame_mu(real(1.0), nu)
    lam = lame_lambda(real(1.0), nu)
    return wp.max(real(2.0) * mu + lam, mu + real(1.5) * lam)


@functools.cache
def _energy(law: Law, incompressibility: int) -> Energy:
    """The `Energy` of a material law."""
    density, _, stress = elasticity(law, incompressibility, 3)
    derivative = differential(law, incompressibility, 3)
    name, is_linear = f"{law.module}_{incompressibility}", law.definition is linear.law
    if not law.constants:
        return Energy(name, density, stress, modulus, derivative, is_linear)
    count, Numbers = len(law.constants), numbers_type(law)

    @wp.func
    def modulus_of_numbers(s: Numbers):
        """The modulus for nu = s[0]: at small strains, where it is the same for all constants."""
        return modulus(s[0])

    def numbers_of(Arrays: type) -> wp.Function:
        @wp.func
        def numbers_and_constants(elements: Arrays, control: wp.array2d[real], w: int, e: int):
            """E and (nu, c)."""
            k = element(elements.place, w, e)
            s = Numbers()
            s[0] = elements.poissons_ratio[k]
            for i in range(count):
                s[i + 1] = elements.constants[row(elements.place, w, e), i]
            return elements.youngs_modulus[k], s

        return numbers_and_constants

    numbers = functools.cache(numbers_of)
    return Energy(name, density, stress, modulus_of_numbers, derivative, is_linear, Numbers, numbers)


def _runs(_solids: object, model: object) -> list[tuple[Energy, int, int]]:
    """The energies of the laws, each with the range of solids that follow it."""
    groups: tuple[LawGroup, ...] = model.groups
    return [(_energy(g.law, g.incompressibility), g.first, g.count) for g in groups]


@functools.cache
def solid_kinds(reference: ReferenceElement) -> tuple[Kind, Kind]:
    """The kind of solids of a reference element, and the kind of their dampers."""
    points, nodes = reference.gradients.shape[:2]
    family = Family(reference.name, nodes, points, MATTER, matter_numbers, stressed=True, lawful=True)

    def measure(solids: object, model: object, point: Point, written: list[wp.array]) -> list[tuple]:
        at = [point.h, point.control, point.x, point.u, *written]
        return [
            (
                measure_kernel(family, energy, elastic(family, energy, model.active_laws)), (model.worlds, count),
                [solids, model.activation, first, *at],
            )
            for energy, first, count in _runs(solids, model)
        ]  # fmt: skip

    blocks = blocks_of(family, reference, modulus, "youngs_modulus", "poissons_ratio")
    shape, forbid = rest_of(family, reference), forbid_kernel(family)

    def rest(solids: object, model: object, control: wp.array) -> list[tuple]:
        constants = model.workspace.law_constants
        packed = pack_launches(model, constants) if constants is not None else []
        return [*packed, *shape(solids, model, control)]

    kind = element_kind(family, modulus, rest, _runs, blocks=blocks, measure=measure, forbid=forbid)
    return kind, damper_kind(family, blocks, _runs)
