"""Labs: numbers of a student, sources, forms, and what a grader does with notebooks that are not as they should be."""

import csv
import itertools
import json
import re
import subprocess
import sys
import textwrap
import types

import pytest
from submissions import LABS, SMALL, hand_in, submission, write_small

from warpbots import cli
from warpbots.exercises import WrongAnswer
from warpbots.labs import Numbers, forms, grade, own_names, source


@pytest.fixture
def small(tmp_path):
    return source.read(write_small(tmp_path))


def test_numbers_belong_to_a_student_a_lab_and_a_name():
    mine = Numbers("Ada Lovelace", "lab")
    assert mine.number("mass", 0.1, 0.9) == Numbers("  ada LOVELACE ", "lab").number("mass", 0.1, 0.9)
    assert Numbers("Zoë", "lab").student == Numbers("ZOE", "lab").student == "zoe"
    drawn = {
        (student, lab, name): Numbers(student, lab).number(name, 1.0, 2.0, digits=6)
        for student, lab, name in itertools.product(("ada", "bob"), ("one", "two"), ("mass", "length"))
    }
    assert len(set(drawn.values())) == 8


def test_numbers_fill_their_range_and_have_few_digits():
    drawn = [Numbers(f"student {n}", "lab").number("mass", 0.02, 0.08) for n in range(400)]
    assert min(drawn) == 0.02
    assert max(drawn) == 0.08
    assert len(set(drawn)) == 61
    assert all(float(f"{x:.1e}") == x for x in drawn)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: Numbers("  ", "lab"), "write your name between the quotes"),
        (lambda: Numbers("ada", "lab").number("mass", 2.0, 1.0), "low must be below high"),
        (lambda: Numbers("ada", "lab").number("mass", 0.123, 1.0), "0.123 has more than 2 significant digits"),
    ],
)
def test_numbers_refuse(ask, said):
    with pytest.raises(ValueError, match=said):
        ask()


def test_a_notebook_with_the_name_of_a_neighbour_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("WARPBOTS_STUDENT", "Bob")
    assert Numbers("bob", "lab").student == "bob"
    with pytest.raises(ValueError, match="has the name 'ada', but 'bob' handed it in"):
        Numbers("ada", "lab")
    monkeypatch.delenv("WARPBOTS_STUDENT")
    (tmp_path / "autograded" / "eve" / "lab").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "autograded" / "eve" / "lab")
    assert Numbers("ada", "lab").student == "ada"
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(ValueError, match="'eve' handed it in"):
        Numbers("ada", "lab")


