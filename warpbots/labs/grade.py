"""Grading: every notebook that was handed in is run with the hidden tests of its lab."""

import asyncio
import atexit
import csv
import dataclasses
import os
import re
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any

from warpbots.labs import forms
from warpbots.labs.source import Lab, role
from warpbots.labs.student_numbers import normalised
from warpbots.output_files import replacing

__all__ = ["Grade", "grade", "handed_in"]

_GRADING = {"WARPBOTS_STATIC": "1", "TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1", "WARPBOTS_THREADS": "1"}
"""Environment of a notebook that is graded: pictures instead of players, no bars, and one core for each notebook."""

_NO_KERNEL = "the kernel did not start"
"""Begin of the remark about a notebook none of whose cells could run."""

_UNUSUAL = re.compile(r"\b(?:class|get_ipython|__\w+__|cell_contents|ctypes|gc|exec|eval|setattr)\b")
"""Words of code that can outwit a check: types with arithmetic of their own, and the insides of Python and IPython."""


@dataclasses.dataclass(frozen=True)
class Grade:
    """The result of one student.

    Attributes:
        student: Name under which the notebook was handed in.
        points: Points by the name of the question; None for an open question, which a person marks.
        said: Why points are missing, by the name of the question.
        remarks: Sentences about the notebook: cells that were moved or removed, a kernel that ended.
        notebook: The notebook with the outputs of the tests, as feedback.
    """

    student: str
    points: dict[str, int | None]
    said: dict[str, str]
    remarks: list[str]
    notebook: Any

    @property
    def total(self) -> int:
        """Sum of the points, without those of open questions."""
        return sum(points for points in self.points.values() if points is not None)


