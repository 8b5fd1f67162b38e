"""The command line: files, output and failures."""

import contextlib
import csv
import dataclasses
import re
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from PIL import Image
from pxr import Usd, UsdGeom

import warpbots as wb
from warpbots import cli
from warpbots.cli import simulations
from warpbots.scene import Box


@pytest.fixture
def scene_file(tmp_path):
    leg = Box((0.1, 0.0), (0.2, 0.1))
    body = wb.SoftBody("cube", leg, wb.Material(1e4), {"front": Box((0.15, 0.0), (0.2, 0.1))})
    scene = wb.Scene(
        [body], [wb.actuators.Muscle("pull", "front", (0.0, 1.0), 2e3)], [wb.floor(dim=2)], domain=((0.0, 0.0), (0.5, 0.3)),
        task=wb.Task(1 / 40, 5e-3, 2, 12, (1.0, 0.0), clusters=2), name="cube",
    )  # fmt: skip
    path = tmp_path / "cube.usda"
    wb.usd.write(path, scene)
    return path


def test_train_leaves_controller_loss_picture_and_motion(scene_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["train", str(scene_file), "--iterations", "2", "--out", str(out)]) == 0
    names = {p.name for p in out.iterdir()}
    assert {"controller.pt", "loss.csv", "loss.png", "motion.gif", "motion.usda"} <= names
    assert not [n for n in names if n.startswith(".")]
    losses = [float(row["loss"]) for row in csv.DictReader((out / "loss.csv").read_text().splitlines())]
    assert len(losses) == 3
    told = capsys.readouterr().out
    assert "loss" in told
    assert "(0 " not in told  # no file is empty
    with Image.open(out / "motion.gif") as gif:
        assert gif.n_frames > 1

    # The motion in the file is that of the trained controller, frame by frame.
    scene = wb.usd.read(scene_file)
    sim = wb.Simulation(scene, wb.MPM(1 / 40), 5e-3, 2)
    policy = wb.controllers.MLP(sim, wb.observers.Clusters(2))
    policy.load_state_dict(torch.load(out / "controller.pt", weights_only=True))
    with torch.no_grad():
        final = sim.rollout(policy, 12).final.position[0]
    stage = Usd.Stage.Open(str(out / "motion.usda"))
    assert any("motion_scene.usda" in layer.identifier for layer in stage.GetLayerStack()), "a copy of the scene"
    points = [UsdGeom.Points(p) for p in stage.Traverse() if p.IsA(UsdGeom.Points)]
    last = points[0].GetPointsAttr().Get(stage.GetEndTimeCode())
    assert torch.allclose(torch.tensor(last)[:, [0, 2]], final, atol=1e-6)


def test_a_scene_that_mpm_cannot_simulate_runs_on_springs(tmp_path, capsys):
    """The reason is printed; a solver that the user names is not replaced."""
    body = wb.SoftBody("cube", Box((0.0, 0.0), (0.1, 0.1)), wb.Material(1e4, 0.25), {"all": Box((-1, -1), (1, 1))})
    path = tmp_path / "grows.usda"
    wb.usd.write(path, wb.Scene([body], [wb.actuators.Expansion("grow", "all", 0.1)]))
    assert cli.main(["info", str(path)]) == 0
    said = capsys.readouterr()
    assert "Expansion 'grow': MPM has no actuator that changes rest lengths" in said.err
    assert "using MassSpring instead" in said.err
    assert "springs of" in said.out
    assert "plastic" not in said.out
    assert cli.main(["info", str(path), "--solver", "mpm"]) == 2
    assert "using " not in capsys.readouterr().err


def losses(folder):
    return [float(row["loss"]) for row in csv.DictReader((folder / "loss.csv").read_text().splitlines())]


def controller(folder):
    return torch.load(folder / "controller.pt", weights_only=True)


def train(scene_file, out, *words):
    return cli.main(["train", str(scene_file), "--out", str(out), *words])


