"""Bodies and obstacles are both a prim with a solid at or below it: finding, reading, placing and removing that solid.

Ours are an Xform with the solid as its child ``Shape``, whose type is in `warpbots:shape`. In files of others the prim
may be the geometry itself, or have it anywhere below.
"""

from pxr import Usd, UsdGeom

from warpbots.scene import SceneError, Shape, Union
from warpbots.usd.geometry.shape_prims import is_shape, read_shape, write_shape
from warpbots.usd.stage.schema import REGION_API, RESULT_API, SIM_APIS, rows
from warpbots.usd.stage.target import Target, editable, remove
from warpbots.usd.stage.units import Frame
from warpbots.usd.stage.values import authored, schemas

__all__ = ["geometry", "is_own", "read_solid", "remove_solid", "write_solid"]


def geometry(prim: Usd.Prim) -> list[Usd.Prim]:
    """Roots of the shapes at or below `prim`: those marked for simulation, where some are.

    Curves are bars only where there is nothing else: beside a mesh they are hair, or a line drawn on it.
    """
    if is_own(prim):
        return [prim.GetChild("Shape")]  # whatever others have put beside it
    found, walk = [], iter(Usd.PrimRange(prim, Usd.TraverseInstanceProxies()))
    for below in walk:
        if schemas(below) & {REGION_API, RESULT_API}:
            walk.PruneChildren()
        elif is_shape(below):
            found.append(below)
            walk.PruneChildren()
    marked = [part for part in found if schemas(part) & set(SIM_APIS)]
    return marked or [part for part in found if not part.IsA(UsdGeom.Curves)] or found


def is_own(prim: Usd.Prim) -> bool:
    """Whether `prim` has the layout that `write_solid` gives to a new one."""
    shape = prim.GetChild("Shape")
    return bool(shape) and prim.GetTypeName() == "Xform" and authored(shape, rows("shape")[0].name)


def read_solid(prim: Usd.Prim, frame: Frame) -> Shape:
    """The solid at or below `prim` [m]; the union of several.

    Raises:
        SceneError: There is none, or one that warpbots does not know; the message names the prim.
    """
    parts = geometry(prim)
    if not parts:
        what = f"a {prim.GetTypeName()} is no solid" if prim.IsA(UsdGeom.Gprim) else "there is no solid at or below it"
        raise SceneError(f"{prim.GetPath()}: {what} that warpbots knows; turn it into a Mesh")
    shapes = [read_shape(part, frame) for part in parts]
    return shapes[0] if len(shapes) == 1 else Union(tuple(shapes))


def write_solid(target: Target, existing: Usd.Prim | None, group: str, name: str, shape: Shape) -> Usd.Prim:
    """A prim with the solid `shape`.

    Args:
        target: Where.
        existing: The prim that stands for it already, or None. It is returned untouched if its solid is right, reshaped
            if it is ours, and otherwise taken out of the scene and replaced by a new one.
        group: The group of a new prim.
        name: The name of a new prim.
        shape: The solid [m].
    """
    if existing is not None:
        existing = editable(existing)
        if _is(existing, shape, target.frame):
            return existing
        own = is_own(existing)
        remove(existing.GetChild("Shape") if own else existing, own)
        existing = existing if own else None
    prim = existing or target.define(group, name)
    write_shape(target.stage, f"{prim.GetPath()}/Shape", shape, target.frame, target.extent)
    return prim


def remove_solid(prim: Usd.Prim) -> None:
    """Take the body or obstacle `prim` out of the scene."""
    remove(prim, is_own(prim))


def _is(prim: Usd.Prim, shape: Shape, frame: Frame) -> bool:
    try:
        return read_solid(prim, frame) == shape
    except SceneError:
        return False
