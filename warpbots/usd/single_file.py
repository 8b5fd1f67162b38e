"""Writes a scene or a motion as one file: a package of all its layers and assets, or one layer with their content."""

from collections.abc import Callable
from pathlib import Path

from pxr import Sdf, Usd, UsdUtils

from warpbots.output_files import temporary_folder
from warpbots.usd.preserved_source import relocate
from warpbots.usd.stage.stage_files import PACKAGE, export, replacing_layers

__all__ = ["write_single_file"]


def write_single_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write one file instead of several: a package if `path` ends in .usdz, else one layer.

    Args:
        path: Absolute path of the file.
        write: Function that takes a path, and writes a file at this path and possibly more files in the same folder.

    Raises:
        OSError: The file cannot be written; a file that was at `path` before is unchanged.
    """
    with replacing_layers(path) as (temporary,), temporary_folder(path.parent) as folder:
        several = folder / f"{path.stem}.usdc"
        write(several)
        if path.suffix != PACKAGE:
            export(_flattened(several, path.parent), temporary)
        elif not UsdUtils.CreateNewUsdzPackage(Sdf.AssetPath(str(several)), str(temporary)):
            raise OSError(f"USD could not write {path}")


def _flattened(file: Path, folder: Path) -> Sdf.Layer:
    """One layer with the whole stage of `file`, to be saved in `folder`.

    Textures and other assets stay in separate files.
    """
    stage = Usd.Stage.Open(str(file))
    flat = stage.Flatten(addSourceFileComment=False)
    UsdUtils.CopyLayerMetadata(stage.GetRootLayer(), flat, skipSublayers=True)
    relocate(flat, folder)
    return flat
