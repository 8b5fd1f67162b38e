"""Writes output files completely or not at all, and determines the folder for caches."""

import contextlib
import contextvars
import hashlib
import os
import platform
import re
import shutil
import sys
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from warpbots.interrupts import interrupts_deferred

__all__ = ["cache_folder", "is_same_file", "replacing", "protecting", "temporary_folder"]

_MARK = re.compile(r"\.warpbots-([0-9a-f]{6})-([0-9]+)-[0-9a-f]{8}")
"""Part of the names of temporary files and folders: the host, the process that writes them, and a random number."""

_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:6]

_FOREIGN = 86400.0
"""Age from which temporary files of other hosts count as left over [s]; their processes cannot be checked here."""

_protected: contextvars.ContextVar[Collection[str | Path]] = contextvars.ContextVar("protected", default=())
_own: set[str] = set()
"""Marks that this process uses."""


@contextlib.contextmanager
def protecting(paths: Collection[str | Path]) -> Iterator[None]:
    """Protect the files of `paths`, such as the inputs of a command, from being replaced within the block."""
    token = _protected.set(paths)
    try:
        yield
    finally:
        _protected.reset(token)


def is_same_file(a: str | Path, b: str | Path) -> bool:
    """Whether two paths lead to the same file, through links or in another letter case if the disk ignores case."""
    try:
        return Path(a).samefile(b)
    except OSError:  # one does not exist
        return Path(a).absolute() == Path(b).absolute()


@contextlib.contextmanager
def _mark(folders: Iterable[Path]) -> Iterator[str]:
    """A unique part for the names of temporary files in `folders`.

    Temporary files that ended processes have left in these folders are removed first.
    """
    for folder in dict.fromkeys(folders):
        _remove_left_over(folder)
    mark = f".warpbots-{_HOST}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    _own.add(mark)
    try:
        yield mark
    finally:
        _own.discard(mark)


def _remove_left_over(folder: Path) -> None:
    """Remove temporary files and folders that ended processes, such as killed ones, have left in `folder`."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = _MARK.search(entry.name)
            if found is None or found[0] in _own:
                continue
            with contextlib.suppress(OSError):
                if (found[1] == _HOST and not _lives(int(found[2]))) or _age(entry) > _FOREIGN:
                    _remove(Path(entry.path))


def _age(entry: os.DirEntry) -> float:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    """Whether a process of this host may still be writing files; False for this process, whose marks are in `_own`."""
    if process == os.getpid():
        return False
    if sys.platform == "win32":  # a signal would end it there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    with contextlib.suppress(OSError):  # one that has ended but was not waited for
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@contextlib.contextmanager
def temporary_folder(where: str | Path) -> Iterator[Path]:
    """A hidden folder in `where`, which is removed with its contents after the block.

    If the process ends before that, the next write into `where` removes the folder.
    """
    with _mark([Path(where)]) as mark:
        folder = Path(where) / mark
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def replacing(*paths: str | Path) -> Iterator[list[Path]]:
    """Temporary files in the folders of `paths`, with the same endings.

    The temporary files replace the files at `paths` if the block succeeds.

    Args:
        *paths: Files to be written; they are replaced in the given order.

    Yields:
        A list with a temporary path for each of `paths`.

    Raises:
        OSError: A folder cannot be written to, the disk is full, or a file is protected (`protecting`); the files at
            `paths` are unchanged.
        KeyboardInterrupt: Ctrl-C was pressed; while files are being replaced, the interrupt is deferred until all files
            are replaced.
    """
    paths = [Path(path) for path in paths]
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"cannot write {path}: this is a folder; give the path of a file in it")
        if not path.parent.is_dir():
            kind = NotADirectoryError if path.parent.exists() else FileNotFoundError
            raise kind(f"cannot write {path}: there is no folder {path.parent}; create it or choose another one")
        for source in _protected.get():
            if is_same_file(path, source):
                raise FileExistsError(
                    f"cannot write {path}: this is {source}, from which it would be made; choose another name or folder"
                )
    with _mark(path.parent for path in paths) as mark:
        names = [path.with_name(f".{path.stem}{mark}{path.suffix}") for path in paths]
        with _replaced(paths, names) as temporary:
            yield temporary


@contextlib.contextmanager
def _replaced(paths: list[Path], temporary: list[Path]) -> Iterator[list[Path]]:
    """Replace `paths` by the `temporary` files if the block succeeds, and remove the temporary files in any case."""
    try:
        yield temporary
        with interrupts_deferred():
            for source, path in zip(temporary, paths, strict=True):
                source.replace(path)
    except OSError as error:
        raise _unwritten(paths[-1], error) from error
    except Exception as error:  # libraries raise their own exceptions for a full disk
        if refusal := _refusal(temporary):
            raise _unwritten(paths[-1], refusal) from error
        raise
    finally:
        with interrupts_deferred():
            for path in temporary:
                path.unlink(missing_ok=True)


def _unwritten(path: Path, error: OSError) -> OSError:
    reason = f"cannot write {path}: {error.strerror or error}"
    message = f"{reason}; nothing was changed there, free some space or choose a writable folder"
    return OSError(error.errno, message) if error.errno else OSError(message)


def _refusal(paths: list[Path]) -> OSError | None:
    """The error that the system raises if more is written to existing files, or None if there is no error."""
    try:
        for path in paths:
            if path.exists():
                with path.open("ab") as file:
                    file.write(bytes(2**16))
    except OSError as error:
        return error
    return None


def cache_folder(name: str) -> Path | None:
    """The folder `name` in the user's cache, for results that can be recomputed.

    The folder may not exist yet.

    The environment variable ``WARPBOTS_CACHE`` sets the folder of the cache; the value 0 turns the cache off.

    Returns:
        Path of the folder; None if the cache is off.
    """
    said = os.environ.get("WARPBOTS_CACHE", "")
    if said:
        return None if said == "0" else Path(said) / name
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "warpbots" / name