def handed_in(folder: str | Path, lab: Lab) -> dict[str, Path]:
    """The notebooks of a lab in a folder, by student: ``STUDENT/LAB.ipynb`` or ``STUDENT.ipynb``.

    Raises:
        FileNotFoundError: There is no such folder, or it has no such notebook.
        ValueError: Two notebooks belong to one student.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; give the folder with the notebooks of the students")
    paths = [*folder.glob(f"*/{lab.name}.ipynb"), *folder.glob("*.ipynb")]
    if not paths:
        raise FileNotFoundError(f"{folder} has neither STUDENT/{lab.name}.ipynb nor STUDENT.ipynb; nothing to grade")
    found: dict[str, Path] = {}
    for path in sorted(paths):
        student = normalised(path.stem if path.parent == folder else path.parent.name)
        if student in found:
            raise ValueError(f"{path} and {found[student]} belong to one student, {student!r}; remove one")
        found[student] = path
    return found


def grade(
    folder: str | Path,
    lab: Lab,
    out: str | Path | None = None,
    parallel: int | None = None,
    timeout: float = 120.0,
) -> list[Grade]:
    """Grade the notebooks of a lab, write a table and the feedback for each student, and return the grades.

    A notebook is put together anew: the cells of the lab in their order with their hidden tests, the answers of the
    student in theirs, and further cells of the student where they stood. It runs in a kernel of its own, without a
    network, and knows who handed it in (`Numbers`).

    Args:
        folder: Folder with ``STUDENT/LAB.ipynb`` or ``STUDENT.ipynb``.
        lab: The lab (`read`).
        out: Folder for ``LAB.csv`` and the notebooks ``STUDENT/LAB.ipynb`` with their outputs; default: `folder` with
            "-graded" after its name.
        parallel: Notebooks at once; default: the number of cores.
        timeout: Longest time of a cell [s].

    Raises:
        ImportError: nbclient or ipykernel is not installed.
        OSError: A notebook cannot be read, or a result cannot be written.
        RuntimeError: No kernel starts, so that no notebook could be run.
        ValueError: `parallel` or `timeout` is not positive, or two notebooks belong to one student.
    """
    if timeout <= 0.0 or (parallel is not None and parallel < 1):
        raise ValueError(f"timeout and parallel must be above 0, got timeout={timeout}, parallel={parallel}")
    _check_kernel()
    found = handed_in(folder, lab)
    out = Path(out) if out is not None else Path(folder).with_name(f"{Path(folder).resolve().name}-graded")
    whole = forms.graded(lab)  # here, because ast.parse of Python 3.11 fails at random in threads
    with ThreadPoolExecutor(parallel or os.cpu_count() or 1) as pool:
        grades = list(pool.map(lambda item: _grade_one(*item, lab, whole, timeout), found.items()))
    failed = [remark for one in grades for remark in one.remarks if remark.startswith(_NO_KERNEL)]
    if len(failed) == len(grades):
        raise RuntimeError(f"nothing was graded: {failed[0]}")
    _write(out, lab, grades)
    return grades


def _check_kernel() -> None:
    """Check that notebooks can be run here."""
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
    except ImportError as fault:
        raise ImportError(
            f'grading runs notebooks, and {fault.name} is missing: pip install "warpbots[labs]"'
        ) from fault


def _grade_one(student: str, path: Path, lab: Lab, whole: Any, timeout: float) -> Grade:
    """Run one notebook and count its points.

    Args:
        student: Name of the student.
        path: The notebook that was handed in.
        lab: The lab.
        whole: Its notebook with hidden tests (`forms.graded`).
        timeout: Longest time of a cell [s].
    """
    import nbformat

    nothing = {question.name: None if question.open else 0 for question in lab.questions}
    try:
        theirs = nbformat.read(path, as_version=4)
    except Exception as fault:  # whatever a file that is no notebook makes the reader raise
        return Grade(student, nothing, {}, [f"{path.name} cannot be read as a notebook: {fault}"], deepcopy(whole))
    notebook, remarks = _put_together(deepcopy(whole), theirs)
    name = _name_in(notebook)
    if name is None:
        remarks.append("the notebook has no name in its cell that begins with `student =`")
    elif name != student:
        said = f"the notebook has the name {name!r}, which is not the name under which it was handed in"
        return Grade(student, nothing, {}, [*remarks, said], notebook)
    remarks += _unusual(notebook, whole) + _run(notebook, path.parent, student, timeout)
    cells = {cell.metadata["check"]: cell for cell in notebook.cells if "check" in cell.metadata}
    points: dict[str, int | None] = {}
    said = {}
    for question in lab.questions:
        if question.open:
            points[question.name] = None
            continue
        fault = _fault(cells[question.name])
        points[question.name] = 0 if fault else question.points
        if fault:
            said[question.name] = fault
    return Grade(student, points, said, remarks, notebook)


def _put_together(notebook: Any, theirs: Any) -> tuple[Any, list[str]]:
    """The lab's cells with the student's answers and further cells; what was not as it should be, in words."""
    own = {cell.id: cell for cell in notebook.cells}
    of_student = {}
    further: dict[str | None, list[Any]] = {}  # by the id of the lab's cell that they follow
    order, last, remarks = [], None, []
    for cell in theirs.cells:
        key = _key(cell, own)
        if key is None:
            cell.setdefault("id", f"further-{sum(map(len, further.values()))}")  # format 4.4 has no ids
            further.setdefault(last, []).append(cell)
        elif key in of_student:
            remarks.append(f"cell {key} occurs twice; the first one counts")
        else:
            of_student[key], last = cell, key
            order.append(key)
    expected = [key for key in own if key in of_student]
    if order != expected:
        moved = next(a for a, b in zip(order, expected, strict=True) if a != b)
        remarks.append(f"cells were moved, from {moved} on; they were put back in the order of the lab")
    missing = [key for key, cell in own.items() if key not in of_student and (role(cell) or cell.cell_type == "code")]
    if missing:
        remarks.append(f"missing cells were put back: {', '.join(missing)}")
    for key, cell in own.items():
        if key in of_student and (forms.is_of_the_student(cell) or (role(cell) or ("",))[0] in ("answer", "open")):
            cell.source = of_student[key].source
    notebook.cells = [*further.get(None, [])]
    for key, cell in own.items():
        notebook.cells += [cell, *further.get(key, [])]
    return notebook, remarks


def _unusual(notebook: Any, whole: Any) -> list[str]:
    """Cells of a student with code that a person should read, in words; what the lab uses itself is not unusual."""
    own = "\n".join(cell.source for cell in whole.cells)
    modules = re.findall(r"^import .*?(\w+)$", own, re.MULTILINE)
    rebound = re.compile(rf"^\s*(?:{'|'.join(modules)})\.[\w.]+(?=\s*=[^=])", re.MULTILINE) if modules else None
    lab_cells = {cell.source for cell in whole.cells}
    remarks = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.source in lab_cells:
            continue
        words = _UNUSUAL.findall(cell.source) + (rebound.findall(cell.source) if rebound else [])
        found = [word.strip() for word in dict.fromkeys(words) if not re.search(rf"\b{re.escape(word.strip())}\b", own)]
        if found:
            remarks.append(f"cell {cell.id} uses {', '.join(found)}, which can outwit a check; read it")
    return remarks


def _name_in(notebook: Any) -> str | None:
    """The name of the student in a notebook, normalised; None if there is none."""
    for cell in filter(forms.is_of_the_student, notebook.cells):
        if found := re.search(r"""^student = (["'])(.*)\1""", cell.source, re.MULTILINE):
            return normalised(found[2]) or None
    return None


def _key(cell: Any, own: dict[str, Any]) -> str | None:
    """Id of the lab's cell that a student's cell is; by its mark, as some programs give cells new ids."""
    kind_name = role(cell)
    if kind_name and "-".join(kind_name) in own:
        return "-".join(kind_name)
    return cell.get("id") if cell.get("id") in own else None


def _run(notebook: Any, folder: Path, student: str, timeout: float) -> list[str]:
    """Run a notebook in place; what ended it early, in words."""
    import nbclient
    from nbclient.exceptions import DeadKernelError

    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        notebook, timeout=timeout, startup_timeout=300, interrupt_on_timeout=True, allow_errors=True,
        kernel_name="python3", extra_arguments=["--IPKernelApp.log_level=40"],  # errors of the kernel itself
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    try:
        asyncio.run(client.async_execute(env=os.environ | _GRADING | {"WARPBOTS_STUDENT": student}))
    except DeadKernelError:
        ended = next((c.id for c in notebook.cells if c.cell_type == "code" and c.execution_count is None), "the end")
        return [f"the kernel ended at cell {ended}: out of memory, or a crash; later cells have no points"]
    except (RuntimeError, OSError) as fault:
        if any(cell.get("execution_count") for cell in notebook.cells):
            raise
        atexit.unregister(client._cleanup_kernel)  # it would fail, as there is nothing to clean up
        return [
            f"{_NO_KERNEL}: {fault}; `jupyter kernelspec list` shows where python3 is, `python -m ipykernel install "
            "--sys-prefix` repairs it; then grade again"
        ]
    answers = [cell for cell in notebook.cells if (role(cell) or ("",))[0] == "answer"]
    errors = [(cell.id, output) for cell in answers for output in cell.outputs if output.output_type == "error"]
    slow = [cell.id for cell in notebook.cells if _seconds(cell) > timeout]
    return [f"cell {name} took longer than {timeout:g} s and was stopped" for name in slow] + [
        f"cell {name} raises {error.ename}: {error.evalue}" for name, error in errors if name not in slow
    ]


def _seconds(cell: Any) -> float:
    """How long a cell ran [s]; not from an exception, because searches end with their best values when interrupted."""
    times = cell.metadata.get("execution", {})
    if not {"iopub.status.busy", "shell.execute_reply"} <= times.keys():
        return 0.0
    begin, end = (datetime.fromisoformat(times[key]) for key in ("iopub.status.busy", "shell.execute_reply"))
    return (end - begin).total_seconds()


def _fault(check: Any) -> str | None:
    """Why a check gives no points, in one line; None if it gives them."""
    if check.execution_count is None and not check.outputs:
        return "not run"
    for output in check.outputs:
        if output.output_type == "error":
            return output.evalue if output.ename == "WrongAnswer" else f"{output.ename}: {output.evalue}"
    return None


def _write(out: Path, lab: Lab, grades: list[Grade]) -> None:
    """Write the table and the notebooks with their outputs."""
    import nbformat

    out.mkdir(parents=True, exist_ok=True)
    notebooks = [out / grade.student / f"{lab.name}.ipynb" for grade in grades]
    for path in notebooks:
        path.parent.mkdir(exist_ok=True)
    table = out / f"{lab.name}.csv"
    with replacing(table, *notebooks) as (temporary, *files):
        with temporary.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            names = [question.name for question in lab.questions]
            rows.writerow(["student", *names, "total", "remarks"])
            rows.writerow(["(points)", *(q.points for q in lab.questions), sum(q.points for q in lab.questions), ""])
            for one in grades:
                shown = ["" if one.points[name] is None else one.points[name] for name in names]
                why = [*one.remarks, *(f"{name}: {text}" for name, text in one.said.items())]
                rows.writerow([one.student, *shown, one.total, " | ".join(why)])
        for path, one in zip(files, grades, strict=True):
            nbformat.write(one.notebook, path)
