"""A scene or a motion in one file, and files that can be moved."""

import dataclasses
import zipfile

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom
from usd_cases import Trajectory, findings, full_scene, names, rigid_scene, simple_scene

from warpbots import usd
from warpbots.scene import SceneError


def frames(file):
    """Points of the particles of all bodies at all time codes."""
    stage = Usd.Stage.Open(str(file))
    found = {}
    for prim in stage.Traverse():
        if prim.IsA(UsdGeom.Points) and prim.GetAttribute("points").GetNumTimeSamples():
            attribute = prim.GetAttribute("points")
            found[str(prim.GetPath())] = [np.array(attribute.Get(t)) for t in attribute.GetTimeSamples()]
    return found


def assert_same_frames(a, b):
    a, b = frames(a), frames(b)
    assert a.keys() == b.keys() != set()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("scene", [full_scene(3), rigid_scene()], ids=["soft", "rigid"])
@pytest.mark.parametrize("file", ["one.usdz", "flat.usdc"])
def test_a_scene(scene, file, tmp_path):
    usd.write(tmp_path / file, scene, flat=file.startswith("flat"))
    assert names(tmp_path) == [file]
    assert usd.read(tmp_path / file) == scene
    assert findings(tmp_path / file) == []


@pytest.mark.parametrize("file", ["one.usdz", "flat.usdc"])
def test_a_motion(file, tmp_path):
    """The single file has the frames of the several files, also at another rate, and can be moved alone."""
    scene = full_scene(2)
    (tmp_path / "several").mkdir()
    (tmp_path / "moved").mkdir()
    usd.write(tmp_path / "several" / "walk.usda", Trajectory(scene), fps=24.0)
    usd.write(tmp_path / file, Trajectory(scene), fps=24.0, flat=True)
    moved = (tmp_path / file).rename(tmp_path / "moved" / file)
    assert_same_frames(moved, tmp_path / "several" / "walk.usda")
    stage = Usd.Stage.Open(str(moved))
    assert (stage.GetTimeCodesPerSecond(), stage.GetStartTimeCode()) == (24.0, 0.0)
    assert stage.GetEndTimeCode() == 3.0  # whole, so that no player leaves out the last fraction of a frame
    assert {layer.realPath.split("[")[0] for layer in stage.GetUsedLayers() if layer.realPath} == {str(moved)}
    assert usd.read(moved) == scene
    assert findings(moved) == []


def test_a_folder_with_a_motion_can_be_moved(tmp_path):
    """Paths between its files are relative, also to the file of the scene."""
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    usd.write(tmp_path / "here" / "robot.usda", simple_scene())
    robot = usd.read(tmp_path / "here" / "robot.usda")
    usd.write(tmp_path / "here" / "walk.usda", Trajectory(robot))
    before = frames(tmp_path / "here" / "walk.usda")
    for file in list((tmp_path / "here").iterdir()):
        file.rename(tmp_path / "there" / file.name)
    (tmp_path / "here").rmdir()
    after = frames(tmp_path / "there" / "walk.usda")
    assert before.keys() == after.keys() != set()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert usd.read(tmp_path / "there" / "walk.usda") == robot


def test_a_package_is_written_anew(tmp_path):
    """This process does not read its earlier content; a package may overwrite the file of its scene."""
    usd.write(tmp_path / "robot.usdz", simple_scene())
    scene = dataclasses.replace(usd.read(tmp_path / "robot.usdz"), gravity=(0.0, 0.0, -1.6))
    usd.write(tmp_path / "robot.usdz", scene)
    assert usd.read(tmp_path / "robot.usdz").gravity == (0.0, 0.0, -1.6)


def test_a_package_takes_along_what_its_layers_refer_to(tmp_path):
    """For example the texture of a source."""
    usd.write(tmp_path / "robot.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    (tmp_path / "skin.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    shader = stage.DefinePrim("/World/Skin", "Shader")
    shader.CreateAttribute("inputs:file", Sdf.ValueTypeNames.Asset).Set("./skin.png")
    stage.Save()
    usd.write(tmp_path / "one.usdz", usd.read(tmp_path / "robot.usda"))
    with zipfile.ZipFile(tmp_path / "one.usdz") as package:
        assert [n.rpartition("/")[2] for n in package.namelist()] == ["one.usdc", "skin.png"]


def test_a_motion_does_not_overwrite_its_scene(tmp_path):
    usd.write(tmp_path / "robot.usdz", simple_scene())
    with pytest.raises(ValueError, match="this would overwrite .*robot.usdz, the file of the scene"):
        usd.write(tmp_path / "robot.usdz", Trajectory(usd.read(tmp_path / "robot.usdz")))


def test_packages_without_a_stage(tmp_path):
    """A picture, nothing at all, and a stage that is not the first file."""
    for name, files in {"picture": ["a.png"], "nothing": [], "late": ["a.png", "scene.usda"]}.items():
        with zipfile.ZipFile(tmp_path / f"{name}.usdz", "w", zipfile.ZIP_STORED) as package:
            for file in files:
                package.writestr(file, "#usda 1.0\n")
        with pytest.raises(SceneError) as fault:
            usd.read(tmp_path / f"{name}.usdz")
        assert "\n" not in str(fault.value)
        assert "has no stage" in str(fault.value)


def test_a_flat_file_finds_what_its_layers_refer_to(tmp_path):
    """By a path relative to its own folder, not to the folders of its layers."""
    usd.write(tmp_path / "robot.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    (tmp_path / "skin.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "below").mkdir()
    stage.DefinePrim("/World/Skin", "Shader").CreateAttribute("inputs:file", Sdf.ValueTypeNames.Asset).Set("./skin.png")
    stage.Save()
    usd.write(tmp_path / "below" / "flat.usdc", usd.read(tmp_path / "robot.usda"), flat=True)
    stage = Usd.Stage.Open(str(tmp_path / "below" / "flat.usdc"))
    asset = stage.GetPrimAtPath("/World/Skin").GetAttribute("inputs:file").Get()
    assert asset.path == "../skin.png"
    assert asset.resolvedPath == str(tmp_path / "skin.png")
