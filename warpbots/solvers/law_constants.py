"""Constants of laws as parameters of a model: named arrays, and the packed array that the kernels of laws read.

A constant is a parameter under its own name, with the unit and range that its law declares. Before each step the
constants of every particle or element are packed into one row, in the order of the vector c of its law.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Self

import numpy as np
import warp as wp

from warpbots.materials import Law, LawConstant, check_law, constant_values, functions_of, law_of
from warpbots.numerics import launch, launch_own_adjoint, real
from warpbots.numerics.parameters import Parameter
from warpbots.scene import Material, Scene, SceneError
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.law_groups import LawGroup

__all__ = [
    "HasLawConstants", "constants_in_words", "declared_constants", "law_constants_at", "law_in_words", "most_constants",
    "pack", "pack_launches", "refuse_constants", "refuse_taken_names", "check_laws", "unpack_adjoint",
]  # fmt: skip


def refuse_constants(scene: Scene) -> None:
    """Raise if a material has constants that its law does not have, lacks constants, or has values out of range.

    Raises:
        SceneError: There is such a material, a law returns other Warp functions than it declares, or two laws declare
            one name with different units or ranges.
    """

    def refuse(law: Law, material: Material) -> None:
        functions_of(law, scene.dim)
        constant_values(law.name, law.constants, material.constants)

    _for_each_law(scene, refuse)
    declared_constants(scene)


def check_laws(scene: Scene, second: bool) -> None:
    """Raise if energy, stresses and derivatives of the law of a material do not agree; see `check_law`.

    Args:
        scene: The scene, whose materials have the constants of their laws.
        second: Whether the solver needs second derivatives of the energy.

    Raises:
        SceneError: The functions of a law do not agree.
    """

    def refuse(law: Law, material: Material) -> None:
        values = constant_values(law.name, law.constants, material.constants)
        check_law(law, scene.dim, material.youngs_modulus, values, second)

    _for_each_law(scene, refuse)


def _for_each_law(scene: Scene, refuse: Callable[[Law, Material], None]) -> None:
    """Call a check with the law of each material; its error names body and region."""
    for body in scene.soft:
        for region, material in zip([None, *body.region_materials], body.materials, strict=True):
            try:
                refuse(law_of(material.law), material)
            except SceneError as fault:
                where = f"SoftBody {body.name!r}" + (f", region {region!r}" if region else "")
                raise SceneError(f"{where}: {fault}") from None


def refuse_taken_names(solver: str, scene: Scene, model: type, others: Iterable[str] = ()) -> None:
    """Raise if a constant of a law has the name of another parameter of a solver.

    Args:
        solver: Name of the solver.
        scene: The scene.
        model: Class of the models of the solver; the names of its fields are names of parameters.
        others: Names of parameters that are not fields.

    Raises:
        SceneError: There is such a constant; the message names the first.
    """
    taken = {*others, *(field.name for field in dataclasses.fields(model))}
    for body in scene.soft:
        for c in law_of(body.material.law).constants:
            if c.name in taken:
                raise SceneError(
                    f"SoftBody {body.name!r}: law {body.material.law!r} has a constant {c.name!r}, which is the name "
                    f"of a parameter of {solver}; give the constant another name"
                )


def declared_constants(scene: Scene) -> dict[str, LawConstant]:
    """The constants of all laws of the materials in `scene`, by name.

    Raises:
        SceneError: Two laws declare one name with different units or ranges.
    """
    found, owner = {}, {}
    for law in dict.fromkeys(body.material.law for body in scene.soft):
        for c in law_of(law).constants:
            first = found.setdefault(c.name, c)
            owner.setdefault(c.name, law)
            if (c.unit, c.range) != (first.unit, first.range):
                raise SceneError(
                    f"laws {owner[c.name]!r} and {law!r} both have a constant {c.name!r}, in {first.range} and "
                    f"{c.range} [{first.unit} and {c.unit}]; as it is one parameter of a model, give one another name"
                )
    return found


def law_constants_at(scene: Scene, materials: Iterable[Material]) -> dict[str, np.ndarray]:
    """Values of all constants of the laws of a scene at points of matter, by name, each of shape (n,).

    A point whose law does not have a constant gets the value of a material that has it; this has no effect.

    Args:
        scene: The scene.
        materials: The material of each of the n points.
    """
    values = [_named(m) for m in materials]
    of_scene = [_named(m) for body in scene.soft for m in body.materials]
    fill = {name: next(v[name] for v in of_scene if name in v) for name in declared_constants(scene)}
    return {name: np.array([v.get(name, other) for v in values], dtype=float) for name, other in fill.items()}


def _named(material: Material) -> dict[str, float]:
    """The values of all constants of the law of a material by name, defaults included."""
    declared = law_of(material.law).constants
    values = constant_values(material.law, declared, material.constants)
    return {c.name: value for c, value in zip(declared, values, strict=True)}


def most_constants(groups: Iterable[LawGroup]) -> int:
    """Largest number of constants that the law of a group has."""
    return max((len(group.law.constants) for group in groups), default=0)


def constants_in_words(material: Material) -> str:
    """The constants of the law of a material with their values and units, defaults included, as text."""
    values = _named(material)
    units = {c.name: "" if c.unit == "1" else f" {c.unit}" for c in law_of(material.law).constants}
    return ", ".join(f"{name} {value:.4g}{units[name]}" for name, value in values.items())


def law_in_words(material: Material) -> str:
    """The law of a material with its constants, as text."""
    values = constants_in_words(material)
    return f"law {material.law!r}" + (f" with {values}" if values else "")


class HasLawConstants(ArrayModel):
    """A model whose constants of laws are parameters.

    Attributes:
        groups: Groups of particles or elements by law.
        law_constants: The constants of the laws of the scene by name, each of shape (worlds, n).
    """

    groups: tuple[LawGroup, ...]
    law_constants: Mapping[str, wp.array]

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""
        return self.law_constants[name] if name in self.law_constants else super().parameter(name)

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy in which `arrays`, by name of the parameter, replace the arrays of these parameters."""
        own = {name: array for name, array in arrays.items() if name in self.law_constants}
        rest = {name: array for name, array in arrays.items() if name not in own}
        return super().with_parameters(rest | ({"law_constants": {**self.law_constants, **own}} if own else {}))

    def law_parameters(self, per: str) -> dict[str, Parameter]:
        """The constants as parameters, by name; `per` names the kind of the particles or elements."""
        return {
            c.name: Parameter(c.unit, c.lower, c.upper, per, f"{c.symbol}, {c.doc}", c.inclusive, intensive=True)
            for c in declared_constants(self.scene).values()
        }


