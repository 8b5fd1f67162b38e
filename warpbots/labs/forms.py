"""Notebooks of a lab for students, for lecturers, and for the graders nbgrader and Otter."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpbots.labs import own_names
from warpbots.labs.source import HIDDEN, SOLUTION, Lab, role, unmarked, without
from warpbots.output_files import replacing

__all__ = ["FORMS", "graded", "is_of_the_student", "nbgrader", "otter", "solution", "student", "write"]

_NBGRADER_CONFIG = """\
# Settings for the labs of warpbots: a cell may simulate for longer than the usual 30 s.
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "warpbots"
c.ExecutePreprocessor.timeout = 120
c.ClearSolutions.code_stub = {"python": "# your answer"}
c.OverwriteCells.add_missing_cells = True
"""


def student(lab: Lab) -> Any:
    """The notebook that students fill in: without solutions and hidden tests."""
    return _notebook(lab, lambda cell: without(SOLUTION, without(HIDDEN, cell.source)))


def solution(lab: Lab) -> Any:
    """The notebook with all answers and tests, without markers and blanks."""
    return _notebook(lab, lambda cell: unmarked(_answered(cell)))


def graded(lab: Lab) -> Any:
    """The notebook of students with the hidden tests, into which `grade` puts their answers.

    Its cells keep the values that tests read, and tests take them back (`own_names`).
    """
    text = _keeping_names(lab)
    return _notebook(lab, lambda cell: unmarked(without(SOLUTION, text(cell))))


def nbgrader(lab: Lab) -> Any:
    """The source notebook for ``nbgrader generate_assignment``.

    Its cells have the metadata of nbgrader: which cells are graded, with how many points, and which are locked. Hidden
    blocks keep the values that tests read, and tests take them back (`own_names`). A cell with such a block is graded,
    with 0 points, because nbgrader refuses hidden blocks elsewhere.
    """
    notebook = _notebook(lab, _keeping_names(lab))
    for cell in notebook.cells:
        if is_of_the_student(cell):
            continue
        kind, name = role(cell) or (None, cell.id)
        keeps = kind is None and without(HIDDEN, cell.source) != cell.source.rstrip()
        points = {"points": cell.metadata.get("points", 0)} if kind in ("check", "open") or keeps else {}
        cell.metadata["nbgrader"] = {
            "schema_version": 3,
            "grade_id": f"{kind}-{name}" if kind else name,
            "grade": bool(points),
            "solution": kind in ("answer", "open"),
            "locked": kind in ("check", None),
            "task": False,
        } | points
    return notebook


def otter(lab: Lab) -> Any:
    """The master notebook for ``otter assign``.

    A hidden test runs the check of the lab where it stands, after it has taken back the names that the check reads
    (`own_names`). It prints nothing, whatever messages the check has. A cell whose values tests read is a question
    with 0 points, whose test keeps them.
    """
    from nbformat.v4 import new_raw_cell as raw

    notebook = _notebook(lab, lambda cell: without(HIDDEN, cell.source))
    read = own_names.read_by_checks(lab)
    points = {question.name: question.points for question in lab.questions}
    cells = [raw(f"# ASSIGNMENT CONFIG\nname: {lab.name}\ninit_cell: false\nexport_cell: false\nrun_tests: false")]
    for number, (cell, own) in enumerate(zip(notebook.cells, lab.cells, strict=True)):
        match role(cell):
            case "answer", name:
                cell.source = re.sub(r"### (BEGIN|END) SOLUTION", _otter_marker, cell.source)
                cells += [raw(f"# BEGIN QUESTION\nname: {name}\npoints: {points[name]}"), raw("# BEGIN SOLUTION"), cell]
                cells += [raw("# END SOLUTION")]
            case "check", name:
                test = f"{own_names.taking_back(lab, name)}\n{unmarked(own.source)}"
                cells += [cell, *_otter_test(test), raw("# END QUESTION")]
            case "open", name:
                cells += [raw(f"# BEGIN QUESTION\nname: {name}\npoints: {points[name]}\nmanual: true")]
                cells += [raw("# BEGIN SOLUTION"), cell, raw("# END SOLUTION"), raw("# END QUESTION")]
            case _ if found := own_names.keeping(own, read):
                cells += [raw(f"# BEGIN QUESTION\nname: values_{number}\npoints: 0"), cell]
                cells += [*_otter_test(found[1]), raw("# END QUESTION")]
            case _:
                cells.append(cell)
    notebook.cells = cells
    return notebook


FORMS: dict[str, tuple[str, Callable[[Lab], Any]]] = {
    "student": ("student/{lab}.ipynb", student),
    "solution": ("solution/{lab}.ipynb", solution),
    "nbgrader": ("nbgrader/source/{lab}/{lab}.ipynb", nbgrader),
    "otter": ("otter/{lab}.ipynb", otter),
}
"""Path of each form below the folder of a course, and the function that makes it."""


def write(lab: Lab, folder: str | Path) -> list[Path]:
    """Write all forms of a lab into the folder of a course.

    Returns:
        The notebooks, and the settings of nbgrader if the course has none yet.

    Raises:
        OSError: A file cannot be written; then none is changed.
    """
    import nbformat

    made = {Path(folder) / path.format(lab=lab.name): nbformat.writes(form(lab)) for path, form in FORMS.values()}
    settings = Path(folder) / "nbgrader" / "nbgrader_config.py"
    if not settings.exists():
        made[settings] = _NBGRADER_CONFIG
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(*made) as temporary:
        for path, text in zip(temporary, made.values(), strict=True):
            path.write_text(text, encoding="utf-8")
    return list(made)


def _notebook(lab: Lab, text: Callable[[Any], str]) -> Any:
    """A notebook of the cells with texts of a form; cells keep their ids in every form."""
    from nbformat.v4 import new_notebook

    cells = copy.deepcopy(lab.cells)
    for number, cell in enumerate(cells):
        cell.source = text(cell)
        kind_name = role(cell)
        cell.id = "-".join(kind_name) if kind_name else f"cell-{number}"
        cell.metadata["deletable"] = False
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "lab": lab.name})


def is_of_the_student(cell: Any) -> bool:
    """Whether a cell is the one with the student's name."""
    return cell.cell_type == "code" and cell.source.lstrip().startswith("student =")


