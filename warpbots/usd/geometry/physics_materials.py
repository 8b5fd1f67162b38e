"""Reads and writes physics materials: elastic properties of bodies, and friction of obstacles."""

import dataclasses

from pxr import Usd, UsdShade

from warpbots.scene import FibreReinforcement, Material, MaxwellBranch, Plasticity, SceneError
from warpbots.usd.geometry.law_constants import read_constants, write_constants
from warpbots.usd.stage.applied_schemas import BODY_APIS, MATERIAL_APIS, PLASTICITY
from warpbots.usd.stage.attributes import apply, authored, get, put
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.ledger import mark_solid
from warpbots.usd.stage.schema import attributes_of, rows
from warpbots.usd.stage.units import StageUnits

__all__ = [
    "bind", "body_density", "bound_material", "direct_material", "read_density", "read_friction", "read_material",
    "read_restitution", "said_friction", "write_material", "write_surface",
]  # fmt: skip

_FIELDS = attributes_of(Material, "plasticity", "fibres", "branches", "constants")
_CONSTITUENTS = {"fibres": FibreReinforcement, "branches": MaxwellBranch}
"""Constituents of a composite material; each of their fields is stored as an array."""


def read_material(prim: Usd.Prim, frame: StageUnits, fallback: Material | None = None) -> Material:
    """The material bound to `prim` for physics, or for all purposes.

    Args:
        prim: Geometry of a body.
        frame: Units and axes of the stage.
        fallback: Material to use if the file gives no stiffness; its density is replaced by the density in the file, if
            there is one.

    Raises:
        SceneError: The file gives no stiffness and there is no fallback, or a value is outside its range.
    """
    bound = bound_material(prim)
    if bound is None or not _stiff(bound):
        if fallback is not None:
            said = body_density(prim, frame) or read_density(prim, frame)
            return dataclasses.replace(fallback, density=said) if said else fallback
        raise LocatedError(
            prim.GetPath(),
            f"the file gives it no material (no bound physics material with a Young's "
            f"modulus, such as {rows('Material.youngs_modulus')[0].name}); pass material=Material(youngs_modulus=...)",
        )
    return _material(bound, frame, body_density(prim, frame))


def direct_material(prim: Usd.Prim, frame: StageUnits) -> Material | None:
    """The physics material that is bound directly to the prim of a region; None if there is none with a stiffness.

    Raises:
        SceneError: A value is outside its range.
    """
    bound = UsdShade.MaterialBindingAPI(prim).GetDirectBinding("physics").GetMaterial()
    mark_solid(prim, bound.GetPrim() if bound else None)
    return _material(bound.GetPrim(), frame) if bound and _stiff(bound.GetPrim()) else None


def write_material(stage: Usd.Stage, path: str, material: Material, frame: StageUnits) -> Usd.Prim:
    """Define `material` at `path`, or update the material at this path."""
    prim = UsdShade.Material.Define(stage, path).GetPrim()
    apply(prim, *MATERIAL_APIS)
    for field, sets in _FIELDS.items():
        put(prim, sets, getattr(material, field), frame)
    for name, kind in PLASTICITY.items():
        own = material.plasticity if isinstance(material.plasticity, kind) else None
        for field in dataclasses.fields(kind):
            put(prim, f"{name}.{field.name}", own and getattr(own, field.name), frame)
    kind = None if material.plasticity is None else type(material.plasticity).__name__
    put(prim, "Material.plasticity", kind, frame)
    write_constants(prim, material, frame)
    for field, cls in _CONSTITUENTS.items():
        parts = getattr(material, field)
        for own in dataclasses.fields(cls):
            values = tuple(getattr(part, own.name) for part in parts)
            put(prim, f"{cls.__name__}.{own.name}", values or None, frame)
    return prim


def read_friction(prim: Usd.Prim, frame: StageUnits) -> tuple[float, float | None]:
    """Dynamic and static Coulomb coefficient of the material bound to the obstacle `prim`.

    If the file has only one coefficient, it is used for both. The static coefficient is None unless it is above the
    dynamic one.
    """
    slides, sticks = said_friction(prim, frame)
    slides = rows("Obstacle.friction")[0].default if slides is None else slides
    return slides, None if sticks is None or sticks <= slides else sticks


def said_friction(prim: Usd.Prim, frame: StageUnits) -> tuple[float | None, float | None]:
    """Dynamic and static coefficient in the file, or None; a static coefficient alone is used for both."""
    bound = bound_material(prim)
    if bound is None:
        return None, None
    slides, sticks = (
        get(bound, f"Obstacle.{field}", frame) if any(authored(bound, row.name) for row in rows(f"Obstacle.{field}"))
        else None
        for field in ("friction", "static_friction")
    )  # fmt: skip
    return sticks if slides is None else slides, sticks