@wp.kernel
def pack_kernel(
    # model
    values: wp.array2d[real],
    first: int,
    rows: int,
    column: int,
    # out
    packed_out: wp.array2d[real],
):
    """Copy a constant of the particles or elements of a group to a column of their rows."""
    w, n = wp.tid()
    packed_out[w * rows + first + n, column] = values[w, first + n]


def pack_launches(model: HasLawConstants, packed: wp.array) -> list[tuple]:
    """Launches (kernel, dim, inputs) that write the constants of all groups to `packed`.

    Args:
        model: The model; its groups count from the first particle or element.
        packed: Constants of each particle or element that is in a group, in the order of the vector c of its law, shape
            (worlds * n, most_constants(groups)).
    """
    rows = packed.shape[0] // model.worlds
    return [
        (pack_kernel, (model.worlds, g.count), [model.law_constants[c.name], g.first, rows, column, packed])
        for g in model.groups
        for column, c in enumerate(g.law.constants)
    ]


def pack(model: HasLawConstants, packed: wp.array | None) -> None:
    """Write the constants of all groups to `packed`, see `pack_launches`; None for a model without constants."""
    for kernel, dim, inputs in pack_launches(model, packed) if packed is not None else ():
        launch(kernel, dim, inputs, [], model.device)


def unpack_adjoint(model: HasLawConstants, packed: wp.array | None) -> None:
    """Add the gradients of `packed` to the gradients of the constants."""
    for kernel, dim, inputs in pack_launches(model, packed) if packed is not None else ():
        launch_own_adjoint(kernel, dim, inputs, model.device)
