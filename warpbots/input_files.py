"""Files that others have made: which of them are read, and from where they may take more."""

import logging
import os
import stat
from pathlib import Path

from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.record import SceneError

__all__ = ["asset_root", "doubt_size", "readable", "refuse_outside"]

_logger = logging.getLogger("warpbots")

_SENSIBLE = (1e-3, 10.0)
"""Lengths of a robot or a part [m] outside of which the unit of length is probably another one."""

_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that stands for one in Git's large file storage."""


def readable(path: str | os.PathLike, each: float = 1.0) -> Path:
    """`path`, after a look at what is there.

    Args:
        path: The file.
        each: Memory that one of its bytes takes at the most while it is read, as measured [bytes].

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: It is a folder or a device, is empty, stands for a file that Git has not brought, or would not fit
            into memory.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; it was looked for in {path.absolute().parent}")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if path.is_dir() else "no regular file but a pipe, socket or device"
        raise SceneError(f"{path}: this is {kind}; give the path of a file")
    if found.st_size == 0:
        raise SceneError(f"{path}: the file is empty; write it again or take another copy of it")
    with path.open("rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise SceneError(f"{path} is a Git LFS pointer, not the file; run: git lfs pull")
    refuse_excess(found.st_size, each, f"{path}: its bytes", "take a smaller file or a machine with more memory")
    return path


def asset_root(path: str | os.PathLike, said: str | os.PathLike | None = None) -> Path:
    """The folder that everything that a file refers to must lie in.

    A file that somebody sends may name any place of the disk. It is followed no further than to the folder above its
    own, since packages keep what belongs together in folders side by side; but never to the home folder or one above.

    Args:
        path: The file.
        said: The folder of which a user says so; None for the one above.

    Raises:
        FileNotFoundError: There is no folder `said`.
    """
    if said is not None:
        if not Path(said).is_dir():
            raise FileNotFoundError(f"asset_root: there is no folder {said}")
        return Path(said).resolve()
    own = Path(path).resolve().parent
    return own if Path.home().resolve().is_relative_to(own.parent) else own.parent


def refuse_outside(asset: str | os.PathLike, path: str | os.PathLike, root: Path) -> None:
    """Raise if a file that is there lies outside of `root`, be it by a link.

    Args:
        asset: The file, as an absolute path.
        path: The file that refers to it, for people.
        root: From `asset_root`.

    Raises:
        SceneError: It does.
    """
    place = Path(asset).resolve()
    if not place.is_relative_to(root):
        remedy = f"copy it to {root}"
        if place.anchor == root.anchor:
            remedy = f"if you trust the file, pass asset_root={os.path.commonpath([place, root])!r}"
        raise SceneError(f"{path}: it refers to {asset}, which lies outside of {root}; {remedy}")


def doubt_size(path: str | os.PathLike, what: str, size: float, argument: str) -> None:
    """Warn of a length that no robot is likely to have.

    Args:
        path: The file.
        what: What is so long, for people.
        size: Its greatest extent [m].
        argument: What can be passed to correct it.
    """
    if 0.0 < size < float("inf") and not _SENSIBLE[0] <= size <= _SENSIBLE[1]:
        _logger.warning("%s: %s is %.3g m long; if that is wrong, pass %s", path, what, size, argument)
