"""Checks of answers to exercises."""

import logging
import math
import os
import subprocess
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest
import torch

from warpbots import exercises


def judge(source: str, **answers):
    """Run a check cell in a notebook that has these variables."""
    exec(source, {"check": exercises.check} | answers)


ROOT = 'check("Exercise 1", lambda root: abs(root**2 - 2) < 1e-6, "Square it.")'


def test_a_right_answer_passes(capsys):
    judge(ROOT, root=2**0.5)
    assert capsys.readouterr().out == "Exercise 1: correct\n"


def unwritten(x):
    """A function whose body is still to be written."""


@pytest.mark.parametrize("blank", [..., None, "...", "", [..., ...], (1.0, ...), lambda x: ..., unwritten])
@pytest.mark.parametrize("check", [ROOT, 'check("Exercise 1", lambda root: root != 3, "Not three.")'])
def test_an_open_exercise_does_not_pass(blank, check):
    """Graders give points to a cell that does not raise; an open exercise must raise even if it passes the check."""
    where = "in `root`" if callable(blank) else "after `root =`"
    with pytest.raises(exercises.WrongAnswer, match=f"Exercise 1: no answer yet; replace the three dots {where}"):
        judge(check, root=blank)


@pytest.mark.parametrize(("answer", "passes"), [
    (0, "root == 0"), (False, "not root"), ([], "root == []"), (lambda x: 0, "root(2) == 0"), (math.sqrt, "root(4) == 2")
])  # fmt: skip
def test_answers_that_resemble_a_blank_pass(answer, passes, capsys):
    judge(f'check("Exercise 1", lambda root: {passes}, "Think.")', root=answer)
    assert capsys.readouterr().out == "Exercise 1: correct\n"


@pytest.mark.filterwarnings("default")
def test_nothing_goes_to_stderr(capfd):
    """Neither warnings, logs, nor output of compiled code or other processes: nbgrader would give no points."""

    def noisy(root):
        warnings.warn("its shape holds 0.5603 kg", stacklevel=1)
        logging.getLogger().warning("a line of a log")
        os.write(2, b"compiled code\n")
        subprocess.run([sys.executable, "-c", "import sys; print('another process', file=sys.stderr)"], check=True)
        print("  5%\r100%", file=sys.stderr)
        return abs(root**2 - 2) < 1e-6

    log = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(log)
    try:
        judge('check("Exercise 1", noisy, "Square it.")', noisy=noisy_of(noisy, root=2**0.5))
        with pytest.raises(exercises.WrongAnswer):
            judge('check("Exercise 1", noisy, "Square it.")', noisy=noisy_of(noisy, root=2.0))
    finally:
        logging.getLogger().removeHandler(log)
    out, err = capfd.readouterr()
    assert err == ""
    assert out.count("Exercise 1: correct\n") == 1
    for line in ("UserWarning: its shape", "a line of a log", "compiled code", "another process", "100%"):
        assert out.count(f"Exercise 1: {line}") == 2
    assert log.stream is sys.stderr


def noisy_of(function, **answers):
    """The function as if defined in a notebook with these answers."""
    return types.FunctionType(function.__code__, function.__globals__ | answers)


def test_the_start_of_warp_says_nothing_about_an_absent_gpu():
    """On stderr it would cost the points of the first cell that uses Warp."""
    code = """
        import warpbots as wb
        body = wb.SoftBody("b", wb.shapes.Box((0.1, 0.1), (0.3, 0.3)), wb.Material(1e4, 0.25))
        wb.Simulation(wb.Scene([body]), wb.MassSpring(0.1), 2e-3, substeps=1)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert run.stderr == ""


@pytest.mark.parametrize("passes", ["lambda: True", "print", "3"])
def test_a_check_without_answers_is_refused(passes):
    with pytest.raises(ValueError, match="check of 'Exercise 1': passes must be a function whose parameters have"):
        judge(f'check("Exercise 1", {passes}, "Think.")')


@pytest.mark.parametrize(("answers", "said"), [
    ({"root": 1.5}, "Exercise 1: not yet. Square it."),
    ({}, "Exercise 1: root is not defined; run the cells above first"),
    ({"root": "two"}, r"Exercise 1: `root` is a str, which this check cannot use \(unsupported.*\)\. Square it\."),
    ({"root": [2**0.5]}, r"Exercise 1: `root` is a list, which this check cannot use \(.*\)\. Square it\."),
    ({"root": abs}, r"Exercise 1: the answer raises TypeError.*\. Square it\."),
    ({"root": np.array([2**0.5, 1.0])}, r"Exercise 1: `root` has 2 values, and one is asked for\. Square it\."),
    ({"root": torch.tensor([[2.0], [1.0]])}, r"Exercise 1: `root` has 2 values, and one is asked for\. Square it\."),
    ({"root": torch.zeros(0)}, r"Exercise 1: `root` has 0 values, and one is asked for\. Square it\."),
])  # fmt: skip
def test_what_does_not_pass_is_said_in_one_sentence(answers, said):
    with pytest.raises(exercises.WrongAnswer, match=said):
        judge(ROOT, **answers)


@pytest.mark.parametrize("check", ["abs(float(root) - 2) < 1e-6", "eval(str(root)) == 2"])
def test_a_number_in_quotes_does_not_pass(check):
    """Neither `float` nor a file of text knows the difference."""
    with pytest.raises(exercises.WrongAnswer, match="`root` is a text; write the number without quotes"):
        judge(f'check("Exercise 1", lambda root: {check}, "Think.")', root="2e0")


@pytest.mark.parametrize("answer", [np.array([2.0]), np.array([[2]]), torch.tensor([2.0]), torch.tensor([[2.0]])])
@pytest.mark.parametrize("check", ["float(f'{root:.3g}') == 2", "torch.full((3,), root).sum() == 6", "root.ndim == 0"])
def test_one_value_in_brackets_is_a_number(answer, check, capsys):
    judge(f'check("Exercise 1", lambda root: {check}, "Think.")', root=answer, torch=torch)
    assert capsys.readouterr().out == "Exercise 1: correct\n"


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
