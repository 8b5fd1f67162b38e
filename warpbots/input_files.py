"""Checks input files before they are read: their kind, their size, and the files to which they may refer."""

import contextlib
import contextvars
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.record import SceneError

__all__ = ["asset_root", "readable", "refuse_outside", "size_doubts"]

_SENSIBLE = (1e-3, 10.0)
"""Sizes of a robot or a part [m] outside which the unit of length is probably wrong."""

_recorded: contextvars.ContextVar[list[Path] | None] = contextvars.ContextVar("recorded", default=None)

_POINTER = b"version https://git-lfs.github.com/spec/"
"""First bytes of a Git LFS pointer."""


@contextlib.contextmanager
def recording() -> Iterator[list[Path]]:
    """Collect the paths of the files that are read within the block."""
    found: list[Path] = []
    token = _recorded.set(found)
    try:
        yield found
    finally:
        _recorded.reset(token)


def readable(path: str | os.PathLike, each: float = 1.0) -> Path:
    """Check a file before it is read, and return its path.

    Args:
        path: The file.
        each: Largest memory that reading the file takes, per byte of the file [bytes].

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is a folder or a device, is empty, is a Git LFS pointer, or would not fit into memory.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path} in {path.absolute().parent}")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if path.is_dir() else "not a regular file but a pipe, socket or device"
        raise SceneError(f"{path}: this is {kind}; give the path of a file")
    if found.st_size == 0:
        raise SceneError(f"{path}: the file is empty; export it again or get another copy")
    with path.open("rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise SceneError(f"{path} is a Git LFS pointer, not the file; run: git lfs pull")
    refuse_excess(found.st_size, each, f"{path}: its bytes", "use a smaller file or a machine with more memory")
    if (record := _recorded.get()) is not None:
        record.append(path.absolute())
    return path


def asset_root(path: str | os.PathLike, said: str | os.PathLike | None = None) -> Path:
    """The folder that must contain all files to which a file refers.

    A file from an untrusted source may refer to any place on the disk. By default the result is the parent of the
    file's folder, because the folders of a package lie side by side. If this parent is the home folder or a folder
    above the home folder, the result is the file's folder itself.

    Args:
        path: The file.
        said: The folder chosen by the user; None for the default.

    Raises:
        FileNotFoundError: The folder `said` does not exist.
    """
    if said is not None:
        if not Path(said).is_dir():
            raise FileNotFoundError(f"asset_root: there is no folder {said}")
        return Path(said).resolve()
    own = Path(path).resolve().parent
    return own if Path.home().resolve().is_relative_to(own.parent) else own.parent


def refuse_outside(asset: str | os.PathLike, path: str | os.PathLike, root: Path) -> None:
    """Raise if an existing file lies outside `root`; links are resolved first.

    Args:
        asset: The file, as an absolute path.
        path: The file that refers to the asset, for the message.
        root: The result of `asset_root`.

    Raises:
        SceneError: The asset lies outside `root`.
    """
    place = Path(asset).resolve()
    if not place.is_relative_to(root):
        remedy = f"copy it to {root}"
        if place.anchor == root.anchor:
            remedy = f"if you trust the file, pass asset_root={os.path.commonpath([place, root])!r}"
        raise SceneError(f"{path}: it refers to {asset}, which lies outside {root}; {remedy}")


def size_doubts(what: str, size: float, argument: str) -> list[tuple[str, str]]:
    """A list with a note for a `FileWarning` if the size of an object is unlikely for a robot; otherwise an empty list.

    Args:
        what: Name of the object in the message.
        size: Largest extent of the object [m].
        argument: The argument with which the user can correct the size.
    """
    if not 0.0 < size < float("inf") or _SENSIBLE[0] <= size <= _SENSIBLE[1]:
        return []
    return [("", f"{what} is {size:.3g} m long; if that is wrong, pass {argument}")]
