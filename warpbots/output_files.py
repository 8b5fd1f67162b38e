"""Writing files completely or not at all, and the folder for caches."""

import contextlib
import os
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cache_folder", "replacing"]


@contextlib.contextmanager
def replacing(*paths: str | Path) -> Iterator[list[Path]]:
    """Temporary files beside `paths`, with the same endings, that replace them when the block succeeds.

    Args:
        *paths: Files to be written; the last one is replaced last.

    Yields:
        A temporary path for each.

    Raises:
        OSError: A folder cannot be written to, or the disk is full; the files at `paths` are unchanged.
        KeyboardInterrupt: Ctrl-C was pressed; while files are being replaced, it waits until all of them are.
    """
    paths = [Path(path) for path in paths]
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"cannot write {path}: this is a folder; give the path of a file in it")
        if not path.parent.is_dir():
            kind = NotADirectoryError if path.parent.exists() else FileNotFoundError
            raise kind(f"cannot write {path}: there is no folder {path.parent}; create it or choose another one")
    mark = uuid.uuid4().hex[:8]
    temporary = [path.with_name(f".{path.stem}.{mark}{path.suffix}") for path in paths]
    try:
        yield temporary
        with _undisturbed():
            for source, path in zip(temporary, paths, strict=True):
                source.replace(path)
    except OSError as error:
        raise _unwritten(paths[-1], error) from error
    except Exception as error:  # libraries have exceptions of their own for a full disk
        if refusal := _refusal(temporary):
            raise _unwritten(paths[-1], refusal) from error
        raise
    finally:
        with _undisturbed():
            for path in temporary:
                path.unlink(missing_ok=True)


def _unwritten(path: Path, error: OSError) -> OSError:
    reason = f"cannot write {path}: {error.strerror or error}"
    message = f"{reason}; nothing was changed there, free some space or choose a writable folder"
    return OSError(error.errno, message) if error.errno else OSError(message)


def _refusal(paths: list[Path]) -> OSError | None:
    """The error when existing files are extended, or None if there is none."""
    try:
        for path in paths:
            if path.exists():
                with path.open("ab") as file:
                    file.write(bytes(2**16))
    except OSError as error:
        return error
    return None


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block."""
    if threading.current_thread() is not threading.main_thread():  # Python handles signals only there
        yield
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def cache_folder(name: str) -> Path | None:
    """The folder `name` in the cache of this user, for results that can be recomputed; it may not exist yet.

    The environment variable ``WARPBOTS_CACHE`` sets the folder of the cache; 0 turns it off.

    Returns:
        The folder; None if the cache is off.
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
