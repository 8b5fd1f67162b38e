"""Notebooks as students hand them in."""

from pathlib import Path

import nbformat

from warpbots.labs import forms, source

LABS = sorted((Path(__file__).parents[2] / "tutorials" / "labs").glob("*.py"))


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
    path = folder / student / f"{lab.name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def questions(lab):
    """Names of the questions that are graded by a test."""
    return [question.name for question in lab.questions if not question.open]


def solution_of(lab, name):
    """The right answer to a question."""
    return next(cell.source for cell in forms.solution(lab).cells if cell.metadata.get("answer") == name)


__all__ = ["LABS", "filled_in", "hand_in", "questions", "solution_of", "source", "submission"]
