"""The command line turns files into pages, films, USD and projects; bad input is one sentence and status 2."""

import argparse
import importlib.util
import re
import shlex
import shutil
import sys
import webbrowser
from pathlib import Path

import pytest
from PIL import Image

import warpbots as wb
from warpbots import cli
from warpbots.scene import Box

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("train", "simulate", "info", "view", "bench", "render", "convert", "new", "sweep", "lab")
ROBOT = """<mujoco><worldbody><body pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody><actuator><motor joint="shoulder"/></actuator></mujoco>"""


@pytest.fixture
def scene_file(tmp_path):
    """A falling square."""
    body = wb.SoftBody("square", Box((0.2, 0.2), (0.3, 0.3)), wb.Material(1e4))
    task = wb.Task(0.05, control_interval=0.01, substeps=4, steps=3, direction=(1.0, 0.0))
    path = tmp_path / "square.usda"
    wb.usd.write(path, wb.Scene([body], obstacles=[wb.floor(dim=2)], domain=((0, 0), (1, 1)), task=task))
    return path


@pytest.fixture
def robot_file(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(ROBOT)
    return path


def refused(words, capsys):
    """What a command with bad input says: one sentence, status 2."""
    assert cli.main([str(word) for word in words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1, said
    return said[0]


def test_view_writes_a_page_that_needs_no_network(scene_file, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["view", str(scene_file), "--no-open"]) == 0
    assert not opened
    page = tmp_path / "output" / "square" / "view.html"
    assert "<title>" in page.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link)[^>]*(?:src|href)=[\"']https?:", page.read_text(encoding="utf-8"))
    assert cli.main(["view", str(scene_file), "--out", "page.html"]) == 0
    assert opened == [(tmp_path / "page.html").as_uri()]


@pytest.mark.parametrize("ending", ["gif", "png", "mp4"])
def test_render(ending, scene_file, tmp_path):
    if ending == "mp4" and not (shutil.which("ffmpeg") or importlib.util.find_spec("imageio_ffmpeg")):
        pytest.skip("there is no encoder")
    out = tmp_path / f"motion.{ending}"
    assert cli.main(["render", str(scene_file), str(out), "--width", "120", "--frames", "2"]) == 0
    if ending == "mp4":
        assert out.read_bytes()[4:8] == b"ftyp"
    else:
        with Image.open(out) as image:
            assert getattr(image, "n_frames", 1) == (2 if ending == "gif" else 1)


def test_render_a_robot_from_mjcf(robot_file, tmp_path):
    assert cli.main(["render", str(robot_file), str(tmp_path / "arm.png"), "--steps", "2", "--frames", "2"]) == 0


def test_convert(robot_file, tmp_path, capsys):
    out = tmp_path / "arm.usda"
    assert cli.main(["convert", str(robot_file), str(out)]) == 0
    assert "1 bodies, 1 joints, 1 actuators" in capsys.readouterr().out.replace("2 bodies", "1 bodies")
    scene, loaded = wb.usd.read(out), wb.robots.load(robot_file)
    assert [j.name for j in scene.joints] == [j.name for j in loaded.joints]
    assert wb.usd.read(out) == loaded


@pytest.mark.parametrize("name", ["copy.xml", "copy.urdf"])
def test_convert_to_the_files_of_robots(name, robot_file, tmp_path, capsys):
    out = tmp_path / name
    assert cli.main(["convert", str(robot_file), str(out)]) == 0
    assert f"wrote {out}" in capsys.readouterr().out
    found, loaded = wb.robots.load(out), wb.robots.load(robot_file)
    moving = [[j.name for j in scene.joints if j.freedom] for scene in (found, loaded)]
    assert moving[0] == moving[1] and moving[0]
    assert [(a.joint, a.max_torque) for a in found.actuators] == [(a.joint, a.max_torque) for a in loaded.actuators]


def test_new_makes_a_project_that_runs_and_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert cli.main(["new", "crawler"]) == 0
    folder = tmp_path / "crawler"
    assert [p.name for p in tmp_path.iterdir()] == ["crawler"]
    assert {p.name for p in folder.iterdir()} == {"README.md", "scene.py", "train.py", "test_scene.py"}
    assert "PROJECT" not in "".join(p.read_text() for p in folder.iterdir())
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    modules = {}
    try:
        for name in ("scene", "train", "test_scene"):
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[name])
    finally:
        for name in modules:
            sys.modules.pop(name, None)
    history = modules["train"].train(iterations=2, steps=10, resume=False)
    assert len(history.loss) == 3
    assert {p.name for p in (folder / "output").iterdir()} >= {"controller.pt", "loss.png", "motion.gif", "motion.usda"}
    modules["test_scene"].test_the_robot_stands()
    modules["test_scene"].test_the_gradient_is_that_of_differences()
    wb.usd.write("robot.usda", modules["scene"].scene())
    words = ["--controller", "output/controller.pt", "--steps", "2", "--frames", "2"]
    assert cli.main(["render", "robot.usda", "robot.png", *words]) == 0


def test_new_never_touches_what_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert "mine exists" in refused(["new", "mine"], capsys)
    assert "there is no folder nowhere" in refused(["new", "nowhere/mine"], capsys)
    assert [p.name for p in tmp_path.rglob("*")] == ["mine"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["view", "nothing.usda", "--no-open"], "nothing.usda"),
        (["view", "SCENE", "--no-open", "--out", "page.htm"], "must end in .html, got '.htm'"),
        (["render", "nothing.usda", "out.gif"], "nothing.usda"),
        (["render", "SCENE", "out.avi"], "must end in .mp4 or .gif or .png, got '.avi'"),
        (["render", "SCENE", "nowhere/out.gif"], "there is no folder nowhere"),
        (["render", "SCENE", "out.gif", "--controller", "none.pt"], "there is no controller none.pt"),
        (["convert", "nothing.xml", "out.usda"], "nothing.xml"),
        (["convert", "SCENE", "out.txt"], "out.txt"),
        (["simulate", "broken.usda", "--out", "folder"], "broken.usda"),
        (["train", "SCENE", "--out", "folder"], "has no actuators to train"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(words, said, scene_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.usda").write_text("#usda 1.0\ndef")
    before = sorted(tmp_path.rglob("*"))
    assert said in refused([scene_file if word == "SCENE" else word for word in words], capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_mp4_without_an_encoder_is_refused_before_anything_is_simulated(scene_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(wb.Simulation, "__init__", lambda *words: pytest.fail("it was simulated"))
    assert 'pip install "warpbots[video]"' in refused(["render", scene_file, tmp_path / "out.mp4"], capsys)


def subparsers():
    """The parser of every command by its name."""
    parser = cli.parser()
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return action.choices


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_that_are_understood(name):
    assert set(subparsers()) == set(COMMANDS)
    for text in (subparsers()[name].format_help(), cli.parser().format_help()):
        lines = re.findall(r"^  warpbots (.*)$", text.split("examples:")[1], re.M)
        assert lines
        for line in lines:
            cli.parser().parse_args(shlex.split(line))
    assert any(line.startswith(f"{name} ") for line in lines)
