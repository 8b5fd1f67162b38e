"""Files: opened with errors that one can read, and written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pxr import Sdf, Tf, Usd

from warpbots.files import replacing
from warpbots.scene import SceneError
from warpbots.usd.schema import SCHEMA_VERSION

__all__ = ["EXTENSIONS", "export", "open_stage", "replacing_layers", "sign"]

EXTENSIONS = (".usd", ".usda", ".usdc")
"""What can be written."""


def open_stage(path: str | os.PathLike) -> Usd.Stage:
    """The stage in the file `path`, as it is on disk.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: It is empty, is no USD file, refers to files that are missing, or is of a newer warpbots.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; it was looked for in {path.absolute().parent}")
    if path.is_dir():
        raise SceneError(f"{path}: this is a folder; give the path of a .usd, .usda, .usdc or .usdz file")
    if path.stat().st_size == 0:
        raise SceneError(f"{path}: the file is empty; write it again or take another copy of it")
    try:
        stage = Usd.Stage.Open(str(path.absolute()))
    except Tf.ErrorException as error:
        raise SceneError(f"{path}: this is no USD file that can be read ({_reason(error)})") from None
    # a layer that this process has open already may be older than the file
    Sdf.Layer.ReloadLayers({layer for layer in stage.GetUsedLayers() if not (layer.anonymous or layer.dirty)})
    broken = stage.GetCompositionErrors()
    if broken:
        raise SceneError(f"{path}: the file refers to what cannot be found or read: " + "; ".join(map(str, broken)))
    _check_version(stage, path)
    return stage


def sign(layer: Sdf.Layer) -> None:
    """Say in `layer` who wrote it and by which table of attributes; another creator stays its creator."""
    said = layer.customLayerData
    foreign = not str(said.get("creator", "warpbots")).startswith("warpbots")
    name = said["creator"] if foreign else f"warpbots {_version()}"
    layer.customLayerData = said | {"creator": name, "warpbots": {"schema": SCHEMA_VERSION, "version": _version()}}


@contextlib.contextmanager
def replacing_layers(*paths: Path) -> Iterator[list[Path]]:
    """`replacing` for USD files; whoever has an old one open in this process gets the new one.

    Raises:
        ValueError: A file has no ending of USD.
        OSError: A file cannot be written; no temporary file is left behind.
    """
    for path in paths:
        if path.suffix not in EXTENSIONS:
            ending = f"must end in {', '.join(EXTENSIONS)}, got {path.suffix!r}"
            raise ValueError(f"{path}: a file that is written {ending}")
    with replacing(*paths) as temporary:
        try:
            yield temporary
        except Tf.ErrorException as error:
            raise OSError(_reason(error)) from error
    for path in paths:
        layer = Sdf.Layer.Find(str(path))
        if layer:
            layer.Reload(force=True)


def export(layer: Sdf.Layer, path: Path) -> None:
    """Write `layer` to `path`.

    Raises:
        OSError: It could not be written.
    """
    if not layer.Export(str(path)):
        raise OSError(f"USD could not write {path}")


def _check_version(stage: Usd.Stage, path: Path) -> None:
    said = stage.GetRootLayer().customLayerData.get("warpbots")
    version = said.get("schema", 0) if isinstance(said, dict) else 0
    if version > SCHEMA_VERSION:
        raise SceneError(
            f"{path}: written by warpbots {said.get('version', '')} with version {version} of the attributes; this is "
            f"warpbots {_version()}, which knows version {SCHEMA_VERSION}; update warpbots"
        )


def _version() -> str:
    try:
        return metadata.version("warpbots")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "unreleased"


def _reason(error: Tf.ErrorException) -> str:
    """The last thing that USD has to say, without the lines of its own code."""
    texts = [str(e.commentary) for e in error.args if hasattr(e, "commentary")]
    return texts[0] if texts else str(error).strip().rpartition(" : ")[2].strip("'")
