"""Writing files so that none is ever half written."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path`, with the same ending, that takes its place when the block ends well.

    Raises:
        OSError: The folder cannot be written to, or the disk is full; whatever was at `path` is still there.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise OSError(
            f"cannot write {path}: {error.strerror}; choose a folder that exists and that you may write to"
        ) from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}; nothing was changed there") from error
    finally:
        temporary.unlink(missing_ok=True)
