"""Stored curves of learners, and the page that reports them."""

import csv
import re
import runpy
import statistics
import tomllib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
LEARNING = ROOT / "benchmarks" / "learning"
METHODS = ("ppo", "shac", "cma", "sac")
"""In the order of the columns."""


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def returns(path):
    return [float(row["return"]) for row in rows(path)]


def runs(task, method):
    return sorted((LEARNING / "curves" / task).glob(f"{method}-*.csv"))


def test_stored_curves_of_learning_have_settings():
    """Every curve is of a method in the settings of its task, and has no more samples than these."""
    settings = {p.stem: tomllib.loads(p.read_text()) for p in LEARNING.glob("*.toml")}
    curves = list((LEARNING / "curves").glob("*/*.csv"))
    assert curves
    for path in curves:
        own = settings[path.parent.name][path.stem.partition("-")[0]]
        last = rows(path)[-1]
        assert 0 < int(last["samples"]) <= own["samples"] + own["worlds"] * 300, path


def table(heading):
    """Rows of the first table below a heading, the names of the columns first, each row the texts of its cells."""
    below = (ROOT / "docs" / "reinforcement_learning.md").read_text().partition(heading + "\n")[2]
    lines = below[below.index("\n|") :].strip().partition("\n\n")[0].splitlines()
    head, _, *others = [line.strip("| ").split(" | ") for line in lines]
    return [head, *others]


def cells(heading):
    """Task, method and text of each cell of a table whose rows are tasks and whose columns are methods."""
    for name, *row in table(heading)[1:]:
        task = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "_", name).lower()
        for method, cell in zip(METHODS, row, strict=True):
            yield pytest.param(task, method, cell, id=f"{task}-{method}")


def test_table_of_the_walker_has_the_stored_curves():
    """The median of the seeds after so many samples, and the lowest and the highest of them."""
    (_, *columns), *methods = table("## How learners compare on Walker2D")
    assert len(methods) == sum(bool(runs("walker_2d", method)) for method in METHODS)
    for name, *row in methods:
        seeds = runs("walker_2d", re.match("[a-z]+", name.lower())[0])
        for samples, cell in zip(columns, row, strict=True):
            at = [float(r["return"]) for p in seeds for r in rows(p) if r["samples"] == samples.replace(",", "")]
            of_seeds = [statistics.median(at), min(at), max(at)][: 3 if len(seeds) > 1 else 1] if at else []
            assert [float(v) for v in re.findall(r"-?\d+\.\d", cell)] == [round(v, 1) for v in of_seeds], (
                name,
                samples,
            )
            assert len(at) in (0, len(seeds))


@pytest.mark.parametrize(("task", "method", "cell"), list(cells("## What a sample costs")))
def test_cost_of_a_sample_is_the_lowest_of_the_stored_curves(task, method, cell):
    seeds = [(rows(path)[0], rows(path)[-1]) for path in runs(task, method)]
    cost = [
        1000.0 * (float(last["seconds"]) - float(first["seconds"])) / (int(last["samples"]) - int(first["samples"]))
        for first, last in seeds
    ]
    if cell == "-":
        assert not cost
        return
    assert cell == f"{min(cost):.{2 if min(cost) < 1 else 1}f}"


@pytest.mark.parametrize(("task", "method", "cell"), list(cells("## How learners compare on the other tasks")))
def test_table_has_the_returns_of_the_stored_curves(task, method, cell):
    """The last return of each seed, then the best of the first seed or of all, if they are given."""
    seeds = [returns(path) for path in runs(task, method)]
    if cell == "-":
        assert not seeds
        return
    ends, _, best = cell.partition("; ")
    assert [float(v) for v in re.findall(r"-?\d+\.\d", ends)[: len(seeds)]] == [round(run[-1], 1) for run in seeds]
    bests = [float(v) for v in re.findall(r"-?\d+\.\d", best)]
    assert bests == [round(max(run), 1) for run in seeds][: len(bests)]
    assert bool(best) == bool(bests)


def test_bound_of_a_world_leaves_the_others_alone():
    bounded = runpy.run_path(str(LEARNING / "shac.py"))["bounded"]
    slope = torch.tensor([[3000.0, 4000.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(bounded(slope, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(bounded(slope, float("inf")), slope)