def _answered(cell: Any) -> str:
    """The text of a cell, without the blanks of an answer."""
    if "answer" not in cell.metadata:
        return cell.source
    blank = re.compile(r"\s*(\w+ = )?\.\.\.\s*(#.*)?")
    return "\n".join(line for line in cell.source.splitlines() if not blank.fullmatch(line))


def _keeping_names(lab: Lab) -> Callable[[Any], str]:
    """A function that returns the text of a cell with hidden blocks that keep values and take names back."""
    read = own_names.read_by_checks(lab)

    def text(cell: Any) -> str:
        lines = cell.source.splitlines()
        if "check" in cell.metadata:
            found = 0, own_names.taking_back(lab, cell.metadata["check"])
        else:
            found = own_names.keeping(cell, read) or (0, "")
        after, code = found
        block = [f"### BEGIN {HIDDEN}", code, f"### END {HIDDEN}"] if code else []
        return "\n".join([*lines[:after], *block, *lines[after:]])

    return text


def _otter_marker(found: re.Match[str]) -> str:
    return "# BEGIN SOLUTION NO PROMPT" if found[1] == "BEGIN" else "# END SOLUTION"


def _otter_test(code: str) -> list[Any]:
    """The cells of a hidden test of Otter; its output is discarded, errors remain."""
    from nbformat.v4 import new_code_cell, new_raw_cell

    inside = "\n".join(f"    {line}" if line else line for line in code.splitlines())
    silent = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n{inside}"
    return [new_raw_cell("# BEGIN TESTS"), new_code_cell(f"# HIDDEN\n{silent}"), new_raw_cell("# END TESTS")]
