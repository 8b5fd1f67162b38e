"""Files: opened with errors that one can read, and written whole or not at all."""

import contextlib
import mmap
import os
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf, Tf, Usd

from warpbots.files import replacing
from warpbots.scene import SceneError
from warpbots.usd.schema import SCHEMA_VERSION

__all__ = ["EXTENSIONS", "attempt", "explained", "export", "open_stage", "replacing_layers", "sign"]

EXTENSIONS = (".usd", ".usda", ".usdc")
"""What can be written."""

_ARRAY = re.compile(rb"\b([a-z]\w*)\[\]\s+[\w:.]+\s*=\s*(?:\{\s*[^:{}\[\]]+:\s*)?\[\s*(\(+[^()]*\))")
"""In text: the type of an array, and the first of its elements if it is in parentheses."""


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
    _refuse_arrays(path)
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


def _refuse_arrays(path: Path) -> None:
    """Raise if an array in a text has elements of another size than its type: USD takes hours to say so.

    Raises:
        SceneError: The first such array.
    """
    with path.open("rb") as file:
        if file.read(5) != b"#usda":
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            for found in _ARRAY.finditer(text):
                name, first = (group.decode(errors="replace") for group in found.groups())
                kind = Sdf.ValueTypeNames.Find(name)
                size = (4,) if name.startswith("quat") else np.shape(kind.defaultValue)
                if kind and (first.count("(") != len(size) or first.count(",") + 1 != size[-1]):
                    line = text[: found.start()].count(b"\n") + 1
                    raise SceneError(
                        f"{path}:{line}: an array of the type {name}[] has elements such as {first[:40]}, which are of "
                        f"another one; correct the file"
                    )


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


def _reason(error: Exception) -> str:
    """The last thing that USD has to say, without the lines of its own code."""
    try:
        texts = [str(e.commentary) for e in error.args if hasattr(e, "commentary")]
        if isinstance(error, Tf.ErrorException):
            return texts[0] if texts else str(error).strip().rpartition(" : ")[2].strip("'")
        return str(error)
    except UnicodeDecodeError:
        return "what it says is no text in UTF-8"
