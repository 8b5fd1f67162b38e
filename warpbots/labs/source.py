"""The source of a lab: one Python file, whose cells are marked as answers, checks and open questions."""

import base64
import dataclasses
import mimetypes
import re
from pathlib import Path
from typing import Any

__all__ = ["Lab", "Question", "read", "role", "unmarked", "without", "SOLUTION", "HIDDEN"]

SOLUTION = "SOLUTION"
"""Name of the blocks of an answer that students do not see: from ``### BEGIN SOLUTION`` to ``### END SOLUTION``."""

HIDDEN = "HIDDEN TESTS"
"""Name of the blocks of a check that students do not see."""

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclasses.dataclass(frozen=True)
class Question:
    """A question of a lab.

    Attributes:
        name: Name of the question.
        points: Points for a right answer.
        open: Whether a person reads and marks the answer.
    """

    name: str
    points: int
    open: bool


@dataclasses.dataclass(frozen=True)
class Lab:
    """A lab, as read from its source.

    Attributes:
        name: Name of the lab: the name of the file without its ending.
        cells: Cells of a notebook (`nbformat`), with solutions and hidden tests.
        questions: The questions in their order.
    """

    name: str
    cells: list[Any]
    questions: tuple[Question, ...]


def read(path: str | Path) -> Lab:
    """Read the source of a lab.

    The file is in the percent format of jupytext. A cell ``# %% answer="mass"`` holds the answer to a question, with
    blocks from ``### BEGIN SOLUTION`` to ``### END SOLUTION`` that students do not see. The next marked cell,
    ``# %% check="mass" points=3``, judges it; its blocks from ``### BEGIN HIDDEN TESTS`` to ``### END HIDDEN TESTS``
    are for graders alone. A text ``# %% [markdown] open="why" points=4`` is where students write prose.

    Raises:
        ImportError: jupytext is not installed.
        OSError: The file cannot be read.
        ValueError: An answer has no check, or a check no answer; a name is used twice or is not valid; points are
            missing; a block is not closed; or there is no question.
    """
    path = Path(path)
    if path.suffix != ".py":
        raise ValueError(f"{path}: the source of a lab is a Python file, with the ending .py")
    try:
        import jupytext
    except ImportError as fault:
        raise ImportError('reading the source of a lab needs jupytext: pip install "warpbots[labs]"') from fault
    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells
    for cell in cells:
        _attach_pictures(path, cell)
    return Lab(path.stem, cells, tuple(_questions(path, cells)))


def role(cell: Any) -> tuple[str, str] | None:
    """The role of a cell, ``answer``, ``check`` or ``open``, and the name of its question; None for other cells."""
    return next(((kind, cell.metadata[kind]) for kind in ("answer", "check", "open") if kind in cell.metadata), None)


def without(block: str, text: str) -> str:
    """A text without its blocks of one kind, `SOLUTION` or `HIDDEN`."""
    kept, inside = [], False
    for line in text.splitlines():
        if _marker(line) == ("BEGIN", block):
            inside = True
        elif _marker(line) == ("END", block):
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept).rstrip()


def unmarked(text: str) -> str:
    """A text without the lines that mark blocks."""
    return "\n".join(line for line in text.splitlines() if _marker(line) is None)


def _marker(line: str) -> tuple[str, str] | None:
    """``BEGIN`` or ``END`` and the name of the block, if a line is such a marker."""
    found = re.fullmatch(rf"\s*### (BEGIN|END) ({SOLUTION}|{HIDDEN})\s*", line)
    return (found[1], found[2]) if found else None


def _attach_pictures(path: Path, cell: Any) -> None:
    """Put the pictures of a text into its cell, so that a notebook is one file."""
    if cell.cell_type != "markdown":
        return
    for picture in re.findall(r"!\[[^\]]*\]\(([^):]+)\)", cell.source):
        file = path.parent / picture
        if not file.is_file():
            raise FileNotFoundError(f"{path}: there is no picture {file}; its path is relative to the lab")
        kind = mimetypes.guess_type(file)[0]
        if kind not in _PICTURES:
            raise ValueError(f"{path}: {picture} is no PNG, JPEG, GIF or WebP; JupyterLab shows no other attachments")
        data = base64.b64encode(file.read_bytes()).decode()
        cell.setdefault("attachments", {})[file.name] = {kind: data}
        cell.source = cell.source.replace(f"({picture})", f"(attachment:{file.name})")


def _questions(path: Path, cells: list[Any]) -> list[Question]:
    """The questions of the cells, which are checked on the way."""
    questions: list[Question] = []
    waiting = None  # name of the answer whose check is due
    for cell in cells:
        kind, name = role(cell) or (None, None)
        _check_blocks(path, cell, kind, name)
        if kind is None:
            continue
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"{path}: {kind}={name!r} is no name; use letters, digits and underscores")
        if waiting is not None and (kind, name) != ("check", waiting):
            raise ValueError(f'{path}: after answer="{waiting}" comes {kind}="{name}"; put check="{waiting}" there')
        if waiting is None and kind == "check":
            raise ValueError(f'{path}: check="{name}" has no answer; put a cell answer="{name}" above it')
        waiting = name if kind == "answer" else None
        if kind == "answer":
            continue
        if any(question.name == name for question in questions):
            raise ValueError(f"{path}: there are two questions {name!r}; give each a name of its own")
        points = cell.metadata.get("points")
        if not isinstance(points, int) or points < 1:
            raise ValueError(f'{path}: {kind}="{name}" has points={points!r}; write points= with an integer above 0')
        questions.append(Question(name, points, kind == "open"))
    if waiting is not None:
        raise ValueError(f'{path}: answer="{waiting}" has no check; put a cell check="{waiting}" with points below it')
    if not questions:
        raise ValueError(f'{path}: the lab has no question; mark cells with answer="..." and check="..." points=...')
    return questions


def _check_blocks(path: Path, cell: Any, kind: str | None, name: str | None) -> None:
    """Check that blocks are closed, and in the cells where they belong."""
    belongs = {"answer": SOLUTION, "check": HIDDEN}.get(kind or "")
    inside = None
    for line in cell.source.splitlines():
        match _marker(line):
            case "BEGIN", block if inside is None and block == belongs:
                inside = block
            case "END", block if inside == block:
                inside = None
            case found if found is not None:
                where = f'{kind}="{name}"' if kind else f"the cell that begins with {cell.source.splitlines()[0]!r}"
                raise ValueError(f"{path}: ### {' '.join(found)} does not belong where it stands in {where}")
    if inside is not None:
        raise ValueError(f'{path}: ### BEGIN {inside} of {kind}="{name}" has no ### END {inside}')
