"""Edits prims of a stage that is being written: chooses paths of new prims, names prims, and removes prims."""

import dataclasses

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdGeom

from warpbots.usd.stage.units import StageUnits

__all__ = ["Target", "editable", "free_path", "main_prim", "read_name", "remove", "rename", "to_scene_coordinates"]


@dataclasses.dataclass(frozen=True)
class Target:
    """A stage that is being written.

    Attributes:
        stage: The stage.
        frame: Units and axes of the stage.
        base: Path of the prim below which all new prims go.
        extent: Size of the scene [m], for drawing unbounded shapes.
    """

    stage: Usd.Stage
    frame: StageUnits
    base: Sdf.Path
    extent: float

    def path(self, group: str, name: str) -> str:
        """A free path for a prim called `name` in the group `group` ("Bodies", "Materials", ...) below the base."""
        scope = self.base.AppendChild(group)
        there = self.stage.GetPrimAtPath(scope)
        if there and there.GetTypeName() != "Scope":  # the name is in use for something else
            scope = self.base.AppendChild(f"Warpbots{group}")
        if not self.stage.GetPrimAtPath(scope):
            self.stage.DefinePrim(scope, "Scope")
        return free_path(self.stage, scope, name)

    def define(self, group: str, name: str) -> Usd.Prim:
        """A new Xform called `name` in `group`, whose local coordinates are lifted scene coordinates [m]."""
        prim = self.stage.DefinePrim(self.path(group, name), "Xform")
        rename(prim, name)
        to_scene_coordinates(prim, self.frame)
        return prim


def free_path(stage: Usd.Stage, parent: Sdf.Path, name: str) -> str:
    """An unused path below `parent`, made of `name` as an identifier, with a number if that path is taken."""
    word = Tf.MakeValidIdentifier(name) if name else "unnamed"
    path, number = parent.AppendChild(word), 1
    while stage.GetPrimAtPath(path):
        number += 1
        path = parent.AppendChild(f"{word}_{number}")
    return str(path)


def to_scene_coordinates(prim: Usd.Prim, frame: StageUnits) -> None:
    """Make the local coordinates of `prim` lifted scene coordinates, by giving it a transform if it needs one."""
    here = frame.matrix(prim)
    if not np.array_equal(here, np.eye(4)):
        UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(np.linalg.inv(here).T.tolist()))


def read_name(prim: Usd.Prim) -> str:
    """Name of `prim`: its display name, else the last name of its path."""
    return prim.GetDisplayName() if prim.HasAuthoredDisplayName() else prim.GetName()


def main_prim(stage: Usd.Stage) -> Usd.Prim | None:
    """The prim of the scene as a whole: the default prim, else the only root prim, else None."""
    roots = stage.GetPseudoRoot().GetChildren()
    return stage.GetDefaultPrim() or (roots[0] if len(roots) == 1 else None)


def rename(prim: Usd.Prim, name: str) -> None:
    """Make `read_name` return `name` for `prim`, by setting the display name if that is needed."""
    if name != prim.GetName() or prim.HasAuthoredDisplayName():
        prim.SetDisplayName(name)


def editable(prim: Usd.Prim) -> Usd.Prim:
    """`prim`, made editable: if the prim or a prim above it is an instance, its `instanceable` is switched off."""
    stage, path = prim.GetStage(), prim.GetPath()  # `prim` itself expires with the instance
    for ancestor in path.GetPrefixes():
        if stage.GetPrimAtPath(ancestor).IsInstance():
            stage.GetPrimAtPath(ancestor).SetInstanceable(False)
    return stage.GetPrimAtPath(path)


def remove(prim: Usd.Prim, own: bool) -> None:
    """Remove `prim` from the scene: delete it if warpbots wrote it (`own`), else deactivate it in the file."""
    if own:
        prim.GetStage().RemovePrim(prim.GetPath())
    else:
        editable(prim).SetActive(False)
