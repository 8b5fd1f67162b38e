"""Sweeps: plans, refusals, and a killed worker."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from PIL import Image
from two_processes import robot

from warpbots import cli, usd
from warpbots.cli.sweep import trials
from warpbots.optimize import History


@pytest.fixture
def file(tmp_path):
    usd.write(tmp_path / "robot.usda", robot())
    return str(tmp_path / "robot.usda")


def planned(*words: str):
    options = cli.parser().parse_args(["sweep", *words])
    options.fixed = []
    return trials(options)


def test_every_combination_is_a_trial_with_options_of_its_own(file, tmp_path):
    made = planned(file, "--over", "lr", "0.01", "0.03", "--over", "seed", "0", "1", "--out", str(tmp_path / "out"))
    assert [trial.settings for trial in made] == [{"lr": lr, "seed": seed} for lr in ("0.01", "0.03") for seed in "01"]
    assert [(t.options.lr, t.options.seed) for t in made] == [(0.01, 0), (0.01, 1), (0.03, 0), (0.03, 1)]
    assert made[1].folder == (tmp_path / "out" / "lr=0.01,seed=1").resolve()
    assert all(trial.result is None for trial in made)


def test_a_result_counts_for_its_own_options_and_scene(file, tmp_path):
    words = file, "--over", "seed", "0", "--out", str(tmp_path / "out")
    (trial,) = planned(*words)
    trial.folder.mkdir(parents=True)
    (trial.folder / "result.json").write_text(json.dumps({"words": trial.words, "scene": trial.scene, "loss": -1.0}))
    assert trial.result["loss"] == -1.0
    options = cli.parser().parse_args(["sweep", *words])
    options.fixed = ["--iterations", "7"]
    assert trials(options)[0].result is None
    usd.write(file, robot().__class__(robot().bodies, robot().actuators, domain=robot().domain, name="bar"))
    assert planned(*words)[0].result is None


def test_a_trial_goes_on_where_it_was_stopped(file, tmp_path, monkeypatch):
    (trial,) = planned(file, "--over", "seed", "0", "--out", str(tmp_path / "out"))
    history, resumed = History([3.0, 1.0, 2.0], seconds=[0.0, 1.0, 2.0]), []
    monkeypatch.setattr("warpbots.cli.sweep.trained", lambda options: resumed.append(options.resume) or history)
    trial.folder.mkdir(parents=True)
    assert trial.run() == 1.0
    (trial.folder / "checkpoint.pt").touch()
    trial.run()
    assert resumed == [False, True]
    assert (trial.result["loss"], trial.result["iterations"]) == (1.0, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--over", "seed"], "give each option once, with values"),
        (["--over", "seed", "0", "--over", "seed", "1"], "give each option once"),
        (["--over", "out", "here"], "--over takes the options seed, lr, .* got 'out'"),
    ],
)
def test_faults(file, capsys, words, said):
    assert cli.main(["sweep", file, *words]) == 2
    assert capsys.readouterr().err.startswith("warpbots: sweep: ")
    with pytest.raises(ValueError, match=said):
        planned(file, *words)


def test_an_illegal_value_ends_the_command_before_anything_runs(file, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["sweep", file, "--over", "lr", "0.01", "-3", "--out", str(tmp_path / "out")])
    assert "must be a positive number, got '-3'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_trials_are_not_removed_unasked(file, tmp_path, capsys, monkeypatch):
    """Neither finished nor unfinished trials."""
    out = tmp_path / "out"
    words = ["sweep", file, "--over", "seed", "0", "1", "2", "--out", str(out)]
    for seed, name in ((0, "result.json"), (1, "checkpoint.pt")):
        (out / f"seed={seed}").mkdir(parents=True)
        (out / f"seed={seed}" / name).write_text("{}")
    started = []
    monkeypatch.setattr("warpbots.cli.sweep._run", lambda ray, waiting, parallel: started.append(len(waiting)) or [])
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert f"{out} has 2 of these 3 trials from an earlier run, 1 of them finished; keep them" in said
    assert all(option in said for option in ("--resume", "--overwrite", "--out"))
    assert (out / "seed=0" / "result.json").is_file() and (out / "seed=1" / "checkpoint.pt").is_file()
    assert not started
    assert cli.main([*words, "--resume"]) == 0 and (out / "seed=0" / "result.json").is_file()
    assert cli.main([*words, "--overwrite"]) == 0 and not list(out.iterdir())
    assert started == [3, 3]


@pytest.mark.parametrize("fault", [ConnectionError("no node at 10.0.0.1"), RuntimeError("no space left"), Exception()])
def test_a_ray_that_does_not_start_is_one_sentence(file, tmp_path, capsys, monkeypatch, fault):
    import ray

    def fail(**options):
        raise fault

    monkeypatch.setattr(ray, "init", fail)
    assert cli.main(["sweep", file, "--over", "seed", "0", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"did not start: {str(fault) or 'Exception'}; end what is left" in said and "'ray stop'" in said
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert cli.main(["sweep", file, "--over", "seed", "0", "--out", str(tmp_path / "out")]) == 1
    assert "there may be no Ray at RAY_ADDRESS=10.0.0.1:6379, unset it" in capsys.readouterr().err


def test_without_ray(file, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["sweep", file, "--over", "seed", "0"]) == 2
    assert 'pip install "warpbots[sweep]"' in capsys.readouterr().err


def killed(run: subprocess.Popen, folder) -> None:
    """Kill the process of the first trial that has completed an iteration."""
    checkpoint = folder / "seed=0" / "loss.csv"
    while not checkpoint.is_file():
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    workers = [p for p in psutil.Process(run.pid).children(recursive=True) if p.cmdline()[:1] == ["ray::run"]]
    assert workers
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_worker_loses_no_finished_trial(file, tmp_path):
    """Its trial continues from its checkpoint; a second run finds all trials finished, and a table and a figure."""
    out = tmp_path / "out"
    words = [sys.executable, "-m", "warpbots", "sweep", file, "--over", "seed", "0", "1", "--parallel", "1"]
    words += ["--iterations", "40", "--out", str(out)]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killed(run, out)
    said, faults = run.communicate(timeout=300)
    assert run.returncode == 0, faults
    assert "2 trials, of which 0 are finished" in said and "best: loss" in said
    rows = list(csv.DictReader((out / "sweep.csv").read_text().splitlines()))
    assert [(row["seed"], row["iterations"]) for row in rows] == [("0", "40"), ("1", "40")]
    with Image.open(out / "sweep.png") as picture:
        assert picture.width > 400
    before = (out / "seed=0" / "controller.pt").read_bytes()
    again = subprocess.run([*words, "--resume"], check=True, capture_output=True, text=True, timeout=300)
    assert "2 trials, of which 2 are finished" in again.stdout
    assert (out / "seed=0" / "controller.pt").read_bytes() == before
    alone = ["train", file, "--seed", "0", "--iterations", "40", "--out", str(tmp_path / "alone")]
    subprocess.run([sys.executable, "-m", "warpbots", *alone], check=True, capture_output=True, timeout=300)
    losses = [[r["loss"] for r in csv.DictReader((f / "loss.csv").read_text().splitlines())]
              for f in (out / "seed=0", tmp_path / "alone")]  # fmt: skip
    assert losses[0] == losses[1]