def test_a_resumed_training_ends_at_the_same_bits(scene_file, tmp_path):
    """Adam's moments and the history are kept, not weights alone."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(scene_file, whole, "--iterations", "6") == 0
    assert train(scene_file, parts, "--iterations", "3") == 0
    assert train(scene_file, parts, "--iterations", "6", "--resume") == 0
    assert losses(parts) == losses(whole)
    assert len(losses(parts)) == 7
    assert all(torch.equal(a, b) for a, b in zip(controller(parts).values(), controller(whole).values(), strict=True))


def test_a_training_is_not_replaced_unasked(scene_file, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--iterations", "1", "--steps", "2"]
    out.mkdir()
    (out / "notes.txt").touch()
    assert train(scene_file, out, *words) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    capsys.readouterr()
    assert train(scene_file, out, *words, "--seed", "8") == 2
    said = capsys.readouterr().err
    assert f"{out} has results of an earlier training: checkpoint.pt, controller.pt, loss.csv and 3 more" in said
    assert "--resume" in said and "--overwrite" in said and "--out" in said
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert train(scene_file, out, *words, "--seed", "8", "--overwrite") == 0
    assert (out / "controller.pt").read_bytes() != before["controller.pt"]
    with pytest.raises(SystemExit):
        train(scene_file, out, "--overwrite", "--resume")


def test_training_of_something_else_is_not_resumed(scene_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert train(scene_file, out, "--resume") == 2
    assert "there is no checkpoint" in capsys.readouterr().err
    assert train(scene_file, out, "--iterations", "2") == 0
    kept = {p.name: p.read_bytes() for p in out.iterdir()}
    scene = wb.usd.read(scene_file)
    others = {"heavier": {"gravity": (0.0, -20.0)}, "seen": {"task": dataclasses.replace(scene.task, clusters=3)}}
    for name, change in others.items():
        wb.usd.write(tmp_path / f"{name}.usda", dataclasses.replace(scene, source=None, **change))
    capsys.readouterr()
    for said, file, words in (
        (r"scene was cube \(\w+\) there and is cube", tmp_path / "heavier.usda", []),
        (r"controller was Sequential\(.*its unknowns have the shapes", tmp_path / "seen.usda", []),
        (r"solver was MPM\(.*there and is MassSpring\(", scene_file, ["--solver", "springs"]),
        (r"steps was 12 there and is 11 here", scene_file, ["--steps", "11"]),
        (r"seed was 1 there and is 4 here", scene_file, ["--seed", "4"]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that springs have a Poisson's ratio of their own
            assert train(file, out, "--iterations", "4", "--resume", *words) == 2
        assert re.search(said, capsys.readouterr().err, re.S)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == kept


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_at_any_moment_leaves_one_run_that_goes_on(scene_file, tmp_path, monkeypatch):
    """Files appear and vanish by `Path.replace` and `Path.unlink` alone: each of these calls is the last one once."""
    sim = simulations.simulation(cli.parser().parse_args(["info", str(scene_file)]))
    monkeypatch.setattr(simulations, "simulation", lambda options, scene, worlds=1: sim)
    monkeypatch.setattr(cli.train, "write", lambda *args: None)
    monkeypatch.setattr(wb.view, "save_loss", lambda path, history: path.write_text(""))
    few = ("--steps", "4")
    former, whole = tmp_path / "former", tmp_path / "whole"
    assert train(scene_file, former, *few, "--iterations", "1", "--seed", "9") == 0
    assert train(scene_file, whole, *few, "--iterations", "2") == 0

    def killed_after(calls, *words):
        def counted(call):
            def counting(self, *args, **kwargs):
                nonlocal calls
                calls -= self.exists()  # temporary files that took their place are gone already
                if calls < 0:
                    raise Killed
                return call(self, *args, **kwargs)

            return counting

        with monkeypatch.context() as patch:
            for name in ("replace", "unlink"):
                patch.setattr(Path, name, counted(getattr(Path, name)))
            with contextlib.suppress(Killed):
                assert train(scene_file, *words, "--overwrite") == 0
                return False
        return True

    def score(folder):
        policy = simulations.policy(sim)
        policy.load_state_dict(controller(folder))
        with torch.no_grad():
            motion = sim.rollout(policy, 4)
        travel = (sim.center_of_mass(motion.final) - sim.center_of_mass(motion.start))[0, 0]
        return (-travel + 1e-6 * motion.control.square().mean()).item()

    calls = 0
    while True:
        out = tmp_path / str(calls)
        shutil.copytree(former, out)
        if not killed_after(calls, out, *few, "--iterations", "2"):
            break
        rows = losses(out) if (out / "loss.csv").exists() else []
        run = losses(former if rows[:1] == losses(former)[:1] else whole)
        assert rows == run[: len(rows)]
        if (out / "controller.pt").exists():
            assert min(abs(score(out) - loss) for loss in run) < 1e-7
        if calls:  # before, the checkpoint is the former one
            assert train(scene_file, out, *few, "--iterations", "2", "--resume") == 0
            assert losses(out) == losses(whole)
        calls += 1
    assert calls > 10


def test_interrupted_training_keeps_the_best_controller(scene_file, tmp_path, monkeypatch, capsys):
    calls = []
    rollout = wb.Simulation.rollout

    def counted(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 4:  # one to compile, two iterations, and here the user loses patience
            raise KeyboardInterrupt
        return rollout(self, *args, **kwargs)

    monkeypatch.setattr(wb.Simulation, "rollout", counted)
    out = tmp_path / "out"
    assert cli.main(["train", str(scene_file), "--iterations", "9", "--out", str(out)]) == 0
    assert "interrupted: the best controller so far is kept" in capsys.readouterr().out
    assert (out / "controller.pt").is_file()


def test_simulate_without_control(scene_file, tmp_path):
    assert cli.main(["simulate", str(scene_file), "--steps", "4", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "motion.usda").is_file()


def test_info_says_what_is_there(scene_file, capsys):
    assert cli.main(["info", str(scene_file)]) == 0
    said = capsys.readouterr().out
    for words in ("cube: 2D, 64 particles", "control channel 0: Muscle pull", "youngs_modulus", "stability bound"):
        assert words in said


def test_info_says_the_constants_of_laws(tmp_path, capsys):
    """Constants of the law of a body, with defaults, and constants of the law of a region."""
    rubber, tip = (wb.Material(1e4, law="ogden", constants={"exponent": a, "second_share": 0.25}) for a in (3.125, 1.5))
    box = Box((0.2, 0.2), (0.3, 0.3))
    body = wb.SoftBody("cube", box, rubber, {"tip": Box((0.25, 0.2), (0.3, 0.3))}, {"tip": tip})
    wb.usd.write(tmp_path / "a.usda", wb.Scene([body], domain=((0.0, 0.0), (0.5, 0.5))))
    assert cli.main(["info", str(tmp_path / "a.usda"), "--solver", "mpm"]) == 0
    said = capsys.readouterr().out.splitlines()
    (first,) = (line for line in said if "body cube" in line)
    assert "ogden (exponent 3.125, second_exponent -2, second_share 0.25), E 10000 Pa" in first
    (second,) = (line for line in said if "region tip" in line)
    assert "ogden (exponent 1.5, second_exponent -2, second_share 0.25), E 10000 Pa" in second
    assert any(line.startswith("  exponent: alpha_1, exponent of the stretches") for line in said)


@pytest.mark.parametrize("command", ["train", "simulate", "info"])
def test_missing_scene_is_one_sentence(command, capsys):
    assert cli.main([command, "nothing.usda"]) == 2
    said = capsys.readouterr().err
    assert "nothing.usda" in said
    assert len(said.strip().splitlines()) == 1


def test_a_scene_that_refers_elsewhere_needs_to_be_allowed(scene_file, tmp_path, capsys):
    other = tmp_path / "one" / "two" / "scene.usda"
    other.parent.mkdir(parents=True)
    other.write_text(
        f'#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Z"\n    subLayers = [@../../{scene_file.name}@]\n)\n'
    )
    assert cli.main(["info", str(other)]) == 2
    assert "asset_root" in capsys.readouterr().err
    assert cli.main(["info", str(other), "--asset-root", str(tmp_path)]) == 0


def test_unwritable_folder_is_one_sentence(scene_file, tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    assert cli.main(["simulate", str(scene_file), "--out", str(tmp_path / "file" / "out")]) == 2
    assert "file" in capsys.readouterr().err


def test_scene_without_task_takes_values_from_its_size(tmp_path, capsys):
    body = wb.SoftBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.2), 0.1), wb.Material(1e5))
    wb.usd.write(tmp_path / "ball.usda", wb.Scene([body], obstacles=[wb.floor()]))
    assert cli.main(["info", str(tmp_path / "ball.usda")]) == 0
    assert "a grid of" in capsys.readouterr().out


@pytest.fixture
def rigid(monkeypatch):
    """A cart with a pendulum, instead of any file; USD output is recorded."""
    cart = wb.RigidBody("cart", Box((-0.2, -0.1, -0.1), (0.2, 0.1, 0.1)), 250.0, points=8, surface="wood")
    pole = wb.RigidBody("pole", wb.shapes.Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.5), 0.02))
    rail = wb.Joint("rail", "prismatic", None, "cart", axis=(1.0, 0.0, 0.0), lower=-2.0, upper=2.0)
    pivot = wb.Joint("pivot", "revolute", "cart", "pole", axis=(0.0, 1.0, 0.0), start=0.1)
    law = wb.Contact("wood", "floor", 1e6)
    parts = {"obstacles": (wb.floor(-0.5, friction=0.0),), "contacts": (law,), "name": "cart"}
    read = {
        "cart.usda": wb.Scene((cart, pole), (wb.actuators.Torque("push", "rail", 5.0),), joints=(rail, pivot), **parts),
        "held.usda": wb.Scene(
            (cart, pole), (wb.actuators.Servo("turn", "pivot", 5.0),), joints=(held(rail), pivot), **parts
        ),
    }
    written = []
    monkeypatch.setattr(wb.usd, "read", lambda path, asset_root: read[str(path)])
    monkeypatch.setattr(wb.usd, "write", lambda path, trajectory: written.append(trajectory))
    return written


def held(joint):
    """A fixed joint instead of another one."""
    return wb.Joint(joint.name, "fixed", joint.parent, joint.child)


def test_info_of_rigid_bodies(rigid, capsys):
    assert cli.main(["info", "cart.usda"]) == 0
    said = capsys.readouterr()
    assert "using Articulated instead" in said.err
    for words in (
        "cart: 3D, 2 rigid bodies, 4.662 kg, gravity [0.0, 0.0, -9.81] m/s^2",
        "body cart: Box, 4 kg, surface wood",
        "joint rail: prismatic, world to cart, limits [-2.0] to [2.0]",
        "joint pivot: revolute, cart to pole",
        "control channel 0: Torque push at joint rail, up to 5",
        "contact wood on floor: 1e+06 Pa/m, mu 0",
        "obstacle floor: HalfSpace",
        "state q: shape (1, 2)",
        "mass: mass, shape (1, 2)",
        "(0.01 s in 1 substeps), implicit",
    ):
        assert words in said.out
    assert "particles" not in said.out
    assert cli.main(["info", "held.usda"]) == 0
    assert "Servo turn at joint pivot, stiffness 5" in capsys.readouterr().out
    assert cli.main(["info", "cart.usda", "--solver", "articulated"]) == 0
    assert "instead" not in capsys.readouterr().err


def test_simulate_rigid_bodies(rigid, tmp_path):
    assert cli.main(["simulate", "cart.usda", "--steps", "6", "--out", str(tmp_path / "out")]) == 0
    assert rigid[0].steps == 6
    with Image.open(tmp_path / "out" / "motion.gif") as gif:
        assert gif.n_frames > 1


def test_a_robot_of_rigid_bodies_is_trained_to_travel(rigid, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["train", "cart.usda", "--steps", "10", "--iterations", "4", "--out", str(out)]) == 0
    losses = [float(row["loss"]) for row in csv.DictReader((out / "loss.csv").read_text().splitlines())]
    assert losses[-1] < losses[0]
    assert "the robot travels" in capsys.readouterr().out
    driven = ["simulate", "cart.usda", "--steps", "10", "--controller", str(out / "controller.pt"), "--out", str(out)]
    assert cli.main(driven) == 0
    torch.testing.assert_close(rigid[-1].final.q, rigid[0].final.q)


def test_what_cannot_travel_is_not_trained_to(rigid, tmp_path, capsys):
    assert cli.main(["train", "held.usda", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "held.usda: this command trains robots to travel" in said
    assert "warpbots.fit" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "0"], "--steps: must be a whole number of at least 1, got '0'"),
        (["--steps", "2.5"], "--steps: must be a whole number of at least 1, got '2.5'"),
        (["--substeps", "0"], "--substeps: must be a whole number of at least 1, got '0'"),
        (["--dx", "0"], "--dx: must be a positive number, got '0'"),
        (["--dx", "-1"], "--dx: must be a positive number, got '-1'"),
        (["--dt", "nan"], "--dt: must be a positive number, got 'nan'"),
        (["--iterations", "0"], "--iterations: must be a whole number of at least 1, got '0'"),
        (["--lr", "inf"], "--lr: must be a positive number, got 'inf'"),
    ],
)
def test_zero_is_not_the_default(words, said, scene_file, tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", str(scene_file), "--out", str(tmp_path / "out"), *words])
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"abc", b"\x80\x04cos\nsystem\n.", b"PK\x03\x04"])
def test_a_file_that_is_no_controller(content, scene_file, tmp_path, capsys):
    """One sentence, which does not advise to run what is in the file."""
    path = tmp_path / "controller.pt"
    path.write_bytes(content)
    assert cli.main(["simulate", str(scene_file), "--controller", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "controller.pt is not a controller written by 'warpbots train'" in said
    assert "weights_only" not in said


def test_a_controller_of_another_robot(scene_file, tmp_path, capsys):
    torch.save({"layers.0.weight": torch.zeros(3, 5)}, tmp_path / "controller.pt")
    words = ["--controller", str(tmp_path / "controller.pt"), "--out", str(tmp_path / "out")]
    assert cli.main(["simulate", str(scene_file), *words]) == 2
    assert "controller.pt is a controller for another robot" in capsys.readouterr().err


def test_ctrl_c_is_one_sentence(scene_file, tmp_path, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(wb.Simulation, "__init__", interrupted)
    assert cli.main(["simulate", str(scene_file), "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "warpbots: interrupted; no file is half written\n"
    assert not (tmp_path / "out").exists()
