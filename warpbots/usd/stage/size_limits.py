"""Checks a stage before USD composes it: the sizes and locations of its layers, and the number of prims."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pxr import Ar, Pcp, Sdf, Tf

from warpbots.input_files import readable, refuse_outside
from warpbots.scene import SceneError

__all__ = ["MAX_PRIMS", "layers_of", "refuse_prims"]

MAX_PRIMS = 100_000
"""Default limit of the number of prims of a stage: a minute or more of reading."""

_DEEPEST = 10_000
"""Largest depth of nested prims in a text file; USD's parser aborts the process at about ten times as many."""

_BYTES = {True: 80.0, False: 2.0}
"""Largest memory per byte of a text file (True) or binary file (False) [bytes]; the two bytes of ``1,`` take 145."""

_ARRAY = re.compile(rb"\b([a-z]\w*)\[\]\s+[\w:.]+\s*=\s*(?:\{\s*[^:{}\[\]]+:\s*)?\[\s*(\(+[^()]*\))")
"""In a text file: the type of an array, and its first element if this element is in parentheses."""

_BRACE = re.compile(rb'"""(?s:.*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|@[^@\n]*@|#[^\n]*|([{}])')
"""In a text file: a brace, or a string or comment, in which braces do not count."""


def layers_of(path: Path, root: Path) -> list[Sdf.Layer]:
    """The layer in a file and all readable layers to which it refers directly or indirectly, as they are on disk.

    Args:
        path: The file.
        root: The folder that must contain all files to which this file refers.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: A file lies outside `root`, is a Git LFS pointer, does not fit into memory, or would block or crash
            USD's parser.
        pxr.Tf.ErrorException: The file itself is not a USD file.
    """
    found: dict[str, Sdf.Layer | None] = {}
    new: list[Sdf.Layer] = []
    for place, file, owner in _places(path, new):
        if place in found:
            continue
        _look(file, owner, root)
        try:
            found[place] = Sdf.Layer.FindOrOpen(place)
        except Tf.ErrorException:  # the stage itself reports another file that is not a layer
            if owner is None:
                raise
        if found.get(place):
            new.append(found[place])
        elif owner is None:
            raise SceneError(f"{path}: this is not a readable USD file (its content has no format that USD knows)")
    return [layer for layer in found.values() if layer]


def _places(path: Path, new: list[Sdf.Layer]) -> Iterator[tuple[str, Path, str | Path | None]]:
    """The file at `path`, and all files that the layers in `new` refer to.

    Each item is the resolved path, the file on disk, and the referring file, or None for the file at `path`.

    The caller adds layers to `new` during the iteration.
    """
    yield str(path.absolute()), path, None
    while new:
        layer = new.pop()
        if not layer.dirty:  # a layer that is already open in this process may be older than the file
            layer.Reload()
        for place in _references(layer):
            yield place, Path(Ar.SplitPackageRelativePathOuter(place)[0]), layer.realPath or path


def refuse_prims(layer: Sdf.Layer, most: int) -> None:
    """Raise if the stage of a layer has more prims than `most`; a prim counts once for every definition and reference.

    The prims are composed one by one, so that composition stops at the limit.

    Raises:
        SceneError: There are more than `most` prims.
    """
    cache = Pcp.Cache(Pcp.LayerStackIdentifier(layer), "usd", True)
    paths, count = [Sdf.Path.absoluteRootPath], 0
    while paths:
        path = paths.pop()
        index = cache.ComputePrimIndex(path)[0]
        if index.hasAnyPayloads and not cache.IsPayloadIncluded(path):
            cache.RequestPayloads([path], [])
            index = cache.ComputePrimIndex(path)[0]
        count, names = count + _origins(index), index.ComputePrimChildNames()[0]
        if count + len(paths) + len(names) > most:
            raise SceneError(
                f"{layer.realPath or layer.identifier}: it has more than {most} prims, counted once for each "
                f"reference; if that is intended and there is memory for it, pass max_prims={10 * most}"
            )
        paths += [path.AppendChild(name) for name in names]


def _origins(index: Pcp.PrimIndex) -> int:
    """Number of origins of a prim: definitions, references, inherited classes, ..."""
    nodes, count = [index.rootNode], 0
    while nodes:
        count += 1
        nodes += nodes.pop().children
    return count


def _references(layer: Sdf.Layer) -> Iterator[str]:
    """Resolved paths of the existing files that a layer refers to."""
    for asset in filter(None, layer.GetCompositionAssetDependencies()):
        place = Sdf.ComputeAssetPathRelativeToLayer(layer, asset)
        resolved = str(Ar.GetResolver().Resolve(Sdf.Layer.SplitIdentifier(place)[0]))
        if resolved and "://" not in resolved:
            yield resolved


def _look(path: Path, owner: str | Path | None, root: Path) -> None:
    """Raise if a file cannot be opened safely, or if `owner`, another file, refers to it and it lies outside `root`."""
    if owner is not None:
        refuse_outside(path, owner, root)
    with readable(path).open("rb") as file:
        text = file.read(5) == b"#usda"
    readable(path, _BYTES[text])
    if text:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _refuse_depth(content, path)
            _refuse_arrays(content, path)


def _refuse_depth(text: mmap.mmap, path: Path) -> None:
    """Raise if prims in the text of a file are nested so deeply that USD's parser runs out of stack.

    Raises:
        SceneError: Prims are nested too deeply.
    """
    braces = [brace for brace in _BRACE.findall(text) if brace]
    depth = np.cumsum(np.where(np.array(braces) == b"{", 1, -1)).max(initial=0)
    if depth > _DEEPEST:
        raise SceneError(f"{path}: its prims are nested {depth} levels deep, more than the {_DEEPEST} that are read")


def _refuse_arrays(text: mmap.mmap, path: Path) -> None:
    """Raise if elements of an array in the text of a file do not match its type: USD would take hours to report that.

    Raises:
        SceneError: There is such an array; the message names the first one.
    """
    for found in _ARRAY.finditer(text):
        name, first = (group.decode(errors="replace") for group in found.groups())
        kind = Sdf.ValueTypeNames.Find(name)
        size = (4,) if name.startswith("quat") else np.shape(kind.defaultValue)
        if kind and (first.count("(") != len(size) or first.count(",") + 1 != size[-1]):
            line = text[: found.start()].count(b"\n") + 1
            raise SceneError(
                f"{path}:{line}: an array of type {name}[] has elements such as {first[:40]}, which do not match "
                f"it; correct the file"
            )
