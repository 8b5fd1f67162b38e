"""Gravity of other programs' files, and options that a scene cannot fulfil."""

import pytest
from pxr import Usd, UsdGeom, UsdPhysics

import warpbots as wb
from warpbots.scene import Sphere


@pytest.mark.parametrize("said", [-1.0, -9.81])
def test_a_negative_gravity_is_that_of_the_earth(said, tmp_path):
    stage = Usd.Stage.CreateNew(str(tmp_path / "cube.usda"))
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdPhysics.Scene.Define(stage, "/physics").CreateGravityMagnitudeAttr(said)
    cube = UsdGeom.Cube.Define(stage, "/cube").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(cube)
    UsdPhysics.CollisionAPI.Apply(cube)
    stage.Save()
    assert wb.usd.read(tmp_path / "cube.usda", contact_points=0).gravity == (0.0, 0.0, -9.81)


@pytest.mark.parametrize(
    "option", [{"fps": 24.0}, {"every": 5}, {"velocities": True}, {"particles": False}, {"springs": True},
               {"color": "stress"}],
)  # fmt: skip
def test_a_scene_refuses_the_options_of_a_motion(option, tmp_path):
    scene = wb.Scene([wb.RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.1), points=0)])
    (name,) = option
    with pytest.raises(ValueError, match=f"write: {name} is for trajectories, and this is a Scene"):
        wb.usd.write(tmp_path / "ball.usda", scene, **option)
    assert not list(tmp_path.iterdir())
