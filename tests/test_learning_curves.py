"""Stored curves of learners, and the page that reports them."""

import csv
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
LEARNING = ROOT / "benchmarks" / "learning"
METHODS = ("ppo", "shac", "cma", "sac")
"""In the order of the columns."""


def returns(path):
    return [float(row["return"]) for row in csv.DictReader(path.read_text().splitlines())]


def test_stored_curves_of_learning_have_settings():
    """Every curve is of a method in the settings of its task, and has no more samples than these."""
    settings = {p.stem: tomllib.loads(p.read_text()) for p in LEARNING.glob("*.toml")}
    curves = list((LEARNING / "curves").glob("*/*.csv"))
    assert curves
    for path in curves:
        own = settings[path.parent.name][path.stem.partition("-")[0]]
        last = list(csv.DictReader(path.read_text().splitlines()))[-1]
        assert 0 < int(last["samples"]) <= own["samples"] + own["worlds"] * 300, path


def cells():
    """Task, method and text of each cell of the table of the other tasks."""
    text = (ROOT / "docs" / "reinforcement_learning.md").read_text()
    table = text.partition("## How learners compare on the other tasks")[2].partition("![")[0]
    for row in re.findall(r"^\| (\w+) \| (.+) \|$", table, re.M)[1:]:
        task = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", row[0]).lower()
        for method, cell in zip(METHODS, row[1].split(" | "), strict=True):
            yield pytest.param(task, method, cell, id=f"{task}-{method}")


@pytest.mark.parametrize(("task", "method", "cell"), list(cells()))
def test_table_has_the_returns_of_the_stored_curves(task, method, cell):
    """The last return of each seed, then the best of the first seed, if it is given."""
    runs = [returns(path) for path in sorted((LEARNING / "curves" / task).glob(f"{method}-*.csv"))]
    if cell == "-":
        assert not runs
        return
    ends, _, best = cell.partition("; ")
    assert [float(v) for v in re.findall(r"-?\d+\.\d", ends)[: len(runs)]] == [round(run[-1], 1) for run in runs]
    if best:
        assert float(best.split()[0]) == round(max(runs[0]), 1)


def test_bound_of_a_world_leaves_the_others_alone():
    bounded = runpy.run_path(str(LEARNING / "shac.py"))["bounded"]
    slope = torch.tensor([[3000.0, 4000.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(bounded(slope, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(bounded(slope, float("inf")), slope)
