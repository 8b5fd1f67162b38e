"""Reads mass, initial velocity and friction of soft bodies from the attributes that UsdPhysics has for all bodies."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.contact.volume import volume
from warpbots.scene import Material, Shape
from warpbots.usd.geometry.physics_materials import bound_material, said_friction
from warpbots.usd.stage.applied_schemas import MOTION_API
from warpbots.usd.stage.attributes import authored, clear, get, schemas, value_of
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.prim_roles import geometry_of
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import pose_of, rotation
from warpbots.usd.stage.units import START, StageUnits

__all__ = [
    "forget_mass", "forget_velocity", "read_friction", "read_mass", "read_velocity", "weighing",
]  # fmt: skip


def read_mass(body: Usd.Prim, parts: list[Usd.Prim], frame: StageUnits) -> float | None:
    """Mass of the body [kg], from the prim of the body, else from the prim of its only geometry; None if not given.

    Raises:
        SceneError: The mass is negative; the message names the prim.
    """
    for prim in dict.fromkeys([body, *parts] if len(parts) == 1 else [body]):
        mass = get(prim, "Inertia.mass", frame)
        if mass is not None and not mass >= 0.0:
            raise LocatedError(prim.GetPath(), f"physics:mass must be positive, or 0 for not set, got {mass:g}")
        if mass:
            return mass
    return None


def weighing(
    body: Usd.Prim, mass: float, shape: Shape, material: Material, others: Mapping[str, Material], note: Note
) -> tuple[Material, dict[str, Material]]:
    """Materials of a body and of its regions, with the density that gives the body its mass.

    Args:
        body: Prim of the body.
        mass: Mass of the body [kg]; in UsdPhysics it takes precedence over all densities.
        shape: Shape of the body.
        material: Material of the body.
        others: Materials of regions by name.
        note: Receives a note on each region whose density is overruled.

    Raises:
        SceneError: The shape has no volume; the message names the prim.
    """
    try:
        density = mass / volume(shape)
    except TypeError as error:
        raise LocatedError(body.GetPath(), f"its mass does not give a density: {error}") from None
    for name, other in others.items():
        if other.density != material.density:
            note(body, f"the density of its region {name!r}: physics:mass = {mass:g} kg is spread evenly over the body")
    return (
        dataclasses.replace(material, density=density),
        {name: dataclasses.replace(other, density=density) for name, other in others.items()},
    )


def forget_mass(body: Usd.Prim) -> None:
    """Remove mass and density of the body from its prim and geometry, so that the density of its material is used."""
    for prim in (body, *geometry_of(body)):
        for row in (*rows("Inertia.mass"), *rows("Material.density")):
            clear(prim, row.name)


def read_velocity(body: Usd.Prim, frame: StageUnits, note: Note) -> tuple[float, ...] | None:
    """Initial velocity of the body, else the common velocity of its points [m/s], shape (dim,); None for rest.

    In a file, the velocity of a body is in axes of its parent prim; velocities of points are in axes of their geometry.
    """
    if authored(body, rows("SoftBody.velocity")[0].name):
        return get(body, "SoftBody.velocity", frame)
    points = _point_velocities(body, frame)
    name = rows("velocity of a body")[0].name
    if authored(body, name):
        if points.any():
            note(body, f"velocities of its points; {name} counts")
        R = pose_of(frame.matrix(body.GetParent()))[0][:3, :3]
        velocity = R @ np.asarray(value_of(body, name)).astype(str).astype(np.float64) * frame.factor("m/s")
        return tuple(frame.drop(velocity).tolist()) if velocity.any() else None
    if (points != points[:1]).any():
        note(body, "velocities that differ between particles")
        return None
    return tuple(points[0].tolist()) if points.any() else None


def forget_velocity(body: Usd.Prim) -> None:
    """Remove the attribute ``physics:velocity`` from the body, so that ``warpbots:velocity`` is used."""
    clear(body, rows("velocity of a body")[0].name)


def _point_velocities(body: Usd.Prim, frame: StageUnits) -> np.ndarray:
    """Initial velocities of all points [m/s], shape (n, dim); geometry without velocities gives one zero vector."""
    found = [np.zeros((0, frame.dim))]
    for part in geometry_of(body):
        points = UsdGeom.PointBased(part)
        said = points.GetVelocitiesAttr().Get(START) if points and MOTION_API not in schemas(part) else None
        rates = np.asarray(said, dtype=np.float64) if said else np.zeros((1, 3))
        found.append(frame.drop(rates @ rotation(frame.matrix(part)).T) * frame.factor("m/s"))
    return np.concatenate(found)


def read_friction(body: Usd.Prim, part: Usd.Prim, frame: StageUnits, note: Note) -> tuple[float, Usd.Prim | None]:
    """Coulomb coefficient of a soft body: set on the body, else the dynamic one of the material of its geometry `part`.

    Returns:
        The coefficient, and the prim of the material that gives the coefficient; None if no material gives it.
    """
    if authored(body, rows("SoftBody.friction")[0].name):
        return get(body, "SoftBody.friction", frame), None
    slides, sticks = said_friction(part, frame)
    if slides is None:
        return rows("SoftBody.friction")[0].default, None
    material = bound_material(part)
    if sticks != slides and sticks is not None:
        note(
            material,
            f"physics:staticFriction = {sticks:g} of soft bodies, which have one coefficient: the dynamic one, "
            f"{slides:g}",
        )
    return slides, material
