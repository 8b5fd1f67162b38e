"""Writing files so that none is ever half written, and where to keep what can be made again."""

import contextlib
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cache_folder", "replacing"]


@contextlib.contextmanager
def replacing(*paths: str | Path) -> Iterator[list[Path]]:
    """Temporary files beside `paths`, with the same endings, that take their places when the block ends well.

    Args:
        *paths: Files to be written; the last one is put in place last.

    Yields:
        A temporary path for each.

    Raises:
        OSError: A folder cannot be written to, or the disk is full; whatever was at `paths` is still there.
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
        for source, path in zip(temporary, paths, strict=True):
            source.replace(path)
    except OSError as error:
        reason = f"cannot write {paths[-1]}: {error.strerror or error}"
        message = f"{reason}; nothing was changed there, free some space or choose a folder that you may write to"
        raise (OSError(error.errno, message) if error.errno else OSError(message)) from error
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def cache_folder(name: str) -> Path | None:
    """The folder `name` among the caches of this user, for what takes long and can be made again; it may not exist.

    The environment variable ``WARPBOTS_CACHE`` says where the caches are; 0 turns them off.

    Returns:
        The folder; None where there shall be none.
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
