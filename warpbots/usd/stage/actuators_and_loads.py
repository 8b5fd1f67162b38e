"""Actuators, constraints, loads, attachments and laws of contact, for which neither USD nor Newton has schemas.

Each is a prim with a schema of warpbots. A cable is a `BasisCurves`, so that every viewer shows its route; all other
parts are prims of type `Scope`. The control channels have the order of the actuators in the file, unless
`warpbots:order` is set.
"""

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from warpbots.scene import Cable, Constraint, SceneError
from warpbots.usd.stage.attributes import apply, authored, create, get, put, schemas
from warpbots.usd.stage.faults import Faults, LocatedError, attempt
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.motion_tables import read_table, write_table
from warpbots.usd.stage.prim_editing import Target, editable, remove, rename, to_scene_coordinates
from warpbots.usd.stage.prim_roles import Part, kind_of, part_api, part_classes
from warpbots.usd.stage.schema import attributes_of, rows
from warpbots.usd.stage.units import START, StageUnits

__all__ = ["Part", "read_part", "read_parts", "remove_part", "write_part"]


def read_parts(found: Inventory, frame: StageUnits, faults: Faults) -> dict[str, list]:
    """All actuators, constraints, loads, attachments and contacts, by the name of the field of `Scene` that holds them.

    Args:
        found: The prims of the stage.
        frame: Units and axes of the stage.
        faults: Receives the error of each part that cannot be read; the result has None for such a part.
    """
    return {
        kind: [attempt(faults, read_part, prim, name, frame) for name, prim in getattr(found, kind).items()]
        for kind in ("actuators", "constraints", "loads", "attachments", "contacts")
    }


def read_part(prim: Usd.Prim, name: str, frame: StageUnits) -> Part:
    """The actuator, constraint, load, attachment or law of contact at `prim`.

    Raises:
        SceneError: An attribute is missing or outside its range; the message names the prim.
    """
    api = part_api(schemas(prim))
    cls = part_classes()[api]
    attributes = _attributes_of(cls)
    found = {field: get(prim, sets, frame) for field, sets in attributes.items()}
    names = [rows(attributes[field])[0].name for field, value in found.items() if value is ...]
    if names:
        raise LocatedError(prim.GetPath(), f"a prim with {api} needs the attributes {', '.join(names)}")
    try:
        if cls is Constraint:
            found["motion"] = read_table(prim, frame)
        return cls(name=name, **found)
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def write_part(target: Target, existing: Usd.Prim | None, part: Part) -> Sdf.Path:
    """Author `part`; arguments and result are as for `warpbots.usd.soft.soft_bodies.write_body`."""
    known = part_classes()
    api = f"Warpbots{type(part).__name__}API"
    if api not in known:
        raise SceneError(
            f"{type(part).__name__} {part.name!r}: a file has no schema for this class; replace it by "
            f"{', '.join(cls.__name__ for cls in known.values())}, or leave it out of the scene that is written"
        )
    if existing is not None and api not in existing.GetPrimTypeInfo().GetAppliedAPISchemas():
        remove_part(existing)
        existing = None
    prim = editable(existing) if existing is not None else _define(target, part)
    apply(prim, api)
    for field, sets in _attributes_of(type(part)).items():
        put(prim, sets, getattr(part, field), target.frame)
    if isinstance(part, Constraint):
        write_table(prim, part.motion, target.frame)
    if isinstance(part, Cable):
        _draw(prim, part)
    return prim.GetPath()


def remove_part(prim: Usd.Prim) -> None:
    """Remove the part `prim` from the scene."""
    remove(prim, own=True)


def _attributes_of(cls: type) -> dict[str, str]:
    """The `Row.sets` of all fields of a part, except its name and the motion of a constraint."""
    return attributes_of(cls, "name", *["motion"] * (cls is Constraint))


def _define(target: Target, part: Part) -> Usd.Prim:
    kind = "BasisCurves" if isinstance(part, Cable) else "Scope"
    prim = target.stage.DefinePrim(target.path(kind_of(type(part)).capitalize(), part.name), kind)
    rename(prim, part.name)
    if isinstance(part, Cable):
        to_scene_coordinates(prim, target.frame)
    return prim


def _draw(prim: Usd.Prim, cable: Cable) -> None:
    """Author all attributes of the curve of a cable except its points: a polyline whose width is 1 % of its length."""
    curves = UsdGeom.BasisCurves(prim)
    steps = np.diff(np.asarray(cable.waypoints), axis=0)
    curves.CreateTypeAttr(UsdGeom.Tokens.linear)
    curves.CreateWrapAttr(UsdGeom.Tokens.nonperiodic)
    curves.CreateCurveVertexCountsAttr([len(cable.waypoints)])
    if not authored(prim, "widths"):
        create(prim, "widths", "float[]", [0.01 * float(np.linalg.norm(steps, axis=1).sum())])
        curves.SetWidthsInterpolation(UsdGeom.Tokens.constant)
    curves.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(curves, START))
