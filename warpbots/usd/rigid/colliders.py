"""Finds the colliding geometry of a rigid body, and reads it as solids in the frame of the body."""

import numpy as np
from pxr import Usd, UsdGeom

from warpbots.scene import SceneError, Shape
from warpbots.usd.geometry.collider_shapes import collider_shape
from warpbots.usd.geometry.shape_prims import read_shape_in
from warpbots.usd.rigid.thin_colliders import tangible
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.faults import reason_at
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.ledger import mark_named
from warpbots.usd.stage.prim_roles import is_collider, is_ours, prims_of_body
from warpbots.usd.stage.units import StageUnits, local_matrix

__all__ = ["colliders", "read_collider"]


def colliders(body: Usd.Prim) -> list[Usd.Prim]:
    """Colliding geometry of `body`, without the geometry that belongs to rigid bodies below `body`.

    A collider that is not a geometric prim stands for all geometry below it, unless there are colliders below it.
    """
    if is_ours(body):
        return [body.GetChild("Shape")]
    parts = prims_of_body(body)
    said = [p for p in parts if "PhysicsCollisionAPI" in schemas(p)]
    found: list[Usd.Prim] = []
    for part in said:
        if not is_collider(part):
            continue
        if part.IsA(UsdGeom.Gprim):
            found.append(part)
        elif not any(s != part and s.GetPath().HasPrefix(part.GetPath()) for s in said):
            found += [p for p in parts if p.IsA(UsdGeom.Gprim) and p.GetPath().HasPrefix(part.GetPath())]
    return found


def read_collider(body: Usd.Prim, base: np.ndarray, prim: Usd.Prim, frame: StageUnits, note: Note) -> Shape | None:
    """The solid of the collider `prim` in the frame of its body [m]; None, with a note, if there is none.

    Args:
        body: The rigid body.
        base: Transform from local coordinates of the prim of the body to its frame [m], shape (4, 4).
        prim: The collider, at or below the body.
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.
    """
    base = frame.lifting @ base
    try:
        if prim == body:
            return _moving_solid(prim, base, frame, note)
        parent = _to_body(body, base, prim.GetParent())
        if is_ours(body) and prim == body.GetChild("Shape"):
            return read_shape_in(prim, parent, frame)
        return _moving_solid(prim, local_matrix(prim, parent, parent), frame, note)
    except SceneError as error:
        note(prim, f"a collider that is left out: {reason_at(prim, error)}")
        mark_named(prim)
        return None


def _to_body(body: Usd.Prim, base: np.ndarray, prim: Usd.Prim) -> np.ndarray:
    """Transform from local coordinates of `prim`, at or below `body`, to the frame of the body, shape (4, 4)."""
    result, way = base, []
    while prim != body:
        way.append(prim)
        prim = prim.GetParent()
    for step in reversed(way):
        result = local_matrix(step, result, result)
    return result


def _moving_solid(prim: Usd.Prim, here: np.ndarray, frame: StageUnits, note: Note) -> Shape:
    if prim.GetTypeName() == "Plane":
        raise SceneError("an unbounded plane cannot move; use a Cube instead")
    return tangible(prim, collider_shape(prim, here, frame, note), note)
