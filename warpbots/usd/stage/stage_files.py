"""Opens USD files with readable errors, and writes USD files completely or not at all."""

import contextlib
import os
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pxr import Sdf, Tf, Usd

from warpbots import input_files
from warpbots.output_files import replacing
from warpbots.read_limits import refuse_unpacking
from warpbots.scene import SceneError
from warpbots.usd.stage.faults import reason_of
from warpbots.usd.stage.schema import SCHEMA_VERSION
from warpbots.usd.stage.size_limits import MAX_PRIMS, layers_of, refuse_prims

__all__ = [
    "EXTENSIONS",
    "PACKAGE",
    "export",
    "open_again",
    "open_stage",
    "replacing_layers",
    "sign",
]

PACKAGE = ".usdz"
"""Ending of a package, which is one file that contains several files."""

EXTENSIONS = (".usd", ".usda", ".usdc", PACKAGE)
"""Endings of files that can be written."""


def open_stage(
    path: str | os.PathLike, asset_root: str | os.PathLike | None = None, max_prims: int = MAX_PRIMS
) -> Usd.Stage:
    """The stage in the file `path`, as it is on disk.

    Args:
        path: The file.
        asset_root: The folder that must contain all files to which this file refers; None for the default of `read`.
        max_prims: Largest number of prims.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is empty, is not a USD file, refers to files outside this folder, is too large, or was
            written by a newer version of warpbots.
    """
    path = Path(path)
    if path.is_dir():
        raise SceneError(f"{path}: this is a folder; give the path of a .usd, .usda, .usdc or .usdz file")
    _refuse_without_stage(path)
    root = input_files.asset_root(path, asset_root)
    try:
        layers = layers_of(path, root)
        refuse_prims(layers[0], max_prims)
        stage = Usd.Stage.Open(layers[0])
    except Tf.ErrorException as error:
        raise SceneError(f"{path}: this is not a readable USD file ({reason_of(error)})") from None
    # a layer that is already open in this process may be older than the file
    Sdf.Layer.ReloadLayers({layer for layer in stage.GetUsedLayers() if not (layer.anonymous or layer.dirty)})
    _check_version(stage, path)
    return stage


def _refuse_without_stage(path: Path) -> None:
    """Raise if a package does not begin with a layer (the layer of its stage), or unpacks to much more than its size.

    Raises:
        SceneError: The package has no stage or unpacks to too much.
    """
    if path.suffix == PACKAGE and zipfile.is_zipfile(path):
        refuse_unpacking(path)
        with zipfile.ZipFile(path) as package:
            first = next(iter(package.namelist()), None)
        if first is None or Path(first).suffix not in EXTENSIONS:
            raise SceneError(
                f"{path}: this package has no stage; its first file must be a .usd, .usda or .usdc layer, and "
                + ("it has no files" if first is None else f"is {first!r}")
            )


def open_again(path: str | os.PathLike) -> Usd.Stage:
    """The stage in a file that the user has read before; like `open_stage`, but without limits on location and size."""
    return open_stage(path, Path(path).absolute().anchor, sys.maxsize)


def sign(layer: Sdf.Layer) -> None:
    """Store the versions of warpbots and of the table of attributes in `layer`.

    If the layer names another program as its creator, that name is kept.
    """
    said = layer.customLayerData
    foreign = not str(said.get("creator", "warpbots")).startswith("warpbots")
    name = said["creator"] if foreign else f"warpbots {_version()}"
    layer.customLayerData = said | {"creator": name, "warpbots": {"schema": SCHEMA_VERSION, "version": _version()}}


@contextlib.contextmanager
def replacing_layers(*paths: Path) -> Iterator[list[Path]]:
    """The same as `replacing`, for USD files; layers that are open in this process are reloaded.

    Raises:
        ValueError: A file does not have an ending of USD.
        OSError: A file cannot be written; no temporary file is left behind.
    """
    for path in paths:
        if path.suffix not in EXTENSIONS:
            ending = f"must end in {', '.join(EXTENSIONS)}, got {path.suffix!r}"
            raise ValueError(f"{path}: the file to write {ending}")
    with replacing(*paths) as temporary:
        try:
            yield temporary
        except Tf.ErrorException as error:
            raise OSError(reason_of(error)) from error
    for path in paths:
        layer = Sdf.Layer.Find(str(path))
        if layer:
            layer.Reload(force=True)


def export(layer: Sdf.Layer, path: Path) -> None:
    """Write `layer` to `path`.

    Raises:
        OSError: The file could not be written.
    """
    if not layer.Export(str(path)):
        raise OSError(f"USD could not write {path}")


def _check_version(stage: Usd.Stage, path: Path) -> None:
    said = stage.GetRootLayer().customLayerData.get("warpbots")
    version = said.get("schema", 0) if isinstance(said, dict) else 0
    if version > SCHEMA_VERSION:
        raise SceneError(
            f"{path}: written by warpbots {said.get('version', '')} with version {version} of the attributes; this is "
            f"warpbots {_version()}, which supports version {SCHEMA_VERSION}; update warpbots"
        )


def _version() -> str:
    try:
        return metadata.version("warpbots")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "unreleased"
