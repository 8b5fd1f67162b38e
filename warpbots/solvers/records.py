"""Writes parameters of a model to the records of its scene, where file readers and other solvers find them.

A value that no record can hold, such as a friction that the record refuses or a stiffness that differs from element to
element, is stored in `Scene.fields` instead: see `warpbots.solvers.baking`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from warpbots.materials import law_of
from warpbots.scene import Material, Obstacle, RigidBody, Scene, SceneError, SoftBody

__all__ = [
    "changed", "number", "numbers", "with_actuators", "with_body_friction", "with_friction", "with_gravity",
    "with_materials",
]  # fmt: skip

Values = Mapping[str, np.ndarray]
"""Parameters by name, in the type of the model's arrays, each of shape (...) as in one world."""

_Record = TypeVar("_Record")


def number(value: np.floating, before: float = np.nan) -> float:
    """The number that a record gets for `value`.

    Args:
        value: The value of a parameter.
        before: The number in the record so far; NaN for none.

    Returns:
        `before` if it equals `value` after rounding to the type of `value`; otherwise the shortest decimal that does.
    """
    return before if value.dtype.type(before) == value else float(str(value))


def numbers(values: np.ndarray, before: object) -> tuple[float, ...]:
    """The numbers that a record gets for a row of values, each by `number`."""
    return tuple(number(v, b) for v, b in zip(values, np.broadcast_to(before, values.shape), strict=True))


def changed(part: _Record, **fields: object) -> _Record:
    """A copy of the record `part` with new values of `fields`; `part` itself if the record refuses the values."""
    try:
        return dataclasses.replace(part, **fields)
    except SceneError:
        return part


def with_gravity(scene: Scene, values: Values) -> Scene:
    """A copy of `scene` with the gravity in `values`; `scene` itself if `values` has no gravity."""
    if "gravity" not in values:
        return scene
    return dataclasses.replace(scene, gravity=numbers(values["gravity"], scene.gravity))


def with_friction(scene: Scene, values: Values) -> Scene:
    """`scene` with the friction of obstacles in `values`; static minus kinetic friction stays the same."""
    if "friction" not in values:
        return scene
    parts = zip(scene.obstacles, values["friction"], strict=True)
    return dataclasses.replace(scene, obstacles=[_rough(o, mu) if o.condition == "friction" else o for o, mu in parts])


def with_body_friction(scene: Scene, surfaces: Iterable[int], values: Values) -> Scene:
    """`scene` with the friction of bodies in `values`.

    Args:
        scene: The scene.
        surfaces: Indices, among the rigid bodies, of those with a coefficient; all soft bodies come before.
        values: Parameters by name.
    """
    if "body_friction" not in values:
        return scene
    soft = [i for i, b in enumerate(scene.bodies) if isinstance(b, SoftBody)]
    rigid = [i for i, b in enumerate(scene.bodies) if isinstance(b, RigidBody)]
    bodies = list(scene.bodies)
    for i, mu in zip([*soft, *(rigid[k] for k in surfaces)], values["body_friction"], strict=True):
        bodies[i] = changed(bodies[i], friction=number(mu, bodies[i].friction))
    return dataclasses.replace(scene, bodies=bodies)


def _rough(obstacle: Obstacle, value: np.floating) -> Obstacle:
    mu, rest = number(value, obstacle.friction), obstacle.static_friction
    return changed(obstacle, friction=mu, static_friction=None if rest is None else mu + (rest - obstacle.friction))


def with_actuators(scene: Scene, cls: type, fields: Mapping[str, str], values: Values) -> Scene:
    """`scene` with new values for its actuators of one class, one entry of a parameter for each actuator.

    Args:
        scene: The scene.
        cls: Class of the actuators.
        fields: Names of the fields of the class by names of the parameters.
        values: The parameters.
    """
    parts, k = list(scene.actuators), 0
    for i, part in enumerate(parts):
        if isinstance(part, cls):
            for name in fields.keys() & values.keys():
                parts[i] = changed(parts[i], **{fields[name]: number(values[name][k], getattr(part, fields[name]))})
            k += 1
    return dataclasses.replace(scene, actuators=parts)


def with_materials(scene: Scene, of: np.ndarray, regions: Mapping[str, np.ndarray], values: Values) -> Scene:
    """`scene` with new materials for the bodies whose values are uniform in each region.

    Args:
        scene: The scene.
        of: Index of the body of each of n points or elements, shape (n,), int.
        regions: Whether each of them is in a region, by the name of the region, each of shape (n,), bool.
        values: Parameters of the points or elements by name; parameters that are not fields of a `Material`, of its
            plasticity, or constants of its law are ignored.
    """
    bodies = list(scene.bodies)
    for i, body in enumerate(bodies):
        if isinstance(body, SoftBody):
            inside = of == i
            own = {name: values[name][inside] for name in _numbers_of(body.material) & values.keys()}
            if own:
                bodies[i] = _filled(body, {name: regions[name][inside] for name in body.regions}, own)
    return dataclasses.replace(scene, bodies=bodies)


def _filled(body: SoftBody, regions: dict[str, np.ndarray], values: Values) -> SoftBody:
    """The body with new materials; the same body unless `values` are uniform in each region and outside all regions."""
    last = np.full(len(next(iter(values.values()))), -1)  # the last of overlapping regions applies
    for k, inside in enumerate(regions.values()):
        last[inside] = k
    materials = {}
    for k, name in enumerate([None, *regions], start=-1):
        material = body.region_materials.get(name, body.material)
        part = {parameter: np.unique(v[last == k]) for parameter, v in values.items()}
        if max(map(len, part.values())) > 1:
            return body
        materials[name] = _with_numbers(material, {p: v[0] for p, v in part.items() if len(v)})
    plain = materials.pop(None)
    return changed(body, material=plain, region_materials={n: m for n, m in materials.items() if m != plain})


def _numbers_of(material: Material) -> set[str]:
    """Names of the fields of a material, of its plasticity, and of constants of its law, that may be parameters."""
    return {*vars(material), *(vars(material.plasticity) if material.plasticity else ()), *_constants_of(material)}


def _constants_of(material: Material) -> set[str]:
    """Names of the constants of the law of a material."""
    return {constant.name for constant in law_of(material.law).constants}


def _with_numbers(material: Material, values: Mapping[str, np.floating]) -> Material:
    """A material with new values of the fields and constants that `_numbers_of` lists."""
    plasticity, constants = material.plasticity, dict(material.constants)
    of_law = values.keys() & _constants_of(material)
    constants |= {name: number(values[name], constants.get(name, np.nan)) for name in of_law}
    of_plasticity = values.keys() - vars(material) - of_law
    if of_plasticity:
        own = {name: number(values[name], getattr(plasticity, name)) for name in of_plasticity}
        plasticity = changed(plasticity, **own)
    elastic = {name: number(v, getattr(material, name)) for name, v in values.items() if name in vars(material)}
    return changed(material, plasticity=plasticity, constants=constants, **elastic)
