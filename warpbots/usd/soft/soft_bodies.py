"""Soft bodies: a prim with `PhysicsDeformableBodyAPI`, its geometry, its material and its regions.

A soft body is written as an Xform with the rest shape ``Shape`` and the guides ``Regions`` below it. In files of other
programs the marked prim may be the geometry itself, or have the geometry anywhere below.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pxr import Sdf, Usd, UsdGeom

from warpbots.scene import Material, Points, SceneError, Shape, Sheet, SoftBody, TetMesh
from warpbots.scene.shapes.sampled import OpenMesh
from warpbots.usd.geometry.body_colors import read_color, shows_color, write_color
from warpbots.usd.geometry.looks import roughness_of, update_look
from warpbots.usd.geometry.physics_materials import bind, bound_material, direct_material, read_material, write_material
from warpbots.usd.geometry.shape_prims import read_shape, write_shape
from warpbots.usd.geometry.shape_surfaces import renew_surfaces
from warpbots.usd.geometry.sheet_prims import bending_of, read_bending, sheet_of, write_bending
from warpbots.usd.geometry.solid_prims import read_solid, write_solid
from warpbots.usd.soft.mass_and_motion import (
    forget_mass,
    forget_velocity,
    read_friction,
    read_mass,
    read_velocity,
    weighing,
)
from warpbots.usd.stage.applied_schemas import (
    BODY_APIS,
    POINTS_API,
    REGION_API,
    SURFACE_APIS,
    UNSUPPORTED_APIS,
    VOLUME_API,
)
from warpbots.usd.stage.attributes import apply, create, enabled, put, same, schemas, targets_of
from warpbots.usd.stage.faults import Faults, LocatedError, attempt
from warpbots.usd.stage.inventory import Inventory, Note
from warpbots.usd.stage.ledger import mark_solid
from warpbots.usd.stage.prim_editing import Target, free_path, read_name, remove, rename, to_scene_coordinates
from warpbots.usd.stage.prim_roles import geometry_of, is_ours, is_soft
from warpbots.usd.stage.units import StageUnits

__all__ = ["SoftPrim", "read_soft_bodies", "read_soft_prim", "write_body"]

_SIM_API = {Points: POINTS_API, TetMesh: VOLUME_API, Sheet: SURFACE_APIS[0]}
"""Applied schemas of geometry that other programs simulate without meshing it."""


_COLOR = "SoftBody.color"


class SoftPrim(NamedTuple):
    """A soft body of a file.

    Attributes:
        body: The body of the scene.
        rubbing: The prim of the material from which the friction of the body was read; None if the friction is set on
            the prim of the body, or is the default.
    """

    body: SoftBody
    rubbing: Usd.Prim | None


def _unheard(prim: Usd.Prim | None, reason: str) -> None:
    """Ignore a note; passed as `note` if a prim is read only to compare it with a body."""


def read_soft_bodies(
    found: Inventory, frame: StageUnits, material: Material | None, thickness: float | None, faults: Faults
) -> dict[str, SoftPrim | None]:
    """All soft bodies by name, each read by `read_soft_prim`.

    Args:
        found: The prims of the stage.
        frame: Units and axes of the stage.
        material: Material of bodies for which the file gives none.
        thickness: Thickness [m] of the sheets made of open meshes; None to refuse them.
        faults: Receives the error of each body that cannot be read; the result has None for such a body.
    """
    options = material, thickness, found.note
    return {n: attempt(faults, read_soft_prim, prim, n, frame, *options) for n, prim in found.soft.items()}


def read_soft_prim(
    body: Usd.Prim, name: str, frame: StageUnits, material: Material | None = None, thickness: float | None = None,
    note: Note = _unheard,
) -> SoftPrim:  # fmt: skip
    """The soft body at `body`.

    Args:
        body: Prim of the body.
        name: Name of the body.
        frame: Units and axes of the stage.
        material: Material of a body for which the file gives none.
        thickness: Thickness [m] of the sheet made of an open mesh; None to refuse it.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        SceneError: Something about the body cannot be simulated; the message names the prim.
    """
    parts = geometry_of(body)
    for prim in (body, *parts):
        if is_soft(body) and "PhysicsRigidBodyAPI" in schemas(prim) and enabled(prim, "physics:rigidBodyEnabled"):
            raise LocatedError(prim.GetPath(), UNSUPPORTED_APIS["PhysicsRigidBodyAPI"])
    shape = _read_shape(body, parts, frame, thickness)
    regions = {read_name(prim): prim for prim in _regions(body)}
    whole, others = _read_materials(body, parts, shape, regions, frame, material, note)
    friction, rubbing = read_friction(body, parts[0], frame, note)
    found = SoftBody(
        name=name,
        shape=shape,
        material=whole,
        regions={region: read_shape(prim, frame) for region, prim in regions.items()},
        region_materials=others,
        velocity=read_velocity(body, frame, note),
        color=_color(body, frame, note),
        friction=friction,
    )
    return SoftPrim(found, rubbing)


def _read_materials(
    body: Usd.Prim, parts: list[Usd.Prim], shape: Shape, regions: dict[str, Usd.Prim], frame: StageUnits,
    fallback: Material | None, note: Note,
) -> tuple[Material, dict[str, Material]]:  # fmt: skip
    """The material of a body, and the materials of regions that have a separate material, by the name of the region."""
    whole = read_material(parts[0], frame, fallback)
    first = bound_material(parts[0])
    mark_solid(parts[0], first)
    for part in parts[1:]:
        mark_solid(part, None)
        if bound_material(part) != first:
            note(part, f"its material; the whole body has that of {parts[0].GetPath()}")
    found = {region: direct_material(prim, frame) for region, prim in regions.items()}
    others = {region: m for region, m in found.items() if m is not None}
    mass = read_mass(body, parts, frame)
    return (whole, others) if mass is None else weighing(body, mass, shape, whole, others, note)


def _read_shape(body: Usd.Prim, parts: list[Usd.Prim], frame: StageUnits, thickness: float | None) -> Shape:
    try:
        return read_solid(body, frame)
    except LocatedError as error:
        if not isinstance(error.reason, OpenMesh) or len(parts) != 1 or parts[0].GetTypeName() != "Mesh":
            raise
        if thickness is None:
            remedy = "pass thickness=... [m] to make sheets of open meshes"
            raise LocatedError(error.location, f"{error.reason}; {remedy}") from None
    try:
        return sheet_of(parts[0], frame.matrix(parts[0]), frame, thickness)
    except SceneError as error:
        raise LocatedError(parts[0].GetPath(), f"an open mesh that cannot be a sheet: {error}") from None


def write_body(
    target: Target, existing: Usd.Prim | None, body: SoftBody, colors: Mapping[str, tuple[float, float, float]]
) -> Sdf.Path:
    """Author `body`.

    Args:
        target: The stage to write to.
        existing: The present prim of the body, or None. Attributes that agree with the body are not changed, so that
            content added by other programs is kept.
        body: The body.
        colors: Colours of all bodies, by name, see `Scene.colors`.

    Returns:
        Path of the prim of the body.
    """
    frame, color = target.frame, colors[body.name]
    if existing is not None and _is(existing, body, frame):
        if body.color is None and is_ours(existing) and not shows_color(existing, _COLOR, color, frame):
            write_color(existing, _COLOR, None, color, frame)
            update_look(existing, color, roughness_of(body.material))
        return existing.GetPath()
    prim = write_solid(target, existing, "Bodies", body.name, body.shape)
    apply(prim, BODY_APIS[0])
    if type(body.shape) in _SIM_API:
        apply(geometry_of(prim)[0], _SIM_API[type(body.shape)])
    fresh = existing is None or prim != existing
    if fresh or not same(read_velocity(prim, frame, _unheard), body.velocity):
        forget_velocity(prim)
        put(prim, "SoftBody.velocity", body.velocity, frame)
    if fresh or not same(read_friction(prim, geometry_of(prim)[0], frame, _unheard)[0], body.friction):
        put(prim, "SoftBody.friction", body.friction, frame)
    if fresh or not same(_color(prim, frame, _unheard), body.color):
        write_color(prim, _COLOR, body.color, color, frame)
    if fresh or not _made_of(prim, body, frame):
        forget_mass(prim)
        material = write_material(target.stage, f"{prim.GetPath()}/PhysicsMaterial", body.material, frame)
        write_bending(material, bending_of(body.shape), frame)
        bind(prim, material, over_descendants=not is_ours(prim))
    _write_regions(target, prim, body)
    if is_ours(prim):
        update_look(prim, color, roughness_of(body.material))
        renew_surfaces(prim, body.shape)
    return prim.GetPath()


def _is(prim: Usd.Prim, body: SoftBody, frame: StageUnits) -> bool:
    """Whether reading `prim` already gives `body`."""
    try:
        return bool(schemas(prim) & set(BODY_APIS)) and read_soft_prim(prim, body.name, frame).body == body
    except SceneError:
        return False


def _made_of(prim: Usd.Prim, body: SoftBody, frame: StageUnits) -> bool:
    try:
        parts = geometry_of(prim)
        made_of, _ = _read_materials(prim, parts, body.shape, {}, frame, None, _unheard)
        return made_of == body.material and same(read_bending(parts[0], frame), bending_of(body.shape))
    except SceneError:
        return False


def _color(body: Usd.Prim, frame: StageUnits, note: Note) -> tuple[float, float, float] | None:
    """The colour of the body or of its first shape; None if the file gives several colours or none."""
    return read_color((body, *geometry_of(body)[:1]), _COLOR, frame, note)


def _regions(body: Usd.Prim) -> list[Usd.Prim]:
    """Prims of the regions of `body`: the targets of ``warpbots:regions``, else all regions below `body`."""
    link = body.GetRelationship("warpbots:regions")
    if link and link.HasAuthoredTargets():
        return [prim for prim in map(body.GetStage().GetPrimAtPath, targets_of(body, "warpbots:regions")) if prim]
    return [prim for prim in Usd.PrimRange(body, Usd.TraverseInstanceProxies()) if REGION_API in schemas(prim)]


def _write_regions(target: Target, prim: Usd.Prim, body: SoftBody) -> None:
    kept = {}
    for old in _regions(prim):
        name = read_name(old)
        if name in body.regions and _same_region(
            old, body.regions[name], body.region_materials.get(name), target.frame
        ):
            kept[name] = old.GetPath()
        else:
            remove(old, own=True)
    paths = [kept.get(name) or _write_region(target, prim, body, name) for name in body.regions]
    if paths or prim.HasRelationship("warpbots:regions"):
        prim.CreateRelationship("warpbots:regions", custom=False).SetTargets(paths)


def _same_region(prim: Usd.Prim, shape: Shape, material: Material | None, frame: StageUnits) -> bool:
    try:
        return read_shape(prim, frame) == shape and direct_material(prim, frame) == material
    except SceneError:
        return False


def _write_region(target: Target, body_prim: Usd.Prim, body: SoftBody, name: str) -> Sdf.Path:
    stage, frame = target.stage, target.frame
    parent = _region_parent(target, body_prim, body.name)
    path = free_path(stage, parent.GetPath(), name)
    prim = write_shape(stage, path, body.regions[name], frame, target.extent)
    rename(prim, name)
    apply(prim, REGION_API)
    create(prim, "purpose", "token", UsdGeom.Tokens.guide)
    if name in body.region_materials:
        bind(prim, write_material(stage, f"{path}_material", body.region_materials[name], frame))
    return prim.GetPath()


def _region_parent(target: Target, body: Usd.Prim, name: str) -> Usd.Prim:
    if body.IsA(UsdGeom.Gprim):  # USD allows no geometry below geometry: regions of a foreign mesh go elsewhere
        return target.define("Regions", name)
    path = body.GetPath().AppendChild("Regions")
    if not target.stage.GetPrimAtPath(path):
        to_scene_coordinates(target.stage.DefinePrim(path, "Xform"), target.frame)
    return target.stage.GetPrimAtPath(path)
