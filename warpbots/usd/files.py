"""Files: opened with errors that one can read, and written whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pxr import Sdf, Tf, Usd

from warpbots.scene import SceneError
from warpbots.usd.schema import SCHEMA_VERSION

__all__ = ["EXTENSIONS", "export", "open_stage", "replacing", "sign"]

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
def replacing(*paths: Path) -> Iterator[list[Path]]:
    """Temporary files beside `paths` that take their places at the end, all of them or none.

    Args:
        *paths: Files to be written; the last one is put in place last.

    Yields:
        A temporary path for each.

    Raises:
        OSError: A file cannot be written; no temporary file is left behind.
    """
    for path in paths:
        _check_writable(path)
    mark = uuid.uuid4().hex[:8]
    temporary = [path.with_name(f".{path.stem}.{mark}{path.suffix}") for path in paths]
    try:
        yield temporary
        for source, path in zip(temporary, paths, strict=True):
            source.replace(path)
    except (OSError, Tf.ErrorException) as error:
        reason = _reason(error) if isinstance(error, Tf.ErrorException) else error.strerror or str(error)
        number = getattr(error, "errno", None)
        message = f"cannot write {paths[-1]}: {reason}; nothing was changed, free some space or choose another folder"
        raise (OSError(number, message) if number else OSError(message)) from error
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)
    for path in paths:  # whoever has the old file open in this process gets the new one
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


def _check_writable(path: Path) -> None:
    if path.suffix not in EXTENSIONS:
        raise ValueError(f"{path}: a file that is written must end in {', '.join(EXTENSIONS)}, got {path.suffix!r}")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: this is a folder; give the path of a file in it")
    if not path.parent.is_dir():
        kind = NotADirectoryError if path.parent.exists() else FileNotFoundError
        raise kind(f"{path}: there is no folder {path.parent}; create it or choose another one")


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
