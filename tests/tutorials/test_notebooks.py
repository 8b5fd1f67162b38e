"""Every tutorial runs from top to bottom, and its exercises tell right answers from wrong ones."""

import copy
from pathlib import Path

import pytest
from answers import ANSWERS, MORE, UNITS

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

TUTORIALS = Path(__file__).parents[2] / "tutorials"
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
SHORT = {"WARPBOTS_FAST": "1", "WARPBOTS_STATIC": "1", "TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}


def kind(cell):
    """``answer`` for a cell that holds an answer, ``check`` for one that judges it, or nothing."""
    return next((tag for tag in cell.metadata.get("tags", []) if tag in ("answer", "check")), None)


def solved(cells, answers, units, more):
    """The cells, where each exercise is first left open, which stops no run of all cells, then answered.

    The answers are a wrong one, one in a wrong unit, further wrong and right ones, and the right one.
    """
    found, left = [], zip(answers, units, map(more.get, range(1, len(units) + 1)), strict=True)
    for cell in cells:
        found.append(cell)
        if kind(cell) == "answer":
            answer = cell
        if kind(cell) == "check":
            (right, wrong), unit, others = next(left)
            also_right, also_wrong = others or ([], [])
            tried = [(source, True) for source in (wrong, unit, *also_wrong) if source is not None]
            for source, refused in [*tried, *((source, False) for source in (*also_right, right))]:
                given, judged = copy.deepcopy(answer), copy.deepcopy(cell)
                given.source, given.metadata["tags"] = source, []
                judged.metadata["tags"] = ["check", *(["wrong", "raises-exception"] if refused else ["right"])]
                found += [given, judged]
    assert next(left, None) is None
    return found


def said(cell):
    """What a cell printed and displayed, such as that kernels are compiled, and the error that it raised."""
    return "".join(map(words, cell.outputs))


def words(output):
    """The text of one output."""
    match output.output_type:
        case "stream":
            return output.text
        case "error":
            return f"{output.ename}: {output.evalue}"
    return output.data["text/plain"]


def has_points(cell):
    """Whether nbgrader gives a check its points: for neither an error nor anything on stderr (`determine_grade`)."""
    return not any(o.output_type == "error" or o.get("name") == "stderr" for o in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_its_exercises_judge(path, monkeypatch):
    notebook = nbformat.read(path, 4)
    notebook.cells = solved(notebook.cells, ANSWERS[path.stem], UNITS[path.stem], MORE.get(path.stem, {}))
    for name, value in SHORT.items():
        monkeypatch.setenv(name, value)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(TUTORIALS)}}).execute()
    for cell in (c for c in notebook.cells if kind(c) == "check"):
        tags = cell.metadata["tags"]
        assert has_points(cell) == ("right" in tags), said(cell)
        if "right" in tags:
            assert "correct" in said(cell)
        else:
            assert "WrongAnswer: Exercise" in said(cell)
            assert "cells above" not in said(cell)
            assert ("no answer yet" in said(cell)) == ("wrong" not in tags)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_has_two_to_four_exercises_at_its_end(path):
    kinds = [kind(cell) for cell in nbformat.read(path, 4).cells]
    assert 2 <= kinds.count("check") == kinds.count("answer") <= 4
    first = kinds.index("answer")
    assert [k for k in kinds[first:] if k] == ["answer", "check"] * kinds.count("check")
    assert first > len(kinds) / 2
