"""Preserves content of a file that warpbots does not read, by writing a scene over a copy of its source file."""

import dataclasses
import os
from pathlib import Path

from pxr import Sdf, Usd, UsdUtils

from warpbots.scene import Scene, SceneError
from warpbots.usd.reader import read_stage
from warpbots.usd.rigid.robot_reader import points_of
from warpbots.usd.stage.stage_files import open_again

__all__ = ["check", "copy_of_source", "is_source_of", "relative", "relocate"]


def copy_of_source(scene: Scene) -> Sdf.Layer:
    """A layer in memory with everything in the source of `scene`; paths to other files are absolute.

    Sublayers are merged into one layer; references, payloads, variants and time samples are kept.

    Raises:
        SceneError: The source no longer exists or cannot be read.
    """
    try:
        source = open_again(scene.source)
    except FileNotFoundError:
        raise SceneError(
            f"Scene.source {scene.source} no longer exists, so that its other content cannot be preserved; write "
            f"dataclasses.replace(scene, source=None), which leaves it out"
        ) from None
    return UsdUtils.FlattenLayerStack(source)


def relocate(layer: Sdf.Layer, folder: Path) -> None:
    """Make the paths to other files in `layer` relative to `folder`, in which the layer will be saved."""
    UsdUtils.ModifyAssetPaths(layer, lambda asset: relative(asset, folder) if Path(asset).is_absolute() else asset)


def check(stage: Usd.Stage, scene: Scene) -> None:
    """Check that reading `stage` gives `scene`.

    Raises:
        SceneError: Reading `stage` gives another scene; the message names the fields that differ.
    """
    try:
        back, _ = read_stage(stage, contact_points=points_of(scene))
        fields = [f.name for f in dataclasses.fields(Scene) if f.compare]
        wrong = [name for name in fields if getattr(back, name) != getattr(scene, name)]
        fault = f"it would read back with different {', '.join(wrong)}" if wrong else ""
    except SceneError as error:
        fault = f"it would not read back: {error}"
    if fault:
        raise SceneError(
            f"the scene cannot be combined with the other content of its source {scene.source}, because {fault}; write "
            f"dataclasses.replace(scene, source=None), which leaves that file out"
        )


def is_source_of(path: str, scene: Scene) -> bool:
    """Whether reading the file `path` gives exactly `scene`."""
    try:
        return read_stage(open_again(path), contact_points=points_of(scene))[0] == scene
    except (SceneError, OSError):
        return False


def relative(asset: str | Path, folder: Path) -> str:
    """`asset` as a path relative to `folder`, in the notation of USD."""
    try:
        path = Path(os.path.relpath(asset, folder)).as_posix()
    except ValueError:  # on another drive of Windows
        return str(asset)
    return path if path.startswith("../") else f"./{path}"
