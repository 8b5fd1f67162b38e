"""Kinds of elements and of their dampers, from families and energies."""

import functools
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActiveLaw, active_laws
from warpbots.numerics import real
from warpbots.solvers.projective.elements.element import Kind, Point, scaling_by
from warpbots.solvers.projective.elements.generator.damped import (
    begin_kernel,
    carried_type,
    damped,
    damper_arrays,
    damper_scaling_kernel,
)
from warpbots.solvers.projective.elements.generator.elastic import elastic
from warpbots.solvers.projective.elements.generator.energy import Energy, Response, modulus_at
from warpbots.solvers.projective.elements.generator.family import Family
from warpbots.solvers.projective.elements.generator.kernels import energy_kernel, force_kernel, stiffness_kernel
from warpbots.solvers.projective.elements.generator.rest import scaling_kernel
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement

__all__ = ["all_of", "blocks_of", "damper_kind", "element_kind"]

Runs = Callable[[object, object], list[tuple[Energy, int, int]]]
"""Function of (elements, model): energies, each with the first of the elements that have it, and their number."""


ResponseOf = Callable[[Energy, tuple[ActiveLaw, ...]], Response]
"""Function of an energy and of the laws of stress actuators: the response of elements."""


def element_kind(family: Family, modulus: wp.Function, rest: Callable, runs: Runs, **more: object) -> Kind:
    """The kind of the elements of a family.

    Args:
        family: The family.
        modulus: `Energy.modulus`, the same for all energies of the family.
        rest: `Kind.rest`.
        runs: Function of (elements, model): the energies, each with the range of elements that have it.
        more: Other fields of `Kind`.
    """

    def energy(elements: object, model: object, point: Point) -> list[tuple]:
        at = [point.control, point.x, point.u, model.workspace.energy]
        return [
            (energy_kernel(family, energy), (model.worlds, count), [elements, first, *at])
            for energy, first, count in runs(elements, model)
        ]

    forces, stiffness = _launches(family, functools.partial(elastic, family), runs)
    return Kind(
        name=family.name,
        arrays=family.arrays,
        node=family.node,
        points=family.points,
        rested={"gradient": family.gradients, "volume": real},
        rest=rest,
        forces=forces,
        stiffness=stiffness,
        matter=family if family.massive else None,
        scaling=scaling_by(scaling_kernel(family, modulus), driven=True),
        **{"energy": energy} | more,
    )


def damper_kind(family: Family, blocks: Callable, runs: Runs) -> Kind:
    """The kind of the dampers of a family; `blocks` is `Kind.blocks` of its elements, `runs` as in `element_kind`."""

    def begin(dampers: object, model: object, point: Point) -> list[tuple]:
        elements, at = model.of_kind(family.name), [point.h, point.control, point.x, model.workspace.zero, dampers]
        return [
            (begin_kernel(family, energy), (model.worlds, count, family.points), [dampers, elements, first, *at])
            for energy, first, count in runs(elements, model)
        ]

    forces, stiffness = _launches(family, lambda energy, _laws: damped(family, energy), runs)
    return Kind(
        name=f"damped_{family.name}",
        arrays=damper_arrays(family),
        node=family.node,
        points=family.points,
        rested={"carried": carried_type(family), "ratio": real},
        blocks=lambda mesh: mesh.damping[mesh.of(family.name)][:, None, None] * blocks(mesh),
        begin=begin,
        viscous=True,
        scaling=scaling_by(damper_scaling_kernel(family)),
        forces=forces,
        stiffness=stiffness,
    )


def all_of(energy: Energy) -> Runs:
    """`runs` for elements that all have the same energy."""
    return lambda elements, _model: [(energy, 0, elements.place.count)]


def _launches(family: Family, response_of: ResponseOf, runs: Runs) -> tuple[Callable, Callable]:
    """`Kind.forces` and `Kind.stiffness`."""

    def laws(model: object) -> tuple[ActiveLaw, ...]:
        return model.active_laws if family.stressed else active_laws((), 3)

    def forces(own: object, model: object, point: Point) -> list[tuple]:
        elements, at = model.of_kind(family.name), [point.h, point.active, point.control, point.x, point.u]
        return [
            (
                force_kernel(family, energy, response_of(energy, laws(model))), (model.worlds, count),
                [own, elements, model.activation, first, family.points, *at, model.workspace.force],
            )
            for energy, first, count in runs(elements, model)
        ]  # fmt: skip

    def stiffness(own: object, model: object, point: Point) -> list[tuple]:
        elements, at = model.of_kind(family.name), [point.h, point.control, point.x, point.u]
        return [
            (
                stiffness_kernel(family, energy, response_of(energy, laws(model))), (model.worlds, count),
                [own, elements, model.activation, first, *at, model.workspace.block],
            )
            for energy, first, count in runs(elements, model)
        ]  # fmt: skip

    return forces, stiffness


def blocks_of(
    family: Family, reference: ReferenceElement, modulus: wp.Function, k: str, s: str | None = None,
    size: str | None = None,
) -> Callable:  # fmt: skip
    """`Kind.blocks`: k w sum V G G^T, with the sum over points of quadrature.

    Args:
        family: The elements.
        reference: The reference element with the shape functions.
        modulus: w, as in `Energy.modulus`.
        k: Field of `Mesh` with k [Pa].
        s: Field of `Mesh` with s, None if w does not depend on s.
        size: Field of `Mesh` by which volumes are multiplied.
    """

    def blocks(mesh: object) -> np.ndarray:
        """k w sum V G G^T."""
        own = mesh.of(family.name) if family.massive else slice(None)
        stiff = getattr(mesh, k)[own]
        weight = stiff * modulus_at(modulus, getattr(mesh, s)[own] if s else np.ones_like(stiff))
        weight = weight * getattr(mesh, size) if size else weight
        return weight[:, None, None] * reference.products(mesh.position, getattr(mesh, family.name))

    return blocks