def read_density(prim: Usd.Prim, frame: StageUnits) -> float | None:
    """Density of the material bound to the collider `prim` [kg/m^3], or None if there is no density."""
    bound = bound_material(prim)
    if bound is None or not any(authored(bound, row.name) for row in rows("Material.density")):
        return None
    return get(bound, "Material.density", frame) or None


def read_restitution(prim: Usd.Prim, frame: StageUnits) -> float | None:
    """Coefficient of restitution of the material bound to the collider `prim`, or None if it is zero or not set."""
    bound = bound_material(prim)
    return (get(bound, "restitution", frame) or None) if bound is not None else None


def write_surface(
    stage: Usd.Stage,
    path: str,
    friction: float,
    static_friction: float | None,
    restitution: float | None,
    frame: StageUnits,
) -> Usd.Prim:
    """Define a material with the given Coulomb coefficients and coefficient of restitution at `path`."""
    prim = UsdShade.Material.Define(stage, path).GetPrim()
    apply(prim, MATERIAL_APIS[0])
    put(prim, "Obstacle.friction", friction, frame)
    put(prim, "Obstacle.static_friction", friction if static_friction is None else static_friction, frame)
    put(prim, "restitution", restitution, frame)
    return prim


def bind(prim: Usd.Prim, material: Usd.Prim, over_descendants: bool = False) -> None:
    """Bind `material` to `prim` for physics.

    Args:
        prim: Body, obstacle or region.
        material: The material.
        over_descendants: Whether this material overrides materials that are bound to prims below `prim`.
    """
    apply(prim, "MaterialBindingAPI")
    tokens = UsdShade.Tokens
    strength = tokens.strongerThanDescendants if over_descendants else tokens.weakerThanDescendants
    UsdShade.MaterialBindingAPI(prim).Bind(UsdShade.Material(material), strength, "physics")


def bound_material(prim: Usd.Prim) -> Usd.Prim | None:
    """The material bound to `prim` for physics, else the material bound for all purposes, else None."""
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    return material.GetPrim() if material else None


def _stiff(material: Usd.Prim) -> bool:
    return any(authored(material, row.name) for row in rows("Material.youngs_modulus"))


def _material(prim: Usd.Prim, frame: StageUnits, density: float | None = None) -> Material:
    values = {field: get(prim, sets, frame) for field, sets in _FIELDS.items()}
    values["density"] = density or values["density"] or Material.density  # 0 is "not given" in UsdPhysics
    try:
        constants = read_constants(prim, values["law"], frame)
        return Material(
            **values, plasticity=_plasticity(prim, frame), **_constituents(prim, frame), constants=constants
        )
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def _plasticity(prim: Usd.Prim, frame: StageUnits) -> Plasticity | None:
    """The plasticity of a material, or None."""
    name = get(prim, "Material.plasticity", frame)
    if name is None:
        return None
    if name not in PLASTICITY:
        raise SceneError(
            f"{rows('Material.plasticity')[0].name} must be one of {', '.join(PLASTICITY)}, got {str(name)!r}"
        )
    values = {}
    for field in dataclasses.fields(PLASTICITY[name]):
        row = rows(f"{name}.{field.name}")[0]
        values[field.name] = get(prim, row.sets, frame)
        if values[field.name] is ...:
            raise SceneError(f"{row.name} is missing, which {name} needs")
    return PLASTICITY[name](**values)


def _constituents(prim: Usd.Prim, frame: StageUnits) -> dict[str, list]:
    """Fibre reinforcements and Maxwell branches of a material, by the names of their fields in `Material`."""
    found = {}
    for field, cls in _CONSTITUENTS.items():
        sets = [f"{cls.__name__}.{own.name}" for own in dataclasses.fields(cls)]
        values = [get(prim, row, frame) for row in sets]
        if len({len(v) for v in values}) > 1:
            counts = ", ".join(f"{rows(row)[0].name} {len(v)}" for row, v in zip(sets, values, strict=True))
            raise SceneError(f"the arrays of its {field} must have the same number of entries, got {counts}")
        found[field] = [cls(*part) for part in zip(*values, strict=True)]
    return found


def body_density(prim: Usd.Prim, frame: StageUnits) -> float | None:
    """Density of the deformable body that contains `prim` [kg/m^dim]; None if the body has no density.

    This density overrides the density of the material.
    """
    while prim and not any(api in prim.GetPrimTypeInfo().GetAppliedAPISchemas() for api in BODY_APIS):
        prim = prim.GetParent()
    said = prim and any(authored(prim, row.name) for row in rows("Material.density"))
    return get(prim, "Material.density", frame) if said else None
