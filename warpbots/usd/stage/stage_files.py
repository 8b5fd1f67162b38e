"""Files: opened with errors that one can read, and written whole or not at all."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pxr import Sdf, Tf, Usd

from warpbots import input_files
from warpbots.output_files import replacing
from warpbots.scene import SceneError
from warpbots.usd.stage.schema import SCHEMA_VERSION
from warpbots.usd.stage.size_limits import MAX_PRIMS, layers_of, refuse_prims

__all__ = ["EXTENSIONS", "attempt", "explained", "export", "open_again", "open_stage", "replacing_layers", "sign"]

EXTENSIONS = (".usd", ".usda", ".usdc")
"""What can be written."""

_LONG = 600
"""Characters of what USD says that are passed on."""


def open_stage(
    path: str | os.PathLike, asset_root: str | os.PathLike | None = None, max_prims: int = MAX_PRIMS
) -> Usd.Stage:
    """The stage in the file `path`, as it is on disk.

    Args:
        path: The file.
        asset_root: The folder in which all must lie that it refers to; None for the one above its own.
        max_prims: Prims that it may have.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: It is empty, is no USD file, refers to files that lie elsewhere, is too large, or is of a newer
            warpbots.
    """
    path = Path(path)
    if path.is_dir():
        raise SceneError(f"{path}: this is a folder; give the path of a .usd, .usda, .usdc or .usdz file")
    try:
        layers = layers_of(path, input_files.asset_root(path, asset_root))
        refuse_prims(layers[0], max_prims)
        stage = Usd.Stage.Open(layers[0])
    except Tf.ErrorException as error:
        raise SceneError(f"{path}: this is no USD file that can be read ({_reason(error)})") from None
    # a layer that this process has open already may be older than the file
    Sdf.Layer.ReloadLayers({layer for layer in stage.GetUsedLayers() if not (layer.anonymous or layer.dirty)})
    _check_version(stage, path)
    return stage


def open_again(path: str | os.PathLike) -> Usd.Stage:
    """`open_stage` for a file that a user has read before, wherever its parts lie and how many they are."""
    return open_stage(path, Path(path).absolute().anchor, sys.maxsize)


@contextlib.contextmanager
def explained(what: object, prim: Usd.Prim | None = None) -> Iterator[None]:
    """Turn errors over a file that USD opens and nobody expects into sentences.

    USD and NumPy raise them, where an attribute is of another type than its schema says, or holds what no text is.

    Args:
        what: The file or the prim, for people.
        prim: Where to look for attributes of another type.

    Raises:
        SceneError: There was such an error, which is its cause.
    """
    try:
        yield
    except (SceneError, OSError):
        raise
    except (Tf.ErrorException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        odd = "; ".join(_odd_types(prim)) if prim else ""
        reason = odd or f"{type(error).__name__}: {_reason(error)}"
        raise SceneError(f"{what}: it holds what does not belong there ({reason}); correct the file") from error


def attempt(faults: list[str], reader: Callable, *args: Any, **values: Any) -> Any:
    """What `reader` returns, or None and its message among the `faults`; a prim comes first among the arguments."""
    prim = args[0] if args and isinstance(args[0], Usd.Prim) else None
    try:
        with explained(prim.GetPath(), prim) if prim else contextlib.nullcontext():
            return reader(*args, **values)
    except SceneError as error:
        faults.append(str(error))
        return None


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


def _odd_types(prim: Usd.Prim) -> Iterator[str]:
    """Attributes at and below a prim that have another type than their schema says, or none that is known."""
    for part in Usd.PrimRange(prim):
        schema = part.GetPrimDefinition()
        for attribute in part.GetAuthoredAttributes():
            said = attribute.GetPropertyStack()[0].typeName  # the attribute itself has the type of its schema
            known = schema.GetAttributeDefinition(attribute.GetName())
            if not Sdf.ValueTypeNames.Find(str(said)):
                yield f"{attribute.GetPath()} is of type {said}, which USD does not know"
            elif known and known.GetTypeName().type != said.type:
                yield f"{attribute.GetPath()} is of type {said}, it should be {known.GetTypeName()}"


def _short(text: str) -> str:
    """A long text, such as one that quotes the line of a file, without its middle."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} ... {text[-_LONG // 2 :]}"


def _reason(error: Exception) -> str:
    """The last thing that USD has to say, without the lines of its own code."""
    try:
        if not isinstance(error, Tf.ErrorException):
            return str(error)
        texts = [str(e.commentary) for e in error.args if isinstance(e, Tf.Error)]
        return _short(texts[0] if texts else str(error).strip().rpartition(" : ")[2].strip("'"))
    except UnicodeDecodeError:
        return "what it says is no text in UTF-8"
