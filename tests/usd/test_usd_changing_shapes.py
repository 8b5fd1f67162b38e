"""Shapes of other programs' files that change in time, of which a scene has the first."""

import warnings

import pytest
from pxr import Usd, UsdGeom, UsdPhysics

from warpbots import usd


def ball(folder, **radii):
    stage = Usd.Stage.CreateNew(str(folder / "ball.usda"))
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    sphere = UsdGeom.Sphere.Define(stage, "/ball")
    for code, radius in radii.items():
        sphere.CreateRadiusAttr().Set(radius, float(code[1:]))
    UsdPhysics.RigidBodyAPI.Apply(sphere.GetPrim())
    UsdPhysics.CollisionAPI.Apply(sphere.GetPrim())
    stage.Save()
    return folder / "ball.usda"


def test_a_radius_that_grows_is_noted(tmp_path):
    with pytest.warns(UserWarning, match="radius, which changes in time; its first value counts, 1"):
        scene = usd.read(ball(tmp_path, t0=1.0, t10=3.0), contact_points=0)
    assert scene.rigid[0].shape.radius == 1.0


def test_a_radius_that_stays_is_not(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usd.read(ball(tmp_path, t0=1.0, t10=1.0), contact_points=0)
