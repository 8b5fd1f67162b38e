"""Reads, writes and removes the solid of a body or an obstacle, at or below the prim of the body or obstacle."""

from pxr import Usd, UsdGeom

from warpbots.scene import SceneError, Shape, Union
from warpbots.usd.geometry.shape_prims import read_shape, write_shape
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.prim_editing import Target, editable, remove
from warpbots.usd.stage.prim_roles import geometry_of, is_ours
from warpbots.usd.stage.units import StageUnits

__all__ = ["read_solid", "remove_solid", "write_solid"]


def read_solid(prim: Usd.Prim, frame: StageUnits) -> Shape:
    """The solid at or below `prim` [m]; the union if there are several.

    Raises:
        SceneError: There is no solid, or it is not supported; the message names the prim.
    """
    parts = geometry_of(prim)
    if not parts:
        what = (
            f"a {prim.GetTypeName()} is not a supported solid"
            if prim.IsA(UsdGeom.Gprim)
            else "there is no supported solid at or below it"
        )
        raise LocatedError(prim.GetPath(), f"{what}; convert it to a Mesh")
    shapes = [read_shape(part, frame) for part in parts]
    return shapes[0] if len(shapes) == 1 else Union(tuple(shapes))


def write_solid(target: Target, existing: Usd.Prim | None, group: str, name: str, shape: Shape) -> Usd.Prim:
    """Author the solid `shape` of a body or an obstacle; returns the prim of the body or obstacle.

    Args:
        target: The stage to write to.
        existing: The present prim of the body or obstacle, or None. The prim is returned untouched if its solid equals
            `shape`, gets the new solid if warpbots wrote it, and otherwise is removed and replaced by a new prim.
        group: The group of a new prim.
        name: The name of a new prim.
        shape: The solid [m].
    """
    if existing is not None:
        existing = editable(existing)
        if _is(existing, shape, target.frame):
            return existing
        own = is_ours(existing)
        remove(existing.GetChild("Shape") if own else existing, own)
        existing = existing if own else None
    prim = existing or target.define(group, name)
    write_shape(target.stage, f"{prim.GetPath()}/Shape", shape, target.frame, target.extent)
    return prim


def remove_solid(prim: Usd.Prim) -> None:
    """Remove the body or obstacle `prim` from the scene."""
    remove(prim, is_ours(prim))


def _is(prim: Usd.Prim, shape: Shape, frame: StageUnits) -> bool:
    try:
        return read_solid(prim, frame) == shape
    except SceneError:
        return False
