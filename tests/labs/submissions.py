"""Notebooks as students hand them in."""

from pathlib import Path

from PIL import Image

from warpbots.labs import forms, source

SMALL = """\
# %% [markdown]
# # A small lab
#
# ![A dot](dot.png)

# %%
student = ""

# %%
from warpbots.exercises import check
from warpbots.labs import Numbers

mine = Numbers(student, "small")
side = mine.number("side", 1.0, 9.0)

# %% [markdown]
# **Question 1 (3 points).** The area of a square.

# %% answer="area"
area = ...  # [m^2]
### BEGIN SOLUTION
area = side**2
### END SOLUTION

# %% check="area" points=3
check("Question 1", lambda area: area > 0, "An area is positive.")
### BEGIN HIDDEN TESTS
check("Question 1", lambda area: abs(area - side**2) < 1e-6, "Side times side.")
### END HIDDEN TESTS

# %% answer="double"
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
    ...


# %% check="double" points=2
check("Question 2", lambda double: double(side) == 2 * side, "Two times.")

# %% [markdown] open="why" points=4
# *Your answer.*
"""
"""The source of a small lab, whose notebooks run in a moment."""

LABS = sorted((Path(__file__).parents[2] / "tutorials" / "labs").glob("*.py"))


def write_small(folder):
    """Write `SMALL` and its picture; return the path of the source."""
    Image.new("L", (1, 1)).save(folder / "dot.png")
    path = folder / "small.py"
    path.write_text(SMALL)
    return path


def submission(lab, student, answers=None):
    """A student's notebook: with a name, and with answers by question; None leaves a blank, and the others are right."""
    return filled_in(forms.student(lab), lab, student, answers or {})


def filled_in(notebook, lab, student, answers):
    """A notebook that was handed out, by us or by a grader, with a name and answers as in `submission`."""
    for cell in notebook.cells:
        if forms.is_of_the_student(cell):
            cell.source = f'student = "{student}"'
        if "answer" in cell.metadata:
            name = cell.metadata["answer"]
            answer = answers[name] if name in answers else solution_of(lab, name)
            cell.source = cell.source if answer is None else answer
    return notebook


def hand_in(folder, lab, student, notebook):
    """Put a notebook where the grader looks for it."""
    import nbformat

    path = folder / student / f"{lab.name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def questions(lab):
    """Names of the questions that are graded by a test."""
    return [question.name for question in lab.questions if not question.open]


def solution_of(lab, name):
    """The right answer to a question."""
    return next(cell.source for cell in forms.solution(lab).cells if cell.metadata.get("answer") == name)


__all__ = ["LABS", "SMALL", "filled_in", "hand_in", "questions", "solution_of", "source", "submission", "write_small"]
