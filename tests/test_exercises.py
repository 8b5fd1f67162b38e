"""Checks of answers to exercises."""

import subprocess
import sys
import textwrap

import pytest

from warpbots import exercises


def judge(source: str, **answers):
    """Run a check cell in a notebook that has these variables."""
    exec(source, {"check": exercises.check} | answers)


ROOT = 'check("Exercise 1", lambda root: abs(root**2 - 2) < 1e-6, "Square it.")'


def test_a_right_answer_passes(capsys):
    judge(ROOT, root=2**0.5)
    assert capsys.readouterr().out == "Exercise 1: correct\n"


def test_an_open_exercise_stops_nothing(capsys):
    judge(ROOT, root=...)
    assert "no answer yet; replace the three dots after `root =`" in capsys.readouterr().out


@pytest.mark.parametrize(("answers", "said"), [
    ({"root": 1.5}, "Exercise 1: not yet. Square it."),
    ({}, "Exercise 1: root is not defined; run the cells above first"),
    ({"root": "two"}, "Exercise 1: the answer raises TypeError.*Square it."),
])  # fmt: skip
def test_what_does_not_pass_is_said_in_one_sentence(answers, said):
    with pytest.raises(exercises.WrongAnswer, match=said):
        judge(ROOT, **answers)


def test_a_cell_of_the_notebook_that_has_not_run_is_named():
    with pytest.raises(exercises.WrongAnswer, match="Exercise 2: measured is not defined; run the cells above first"):
        judge('check("Exercise 2", lambda x: measured() == x, "Measure.")', x=1.0)


def test_ipython_shows_the_sentence_alone():
    cell = textwrap.dedent("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("from warpbots.exercises import check; x = 2")
        shell.run_cell("check('Exercise 3', lambda x: x == 3, 'Count.')")
    """)
    shown = subprocess.run([sys.executable, "-c", cell], capture_output=True, text=True, check=True).stdout
    assert "Exercise 3: not yet. Count." in shown
    assert "Traceback" not in shown
