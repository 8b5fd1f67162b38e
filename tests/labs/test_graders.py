"""nbgrader and Otter give the points that `warpbots lab grade` gives."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from submissions import filled_in, hand_in, questions, write_small

from warpbots.labs import Numbers, forms, source
from warpbots.labs.grade import grade

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    lab = source.read(write_small(folder))
    forms.write(lab, folder)
    return folder, lab


def answers_and_points():
    """Answers that differ from the right ones, and points, by student."""
    side = Numbers("ada", "small").number("side", 1.0, 9.0)
    return {
        "ada": ({}, (3, 2)),
        "bob": ({"area": "area = side"}, (0, 2)),
        "carl": ({"area": None, "double": None}, (0, 0)),
        "dora": ({"area": "area = 1e4 * side**2"}, (0, 2)),
        "eve": ({"area": f"area = {side**2}", "double": "double = lambda x: y"}, (0, 0)),
        "kim": ({"area": "area = side\n\n\ndef check(*_):\n    pass", "double": "double = abs"}, (0, 0)),
        "lea": ({"area": "area = 1e4\nabs = lambda x: 0.0"}, (0, 2)),
        "moe": ({"area": "side = area = 1.0"}, (0, 2)),
    }


def changed(notebook, student):
    """The notebook of a student who changed more than answers: the name, cells of the lab, the order of cells."""
    check = {cell.metadata["check"]: cell for cell in notebook.cells if "check" in cell.metadata}
    answer = {cell.metadata["answer"]: cell for cell in notebook.cells if "answer" in cell.metadata}
    match student:
        case "gil" | "hal":
            (name,) = filter(forms.is_of_the_student, notebook.cells)
            name.source = f'student = "{NAMES[student]}"'
        case "ida":
            for cell in check.values():
                cell.source = "print('correct')"
        case "jan":
            notebook.cells.remove(check["area"])
        case "pia":
            (own,) = (cell for cell in notebook.cells if cell.source.startswith("from warpbots"))
            own.source += "\nside = 1.0"
        case "rex":
            notebook.cells.remove(check["area"])
            notebook.cells.remove(answer["area"])
        case "fay":
            notebook.cells.remove(answer["double"])
            notebook.cells.insert(notebook.cells.index(answer["area"]), answer["double"])
    return notebook


NAMES = {"gil": "", "hal": "ada"}
"""Names that students wrote into their notebooks, if they are not the names under which the notebooks came."""

CHANGED = {"fay": (3, 2), "gil": (0, 0), "hal": (0, 0), "ida": (0, 0), "jan": (3, 2), "pia": (0, 2), "rex": (0, 2)}
"""Points of those who changed more than answers."""


def handed_in(blank, lab, student):
    """The notebook of a student, from one that was handed out."""
    import nbformat

    answers = {"area": "area = side", "double": "def double(x):\n    return x"} if student == "ida" else {}
    answers = {"area": "area = 1.0"} if student == "pia" else answers
    answers, _ = answers_and_points().get(student, (answers, None))
    return changed(filled_in(nbformat.read(blank, 4), lab, student, answers), student)


def run(*words, folder, **environment):
    """Run a program of this environment, whose folder of programs comes first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = os.environ | {"PATH": path} | environment
    program = [sys.executable, "-m", *words]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nbgrader(course):
    import nbformat

    pytest.importorskip("nbgrader")
    folder, lab = course[0] / "nbgrader", course[1]
    run("nbgrader", "generate_assignment", "small", folder=folder)
    blank = folder / "release" / "small" / "small.ipynb"
    assert "side**2" not in blank.read_text()
    expected = {student: points for student, (_, points) in answers_and_points().items()} | CHANGED
    del expected["rex"]  # nbgrader ends with an error: it does not know where to put the check back
    for student in expected:
        path = folder / "submitted" / student / "small" / "small.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(handed_in(blank, lab, student), path)
    run("nbgrader", "autograde", "small", folder=folder)
    run("nbgrader", "export", folder=folder)
    table = {
        row["student_id"]: float(row["score"])
        for row in csv.DictReader((folder / "grades.csv").read_text().splitlines())
    }
    assert table == {student: sum(points) for student, points in expected.items()}


def test_our_command(course):
    folder, lab = course
    expected = {student: points for student, (_, points) in answers_and_points().items()} | CHANGED
    for student in expected:
        hand_in(folder / "ours", lab, student, handed_in(folder / "student" / "small.ipynb", lab, student))
    table = {one.student: tuple(one.points[name] for name in questions(lab)) for one in grade(folder / "ours", lab)}
    assert table == expected


def test_otter(course):
    import nbformat

    pytest.importorskip("otter")
    folder, lab = course[0] / "otter", course[1]
    run("otter", "assign", "small.ipynb", "made", folder=folder)
    blank = folder / "made" / "student" / "small.ipynb"
    assert "side**2" not in blank.read_text()
    (autograder,) = (folder / "made" / "autograder").glob("*.zip")
    expected = {name: answers_and_points()[name][1] for name in ("ada", "eve", "kim", "lea", "moe")} | CHANGED
    expected["pia"] = (3, 2)  # Otter does not restore cells of the lab
    for student, points in expected.items():
        nbformat.write(handed_in(blank, lab, student), folder / f"{student}.ipynb")
        out = folder / student
        out.mkdir()
        words = ["run", "-a", str(autograder), "-o", str(out), f"{student}.ipynb"]
        run("otter", *words, folder=folder, WARPBOTS_STUDENT=student)
        found = {test["name"]: test.get("score") for test in json.loads((out / "results.json").read_text())["tests"]}
        assert [found[name] for name in questions(lab)] == list(points)
