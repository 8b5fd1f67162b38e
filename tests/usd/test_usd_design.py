"""Trained parameters in USD: a written scene is read back to the last bit, and moves as before."""

import dataclasses

import pytest
import torch
from cases import fields_of
from designs import DESIGNS, designed, varied
from pxr import Usd, UsdGeom, UsdPhysics
from usd_cases import differences, findings

from warpbots import usd


def baked(name):
    sim = designed(name)
    return sim, sim.scene_with(**varied(sim))


@pytest.mark.parametrize("name", DESIGNS)
def test_every_parameter_of_every_solver(name, tmp_path):
    _, scene = baked(name)
    usd.write(tmp_path / "design.usdc", scene)
    back = usd.read(tmp_path / "design.usdc")
    assert not differences(back, scene)
    assert back == scene
    assert findings(tmp_path / "design.usdc") == []


@pytest.mark.parametrize("name", ["mpm", "articulated"])
def test_other_units_and_axes(name, tmp_path):
    """Over a source in centimetres and grams with y up."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "source.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1e-3)
    stage.SetDefaultPrim(stage.DefinePrim("/World", "Xform"))
    stage.Save()
    _, scene = baked(name)
    scene = dataclasses.replace(scene, source=str(tmp_path / "source.usda"), name="World")
    usd.write(tmp_path / "design.usda", scene)
    assert usd.read(tmp_path / "design.usda") == scene


@pytest.mark.parametrize("name", DESIGNS)
def test_a_trajectory_writes_what_moved(name, tmp_path):
    """The file of a rollout with replaced parameters reads as the scene with them, and moves to the same end."""
    sim = designed(name)
    walk = sim.rollout(None, 2, **varied(sim))
    usd.write(tmp_path / "walk.usda", walk)
    back = usd.read(tmp_path / "walk.usda")
    assert not differences(back, walk.designed)
    assert back == walk.designed
    end = type(sim)(back, sim.solver, sim.dt, sim.substeps).rollout(None, 2).final
    for field, value in fields_of(walk.final).items():
        assert torch.equal(fields_of(end)[field], value), field


@pytest.mark.parametrize("name", DESIGNS)
def test_a_trajectory_writes_where_it_began(name, tmp_path):
    """A motion that continues another one reads as a scene that begins where that one ended."""
    sim = designed(name)
    walk = sim.rollout(None, 2, sim.rollout(None, 1).final)
    usd.write(tmp_path / "walk.usda", walk)
    back = usd.read(tmp_path / "walk.usda")
    assert back == walk.designed
    end = type(sim)(back, sim.solver, sim.dt, sim.substeps).rollout(None, 2).final
    for field, value in fields_of(walk.final).items():
        assert torch.equal(fields_of(end)[field], value), field


def test_a_robot_from_a_file_keeps_its_records(tmp_path):
    """Parameters that a rollout replaced become fields, so that the file of the robot stays unchanged."""
    usd.write(tmp_path / "robot.usda", designed("articulated").scene)
    before = (tmp_path / "robot.usda").read_bytes()
    robot, sim = usd.read(tmp_path / "robot.usda"), designed("articulated")
    sim = type(sim)(robot, sim.solver, sim.dt, sim.substeps)
    walk = sim.rollout(None, 2, **varied(sim))
    usd.write(tmp_path / "walk.usda", walk)
    back = usd.read(tmp_path / "walk.usda")
    assert dataclasses.replace(back, fields=()) == robot
    assert back == walk.designed
    assert (tmp_path / "robot.usda").read_bytes() == before
