"""Trained parameters in USD: what is written is read back to the last bit, and moves as before."""

import dataclasses

import pytest
import torch
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


def test_a_trajectory_writes_what_moved(tmp_path):
    """The file of a rollout with replaced parameters reads as the scene with them, and moves to the same end."""
    sim = designed("mpm")
    walk = sim.rollout(None, 3, **varied(sim))
    usd.write(tmp_path / "walk.usda", walk)
    back = usd.read(tmp_path / "walk.usda")
    assert back == walk.designed
    end = type(sim)(back, sim.solver, sim.dt, sim.substeps).rollout(None, 3).final
    assert torch.equal(end.position, walk.final.position)