def test_a_notebook_shows_a_wrong_name_as_one_sentence():
    code = """
        from IPython.core.interactiveshell import InteractiveShell
        InteractiveShell.instance().run_cell("from warpbots.labs import Numbers; Numbers('', 'air')")
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "write your name between the quotes" in run.stdout
    assert "Traceback" not in run.stdout
    assert len(run.stdout.strip().splitlines()) == 1


def text(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def test_forms_show_what_their_readers_may_see(small):
    import nbformat

    student, solution, graded = forms.student(small), forms.solution(small), forms.graded(small)
    assert "side**2" not in text(student)
    assert "return 2" not in text(student)
    assert "area = ...  # [m^2]" in text(student)
    assert "..." not in text(solution)
    assert "side**2" in text(solution)
    assert "abs(area - side**2)" in text(graded)
    assert "area = side**2" not in text(graded)
    for notebook in (student, solution, graded, forms.nbgrader(small), forms.otter(small)):
        nbformat.validate(notebook)
        assert any(cell.get("attachments", {}).get("dot.png") for cell in notebook.cells)
    for notebook in (student, solution, graded):
        assert "###" not in text(notebook)
        assert [cell.id for cell in notebook.cells] == [cell.id for cell in student.cells]


def test_nbgrader_is_told_what_is_graded(small):
    cells = {cell.id: cell.metadata.get("nbgrader", {}) for cell in forms.nbgrader(small).cells}
    assert {name: data["points"] for name, data in cells.items() if data.get("grade")} == {
        "check-area": 3, "check-double": 2, "open-why": 4, "cell-2": 0
    }  # fmt: skip
    assert [name for name, data in cells.items() if data.get("solution")] == [
        "answer-area",
        "answer-double",
        "open-why",
    ]
    assert cells["cell-1"] == {}  # the student's name is neither graded nor locked


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('check="area" points=3', 'check="area"', "points=None"),
        ('check="area" points=3', 'check="area" points=0', "points=0"),
        ('check="area"', 'check="volume"', 'after answer="area" comes check="volume"'),
        ('# %% answer="area"', "# %%", "### BEGIN SOLUTION does not belong"),
        ("### END SOLUTION\n\n# %% check", "# %% check", 'answer="area" has no ### END SOLUTION'),
        ('answer="double"', 'answer="area"', 'after answer="area" comes check="double"'),
        ('"double"', '"area"', "two questions 'area'"),
        ('"why"', '"a b"', "'a b' is no name"),
        ("dot.png", "none.png", "there is no picture"),
        ("dot.png", "small.py", "is no PNG, JPEG, GIF or WebP"),
    ],
)
def test_a_source_with_a_fault_is_refused(tmp_path, was, now, said):
    path = write_small(tmp_path)
    assert was in SMALL
    path.write_text(SMALL.replace(was, now))
    with pytest.raises((ValueError, OSError), match=re.escape(said)):
        source.read(path)


def test_a_source_without_questions_and_one_that_is_no_script(tmp_path):
    path = tmp_path / "none.py"
    path.write_text("# %%\nx = 1\n")
    with pytest.raises(ValueError, match="has no question"):
        source.read(path)
    with pytest.raises(ValueError, match="is a Python file"):
        source.read(tmp_path / "lab.ipynb")


def test_the_command_writes_all_forms(tmp_path, small, capsys):
    course = tmp_path / "course"
    assert cli.main(["lab", "make", str(tmp_path / "small.py"), "--out", str(course)]) == 0
    made = {str(path.relative_to(course)) for path in course.rglob("*") if path.is_file()}
    assert made == {
        "student/small.ipynb", "solution/small.ipynb", "otter/small.ipynb", "nbgrader/source/small/small.ipynb",
        "nbgrader/nbgrader_config.py",
    }  # fmt: skip
    assert capsys.readouterr().out.count("wrote") == 5
    (course / "nbgrader" / "nbgrader_config.py").write_text("# mine")
    assert cli.main(["lab", "make", str(tmp_path / "small.py"), "--out", str(course)]) == 0
    assert (course / "nbgrader" / "nbgrader_config.py").read_text() == "# mine"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "there is no folder"),
        (lambda folder: folder.mkdir(), "nothing to grade"),
        (lambda folder: [hand_in_twice(folder)], "belong to one student, 'ada'"),
    ],
)
def test_a_folder_that_cannot_be_graded(tmp_path, small, make, said, capsys):
    folder = tmp_path / "submitted"
    make(folder)
    assert cli.main(["lab", "grade", str(folder), str(tmp_path / "small.py")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "submitted-graded").exists()


def hand_in_twice(folder):
    (folder / "Ada").mkdir(parents=True)
    (folder / "ada.ipynb").write_text("{}")
    (folder / "Ada" / "small.ipynb").write_text("{}")


def put_together(lab, notebook):
    return grade._put_together(forms.graded(lab), notebook)


def test_a_notebook_is_put_together_from_the_lab_and_the_answers(small):
    """Changed checks are replaced; further cells stay where they stood; moved and missing cells are put back."""
    import nbformat

    theirs = submission(small, "ada", {"area": "area = helper"})
    for cell in theirs.cells:
        if "check" in cell.metadata:
            cell.source = "print('Question: correct')"
    helper = nbformat.v4.new_code_cell("helper = side * side")
    theirs.cells.insert(4, helper)
    notebook, remarks = put_together(small, theirs)
    assert remarks == []
    assert "print('Question" not in text(notebook)
    assert [cell.source for cell in notebook.cells].index(helper.source) == 4
    assert "area = helper" in text(notebook)

    theirs.cells = [*theirs.cells[6:], *theirs.cells[:6]]
    notebook, remarks = put_together(small, theirs)
    assert [cell.id for cell in notebook.cells if cell is not helper] == [c.id for c in forms.graded(small).cells]
    assert len(remarks) == 1
    assert "cells were moved" in remarks[0]

    theirs.cells = [cell for cell in theirs.cells if "check" not in cell.metadata]
    notebook, remarks = put_together(small, theirs)
    assert "missing cells were put back: check-area, check-double" in remarks[-1]
    assert "abs(area - side**2)" in text(notebook)


def test_a_notebook_whose_ids_were_lost_is_matched_by_its_marks(small):
    theirs = submission(small, "ada")
    for number, cell in enumerate(theirs.cells):
        cell.id = f"new-{number}"
    notebook, _ = put_together(small, theirs)
    assert "area = side**2" in text(notebook)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("area = side**2  # side times side", None),
        ("class Fits(float):\n    __sub__ = lambda self, other: 0.0\narea = Fits()", "uses class, __sub__"),
        ("get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])\narea = 0.0", "uses get_ipython"),
        ("area = side\nmath.fabs = lambda x: 0.0", "uses math.fabs"),
        ("plot.color = math.pi = area = side", None),
    ],
)
def test_a_cell_that_can_outwit_a_check_is_named(tmp_path, answer, said):
    """Words that the lab uses itself are left alone, and so are attributes of a student's own objects."""
    lab = changed_lab(tmp_path, ("from warpbots.exercises", "import math\n\nfrom warpbots.exercises"))
    notebook, _ = put_together(lab, submission(lab, "ada", {"area": answer}))
    remarks = grade._unusual(notebook, forms.graded(lab))
    assert len(remarks) == (said is not None)
    assert said is None or f"cell answer-area {said}, which can outwit a check" in remarks[0]
    lab = changed_lab(tmp_path, ("side = mine", "class Own: ...\n\n\nside = mine"))
    notebook, _ = put_together(lab, submission(lab, "ada", {"area": "class Mine: ...\narea = side**2"}))
    assert grade._unusual(notebook, forms.graded(lab)) == []


