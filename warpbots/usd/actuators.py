"""Actuators: prims with a schema of ours, since neither USD nor Newton has muscles, chambers or cables.

A cable is a `BasisCurves`, so that every viewer shows its route; the others are a `Scope`. Their order in the file is
the order of the control channels, unless they say another one by `warpbots:order`.
"""

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from warpbots.scene import Actuator, Cable, Muscle, Pressure, SceneError
from warpbots.usd.frame import START, Frame
from warpbots.usd.schema import ACTUATOR_APIS, rows
from warpbots.usd.target import Target, editable, remove, rename, to_scene_coordinates
from warpbots.usd.values import apply, authored, create, get, put, schemas

__all__ = ["actuator_api", "read_actuator", "remove_actuator", "write_actuator"]

_FIELDS = {
    Pressure: ("Pressure.max_pressure",),
    Muscle: ("Muscle.direction", "Muscle.max_stress"),
    Cable: ("Cable.waypoints", "Cable.stiffness", "Cable.rest_length"),
}


def actuator_api(applied: set[str]) -> str | None:
    """The schema among `applied` that makes a prim an actuator, or None."""
    return next((api for api in ACTUATOR_APIS if api in applied), None)


def read_actuator(prim: Usd.Prim, name: str, frame: Frame) -> Actuator:
    """The actuator at `prim`.

    Raises:
        SceneError: An attribute is missing or outside its range; the message names the prim.
    """
    api = actuator_api(schemas(prim))
    cls = ACTUATOR_APIS[api]
    values = {} if cls is Cable else {"region": get(prim, "region", frame)}
    values |= {sets.split(".")[1]: get(prim, sets, frame) for sets in _FIELDS[cls]}
    missing = [field for field, value in values.items() if value is ...]
    if missing:
        names = [rows(f"{cls.__name__}.{f}" if f != "region" else f)[0].name for f in missing]
        raise SceneError(f"{prim.GetPath()}: a prim with {api} needs the attributes {', '.join(names)}")
    try:
        return cls(name=name, **values)
    except SceneError as error:
        raise SceneError(f"{prim.GetPath()}: {error}") from None


def write_actuator(target: Target, existing: Usd.Prim | None, actuator: Actuator) -> Sdf.Path:
    """Author `actuator`; as `warpbots.usd.bodies.write_body`."""
    api = next(api for api, cls in ACTUATOR_APIS.items() if type(actuator) is cls)
    if existing is not None and api not in existing.GetPrimTypeInfo().GetAppliedAPISchemas():
        remove_actuator(existing)
        existing = None
    prim = editable(existing) if existing is not None else _define(target, actuator)
    apply(prim, api)
    if not isinstance(actuator, Cable):
        put(prim, "region", actuator.region, target.frame)
    for sets in _FIELDS[type(actuator)]:
        put(prim, sets, getattr(actuator, sets.split(".")[1]), target.frame)
    if isinstance(actuator, Cable):
        _draw(prim, actuator)
    return prim.GetPath()


def remove_actuator(prim: Usd.Prim) -> None:
    """Take the actuator `prim` out of the scene."""
    remove(prim, own=True)


def _define(target: Target, actuator: Actuator) -> Usd.Prim:
    kind = "BasisCurves" if isinstance(actuator, Cable) else "Scope"
    prim = target.stage.DefinePrim(target.path("Actuators", actuator.name), kind)
    rename(prim, actuator.name)
    if isinstance(actuator, Cable):
        to_scene_coordinates(prim, target.frame)
    return prim


def _draw(prim: Usd.Prim, cable: Cable) -> None:
    """What a curve needs besides its points: one polyline, as thick as a hundredth of its length."""
    curves = UsdGeom.BasisCurves(prim)
    steps = np.diff(np.asarray(cable.waypoints), axis=0)
    curves.CreateTypeAttr(UsdGeom.Tokens.linear)
    curves.CreateWrapAttr(UsdGeom.Tokens.nonperiodic)
    curves.CreateCurveVertexCountsAttr([len(cable.waypoints)])
    if not authored(prim, "widths"):
        create(prim, "widths", "float[]", [0.01 * float(np.linalg.norm(steps, axis=1).sum())])
        curves.SetWidthsInterpolation(UsdGeom.Tokens.constant)
    curves.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(curves, START))
