"""The warning about a file whose content is partly left out, read or written differently, or doubtful."""

import os
import warnings
from collections.abc import Iterable, Iterator

from warpbots.user_warning import user_frame

__all__ = ["READ", "WRITTEN", "FileWarning", "lines_of", "warn_of_file"]

READ = "left out, read differently or doubtful"
"""Heading of a warning about a file that was read."""

WRITTEN = "left out or written differently"
"""Heading of a warning about a file that was written."""

_MANY = 3
"""Largest number of places with the same reason that are listed one by one."""

_LINES, _LONG = 24, 400
"""Largest number of lines of a message, and of characters of a line."""


class FileWarning(UserWarning):
    """Issued if warpbots leaves out content of a file, reads or writes it differently, or considers it doubtful.

    There is at most one such warning for each file that is read or written. The warning is attributed to a line of the
    user's program, and can be silenced by ``warnings.filterwarnings("ignore", category=warpbots.FileWarning)``. The
    message has a bounded length: it counts places in the file to which the same reason applies. `notes` lists all
    places.

    Attributes:
        path: The file.
        notes: Pairs of a place in the file and a note about this place. A place is, for example, the path of a prim, or
            "" for the whole file.
        heading: Text that introduces the notes in the message.
    """

    def __init__(self, path: str, notes: Iterable[tuple[str, str]], heading: str = READ):
        self.path, self.notes, self.heading = str(path), tuple(notes), heading
        super().__init__(self.path, self.notes, heading)

    def __str__(self) -> str:
        """The name of the file, followed by at most 24 lines about the file."""
        lines = [_short(line) for line in lines_of(self.notes)]
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], f"and {len(lines) - _LINES + 1} more, which are in `notes` of this warning"]
        return f"{self.path}: {self.heading}:" + "".join(f"\n  {line}" for line in lines)


def warn_of_file(path: str | os.PathLike, notes: Iterable[tuple[str, str]], heading: str = READ) -> None:
    """If there are notes, issue a `FileWarning` at the user's line, each time that the file is read or written.

    Args:
        path: The file.
        notes: Pairs of a place in the file ("" for the whole file) and a note about this place.
        heading: Text that introduces the notes in the message.
    """
    warning = FileWarning(str(path), notes, heading)
    if not warning.notes:
        return
    frame, _calls = user_frame()
    # without a registry, which would silence the second run of a notebook's cell
    warnings.warn_explicit(
        warning, FileWarning, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
    )


def lines_of(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each note; if many notes have the same reason, one line for all these notes."""
    places: dict[str, list[str]] = {}
    for place, reason in notes:
        places.setdefault(reason, []).append(place)
    for reason, where in places.items():
        if len(where) > _MANY:
            yield f"{where[0]} and {len(where) - 1} others: {reason}" if where[0] else f"{reason} ({len(where)} times)"
        else:
            yield from (f"{place}: {reason}" if place else reason for place in where)


def _short(line: str) -> str:
    """The text `line`, shortened in the middle if it is long."""
    return line if len(line) <= _LONG else f"{line[: _LONG // 2]} ... {line[-_LONG // 2 :]}"