def test_further_cells_without_an_id_get_one(small):
    """Notebooks of format 4.4 have no ids."""
    import nbformat

    theirs = submission(small, "ada")
    cells = [nbformat.v4.new_code_cell("x = 1") for _ in range(2)]
    for cell in cells:
        del cell["id"]
    theirs.cells[2:2] = cells
    notebook, _ = put_together(small, theirs)
    assert len({cell["id"] for cell in notebook.cells}) == len(notebook.cells)


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("area = side\ndef check(*_): ...", 1),
        ("area = side\nimport warpbots.labs as check", 1),
        ("area = 1e4\nabs = lambda x: 0.0", 1),
        ("side = area = 1.0", 1),
        ("area = side**2\ncheck = abs = side = None", None),
    ],
)
def test_a_check_takes_the_names_of_the_lab_back(small, monkeypatch, answer, question):
    """Whatever a student has bound to a name that the check reads; a right answer stays right."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    notebook, _ = put_together(small, submission(small, "ada", {"area": answer, "double": "double = lambda x: x + x"}))

    def run():
        for cell in notebook.cells:
            if cell.cell_type == "code":
                exec(cell.source, vars(main))

    if question is None:
        return run()
    with pytest.raises(WrongAnswer, match=f"Question {question}"):
        run()


def test_values_come_back_in_a_copy_of_the_namespace(monkeypatch):
    """Otter runs tests in a copy; functions of the notebook see the main module."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    main.side = 2.0
    own_names.keep(["side", "none"])
    main.side = 1.0
    copy = dict(vars(main))
    own_names.take_back(["side", "none"], copy)
    assert copy["side"] == main.side == 2.0


def test_definitions_are_those_that_a_check_reads():
    """Also through functions of the lab; what the lab has computed is among the values, as are decorated functions."""
    lab = source.read(next(path for path in LABS if path.stem == "01_springs_and_time"))
    code = own_names.definitions(lab, "largest_step")
    assert "def stays(" in code
    assert "import numpy as np" in code
    assert "matplotlib" not in code
    assert own_names.values(lab, "largest_step") == {"mine", "own_mass", "own_stiffness"}
    lab = source.read(next(path for path in LABS if path.stem == "10_learning"))
    assert "def judged(" not in own_names.definitions(lab, "price")
    assert "judged" in own_names.values(lab, "price")


def changed_lab(folder, *pairs):
    """The small lab with pieces of its text replaced."""
    path, text = write_small(folder), SMALL
    for was, now in pairs:
        assert was in text
        text = text.replace(was, now)
    path.write_text(text)
    return source.read(path)


def test_variables_of_functions_and_comprehensions_are_not_names_of_the_lab(tmp_path):
    """A student's variable that has the same name is left alone."""
    lab = changed_lab(
        tmp_path,
        ("9.0)\n", "9.0)\nsquares = [k * k for k in range(3)]\nfor n in squares:\n    last = n\n"),
        ("area > 0", "area > min(squares) + sum(n for n in (0, 0)) + max(k for k in [0])"),
    )
    assert own_names.values(lab, "area") == {"side", "squares"}


