"""Every command of the parser runs on every bundled scene, so that new commands are tried as well."""

import argparse
from pathlib import Path

import pytest

from warpbots import cli

SCENES = sorted((Path(__file__).resolve().parents[1] / "usd_scenes").glob("*.usda"))
FIXED_BASE = "the base of this one is fixed to the world"
RUNS = {
    "info": (),
    "convert": ("copy.usda",),
    "simulate": ("--steps", "1", "--out", "motion"),
    "view": ("--steps", "1", "--no-open", "--out", "page.html"),
    "bench": ("--no-open", "--out", "recorded"),
    "render": ("strip.png", "--steps", "1", "--frames", "2", "--width", "80"),
    "train": ("--steps", "1", "--iterations", "1", "--out", "training"),
    "sweep": ("--over", "steps", "1", "--iterations", "1", "--parallel", "1", "--out", "sweep"),
}
"""Words of each command that takes a scene, for as little work as it can do."""
NO_SCENE = {
    "new": "it makes a project of its own scene, which its own test runs",
    "lab": "it reads the source of a lab, which tests/labs try",
}
"""Commands that take no scene, and why."""
NO_ACTUATORS = "has no actuators to train"
SENTENCES = {
    (scene, command): why
    for scene, why in {"finger_reach": FIXED_BASE, "arm": FIXED_BASE, "cloth": FIXED_BASE, "boat": NO_ACTUATORS}.items()
    for command in ("train", "sweep")
}
"""Scenes that a command refuses in a sentence, and what of it."""
QUICK = ("info", "convert")
QUICK_SCENES = ("walker", "soft_humanoid", "gripper")
"""A 2D soft robot, a soft one with bones, and a rigid one, on which all but `sweep` runs in the quick tests."""


def commands():
    (action,) = (a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    return tuple(action.choices)


def marked(scene, command):
    quick = command in QUICK or (scene.stem in QUICK_SCENES and command in ("simulate", "view", "bench", "render"))
    return pytest.param(scene, command, id=f"{scene.stem}-{command}", marks=[] if quick else pytest.mark.slow)


def run_here(ray, waiting, parallel):
    """The trials of a sweep, without the processes of Ray, which tests of the sweep start."""
    for trial in waiting:
        trial.run()
    return []


async def step_once(bench, port, opened):
    """A page on which somebody records one step, without a browser and its server."""
    opened("http://127.0.0.1/")
    bench.conversation.join("viewer", lambda message, buffers: None)
    for what in ("record", "step", "stop"):
        bench.conversation.hear("viewer", {"type": what})
    bench.close()
    assert bench.recording is not None, bench.message


def test_every_command_is_tried():
    assert set(commands()) == {*RUNS, *NO_SCENE}
    assert len(SCENES) >= 13 and {s.stem for s in SCENES} >= {*QUICK_SCENES, *(name for name, _ in SENTENCES)}


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # one iteration learns little
@pytest.mark.parametrize(("scene", "command"), [marked(scene, command) for command in RUNS for scene in SCENES])
def test_a_command_runs_on_a_scene(scene, command, tmp_path, monkeypatch, capsys, heard):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warpbots.cli.sweep._run", run_here)
    monkeypatch.setattr("warpbots.bench.bench.served", step_once)
    status = cli.main([command, str(scene), *RUNS[command]])
    said = capsys.readouterr().err
    assert not heard.messages  # bundled scenes are read completely
    if (scene.stem, command) in SENTENCES:
        assert status == 2 and SENTENCES[scene.stem, command] in said and "Traceback" not in said
    else:
        assert status == 0, said
        assert command == "info" or any(tmp_path.iterdir())


def test_info_of_a_soft_body_with_bones(capsys):
    """Bodies of both kinds, joints, motors and all other actuators."""
    scene = next(s for s in SCENES if s.stem == "soft_humanoid")
    assert cli.main(["info", str(scene)]) == 0
    said = capsys.readouterr().out
    for words in ("particles", "5 rigid bodies", "  body ", "kg\n", "  joint ", "Servo", "stiffness", "nu 0."):
        assert words in said, words
