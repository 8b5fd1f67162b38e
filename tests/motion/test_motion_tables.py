"""What a user reads about things that move: tables, the command line, and files that cannot hold them."""

import dataclasses
import re

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots import cli
from warpbots.robots import save

BOX = wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.1))
TABLE = wb.PrescribedMotion(
    [0.0, 0.5, 1.0], np.zeros((3, 3)), [[0, 0, 0], [0, 0, 1], [0, 0, 1]], (0, 0, 0), beyond="hold"
)


def scene():
    """A block on a belt, held by jaws, beside a tool with a table and two drives."""
    tool = wb.Obstacle(wb.shapes.Box((0.2, 0, 0), (0.4, 0.2, 0.2)), name="tool", motion=TABLE)
    belt = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1)), name="belt", surface_velocity=(0.1, 0, 0))
    body = wb.SoftBody("block", BOX, wb.Material(2e4, 0.25), {"top": wb.shapes.Box((0, 0, 0.09), (0.1, 0.1, 0.1))})
    jaws = wb.Constraint(
        "top", name="jaws", motion=dataclasses.replace(TABLE, rotations=None, pivot=None, beyond="error")
    )
    drives = [
        wb.actuators.VelocityDrive("push", "tool", 0.25, (1, 0, 0)),
        wb.actuators.VelocityDrive("spin", "tool", 3.0, (0, 0, 1), "rotation", (0.3, 0.1, 0)),
    ]
    task = wb.Task(0.05, 0.01, 20, 5, (1, 0, 0))
    return wb.Scene([body], drives, [belt, tool], constraints=[jaws], task=task, name="press")


def test_the_table_of_a_scene_says_what_moves():
    words = str(scene())
    for line in (
        "tool .* friction, coefficient 0.5 +moves by 3 positions and rotations in 1 s, held",
        "belt .* surface velocity \\(0.1, 0, 0\\) m/s",
        "jaws  Constraint  region top, moves by 3 positions in 1 s\n",
        "spin  VelocityDrive  moves tool, max_speed 3, axis \\(0, 0, 1\\), kind rotation, pivot",
    ):
        assert re.search(line, words + "\n"), (line, words)


def test_the_command_line_reads_shows_and_simulates_what_moves(tmp_path, capsys):
    path, out = tmp_path / "press.usda", tmp_path / "out"
    wb.usd.write(path, scene())
    assert cli.main(["info", str(path), "--solver", "springs"]) == 0
    words = capsys.readouterr().out
    for line in (
        "control channel 0: VelocityDrive push of tool: translation, up to 0.25 m/s",
        "control channel 1: VelocityDrive spin of tool: rotation, up to 3 rad/s",
        "obstacle belt: HalfSpace, friction, mu 0.5, surface velocity (0.1, 0, 0) m/s",
        "obstacle tool: Box, friction, mu 0.5, moves by 3 positions and rotations in 1 s, held",
        "constraint jaws: region top, moves by 3 positions in 1 s",
        "motion_rotation: ",
    ):
        assert line in words
    assert cli.main(["convert", str(path), str(tmp_path / "copy.usdc")]) == 0
    assert wb.usd.read(tmp_path / "copy.usdc") == scene()
    assert cli.main(["simulate", str(path), "--solver", "springs", "--out", str(out)]) == 0
    assert wb.usd.read(out / "motion.usda") == scene()
    assert (out / "motion.gif").stat().st_size > 1000
    assert cli.main(["simulate", str(path), "--solver", "springs", "--steps", "150", "--out", str(tmp_path / "b")]) == 2
    assert "ends at 1 s" in capsys.readouterr().err


def test_robot_files_hold_no_motion(tmp_path):
    hand = wb.RigidBody("hand", BOX)
    for change, name in (
        ({"motion": TABLE}, "the motion of Obstacle 'floor'"),
        ({"surface_velocity": (1, 0, 0)}, "floor"),
    ):
        floor = dataclasses.replace(wb.floor(), **change)
        with pytest.raises(wb.SceneError, match=f"the scene has .*{name}.*; leave them out, or write USD"):
            save(tmp_path / "hand.xml", wb.Scene([hand], obstacles=[floor]))
    assert not (tmp_path / "hand.xml").exists()


def simulation(motion, worlds=1):
    plate = wb.Obstacle(wb.shapes.HalfSpace((0, 0, -1), (0, 0, 1)), name="plate", motion=motion)
    body = wb.SoftBody("block", BOX, wb.Material(2e5, 0.25))
    return wb.Simulation(
        wb.Scene([body], obstacles=[plate]), wb.MassSpring(0.05), dt=0.1 / 3, substeps=40, worlds=worlds
    )


def test_a_rollout_may_end_where_its_table_ends():
    """Up to rounding: 3 control intervals of a third of 0.1 s; other tables go on."""
    motion = wb.PrescribedMotion([0.0, 0.1], np.zeros((2, 3)))
    simulation(motion).rollout(None, 3)
    with pytest.raises(ValueError, match="Obstacle 'plate' ends at 0.1 s.*simulate at most 3 of them"):
        simulation(motion).rollout(None, 4)
    for beyond in ("hold", "repeat"):
        simulation(dataclasses.replace(motion, beyond=beyond)).rollout(None, 4)


def test_a_rollout_runs_while_the_table_of_one_world_goes_on():
    sim = simulation(wb.PrescribedMotion([0.0, 0.1], np.zeros((2, 3))), worlds=2)
    state = sim.state(time=torch.tensor([0.1, 0.0], dtype=torch.float64))
    with pytest.warns(wb.LostWorldWarning, match="prescribed motion of 'plate' ends"):
        assert sim.rollout(None, 2, state).lost.tolist() == [0, -1]