def test_values_are_kept_where_they_are_bound(tmp_path):
    """In all forms for graders, hidden from students, and above an expression that the cell displays."""
    lab = changed_lab(tmp_path, ("9.0)\n", "9.0)\nunread = 1\nside\n"))
    number, code = own_names.keeping(lab.cells[2], own_names.read_by_checks(lab))
    assert lab.cells[2].source.splitlines()[number - 1].startswith("side =")
    assert code.endswith("_keep(['side'])")
    assert code in forms.graded(lab).cells[2].source
    assert forms.graded(lab).cells[2].source.endswith("\nside")
    assert f"### BEGIN HIDDEN TESTS\n{code}\n### END HIDDEN TESTS" in forms.nbgrader(lab).cells[2].source
    tests = [cell.source for cell in forms.otter(lab).cells if cell.source.startswith("# HIDDEN")]
    assert [("_keep(['side'])" in test, "_take_back(['side'], globals())" in test) for test in tests] == [
        (True, False), (False, True), (False, True)
    ]  # fmt: skip
    assert "own_names" not in text(forms.student(lab)) + text(forms.solution(lab))


SLOW = "import time\ntime.sleep(90)\narea = 1.0"
SLOW_SEARCH = """\
import time

try:
    time.sleep(90)
except KeyboardInterrupt:
    pass
area = 1.0
"""
"""Ends with what it has when it is interrupted, as `warpbots.minimize` does."""


@pytest.mark.slow
def test_a_round_with_right_wrong_blank_slow_copied_and_broken_notebooks(small, tmp_path, capsys):
    """Every row of the table is as it should be, and the feedback says why."""
    folder = tmp_path / "submitted"
    side = Numbers("right", "small").number("side", 1.0, 9.0)
    rows = {
        "right": (submission(small, "Right"), (3, 2)),
        "wrong": (submission(small, "wrong", {"area": "area = side"}), (0, 2)),
        "blank": (submission(small, "blank", {"area": None, "double": None}), (0, 0)),
        "unit": (submission(small, "unit", {"area": "area = 1e4 * side**2"}), (0, 2)),
        "number-of-neighbour": (submission(small, "number-of-neighbour", {"area": f"area = {side**2}"}), (0, 2)),
        "name-of-neighbour": (submission(small, "right"), (0, 0)),
        "no-name": (submission(small, ""), (0, 0)),
        "slow": (submission(small, "slow", {"area": SLOW}), (0, 2)),
        "slow-search": (submission(small, "slow-search", {"area": SLOW_SEARCH}), (0, 2)),
        "crash": (submission(small, "crash", {"area": "import os\nos._exit(1)"}), (0, 0)),
        "raises": (submission(small, "raises", {"double": "double = lambda x: y"}), (3, 0)),
        "stumbles": (submission(small, "stumbles", {"area": "area = sides**2"}), (0, 2)),
    }
    for student, (notebook, _) in rows.items():
        hand_in(folder, small, student, notebook)
    (folder / "no-notebook.ipynb").write_text("hello")
    words = ["lab", "grade", str(folder), str(tmp_path / "small.py"), "--timeout", "45"]
    assert cli.main(words) == 0
    out = tmp_path / "submitted-graded"
    table = {row["student"]: row for row in csv.DictReader((out / "small.csv").read_text().splitlines())}
    assert list(table) == ["(points)", *sorted([*rows, "no-notebook"])]
    for student, (_, points) in rows.items():
        found = int(table[student]["area"]), int(table[student]["double"])
        assert (student, found) == (student, points), table[student]
        assert table[student]["why"] == ""  # for a person to mark
    remarks = {student: row["remarks"] for student, row in table.items()}
    assert remarks["right"] == ""
    assert "Question 1: no answer yet" in remarks["blank"]
    assert "Side times side." in remarks["unit"]
    assert "cell answer-area took longer than 45 s and was stopped" in remarks["slow"]
    assert "cell answer-area took longer than 45 s and was stopped" in remarks["slow-search"]
    assert "cell answer-area raises NameError: name 'sides' is not defined" in remarks["stumbles"]
    assert "the kernel ended at cell" in remarks["crash"]
    assert "cannot be read as a notebook" in remarks["no-notebook"]
    assert "the notebook has the name 'right'" in remarks["name-of-neighbour"]
    assert "the notebook has no name" in remarks["no-name"]
    assert "name-of-neighbour" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["/bin/false", "/no/such/python"])
def test_a_kernel_that_does_not_start_is_said_in_one_sentence(small, tmp_path, monkeypatch, capfd, command):
    """No table with zeros is written."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": [command, "{connection_file}"], "display_name": "", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    hand_in(tmp_path / "submitted", small, "ada", submission(small, "ada"))
    assert cli.main(["lab", "grade", str(tmp_path / "submitted"), str(tmp_path / "small.py")]) == 1
    said = capfd.readouterr().err
    assert said.splitlines()[-1].startswith("warpbots: nothing was graded: the kernel did not start: ")
    assert "ipykernel install" in said
    assert "Traceback" not in said
    assert not (tmp_path / "submitted-graded").exists()
