"""Written files pass OpenUSD's own validators and those of Omniverse without a finding."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
from pxr import Usd, UsdGeom
from usd_cases import SOLIDS, Trajectory, findings, full_scene, rigid_scene, simple_scene

from warpbots import usd
from warpbots.scene import Obstacle


@pytest.mark.parametrize("extension", ["usda", "usdc"])
@pytest.mark.parametrize("dim", [2, 3])
def test_scenes(dim, extension, tmp_path):
    usd.write(tmp_path / f"scene.{extension}", full_scene(dim))
    assert findings(tmp_path / f"scene.{extension}") == []


@pytest.mark.parametrize("dim", [2, 3])
def test_trajectories(dim, tmp_path):
    usd.write(tmp_path / "walk.usda", Trajectory(full_scene(dim)), velocities=True)
    assert findings(tmp_path / "walk.usda") == []


def test_the_validators_do_find_faults(tmp_path):
    """An unevenly scaled sphere that collides (OpenUSD's), and particles outside of their extent (Omniverse's)."""
    usd.write(tmp_path / "walk.usda", Trajectory(simple_scene(obstacles=[Obstacle(SOLIDS[3]["sphere"], name="ball")])))
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    UsdGeom.Xformable(stage.GetPrimAtPath("/World/Obstacles/ball/Shape")).AddScaleOp().Set((1, 2, 3))
    stage.GetPrimAtPath("/World/Bodies/block/Particles").GetAttribute("extent").Set([(0, 0, 0), (1, 1, 1)], 2.0)
    found = findings(stage)
    assert sorted({text.split(":")[0] for text in found}) == [
        "ColliderChecker",
        "ColliderNonUniformScale",
        "ExtentsChecker",
    ]


REGISTERED = """
import sys
import newton_usd_schemas
sys.path.insert(0, {folder!r})
from usd_cases import findings, full_scene, rigid_scene
from pxr import Usd, UsdGeom
from warpbots import usd
path = {path!r}
robot = path.replace("scene", "robot")
assert usd.read(robot) == rigid_scene()
usd.write(robot.replace("robot", "again"), rigid_scene())
assert open(robot).read() == open(robot.replace("robot", "again")).read()
assert findings(robot) == []
assert usd.read(path) == full_scene(3)
usd.write(path.replace("scene", "again"), full_scene(3))
assert open(path).read() == open(path.replace("scene", "again")).read()
stage = Usd.Stage.Open(path)
assert stage.GetPrimAtPath("/World/PhysicsScene").HasAPI("NewtonMPMSceneAPI")
print(findings(path))
"""


@pytest.mark.skipif(find_spec("newton_usd_schemas") is None, reason="newton-usd-schemas admits no Python above 3.13")
def test_with_the_plug_in_of_newton_registered(tmp_path, request):
    """In a process that knows Newton's schemas, the same files are written, read and valid."""
    usd.write(tmp_path / "scene.usda", full_scene(3))
    usd.write(tmp_path / "robot.usda", rigid_scene())
    code = REGISTERED.format(folder=str(request.path.parent), path=str(tmp_path / "scene.usda"))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "[]"
