"""Notebooks as students hand them in."""

from pathlib import Path

import nbformat

from warpbots.labs import forms, source

LABS = sorted((Path(__file__).parents[2] / "tutorials" / "labs").glob("*.py"))


def submission(lab, student, answers=None):
    """A student's notebook: with a name, and with answers by question; None leaves a blank, and the others are right."""
    notebook = forms.student(lab)
    right = {cell.id: cell.source for cell in forms.solution(lab).cells}
    for cell in notebook.cells:
        if forms.is_of_the_student(cell):
            cell.source = f'student = "{student}"'
        if "answer" in cell.metadata:
            answer = (answers or {}).get(cell.metadata["answer"], right[cell.id])
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


__all__ = ["LABS", "hand_in", "questions", "solution_of", "source", "submission"]
