"""Colours of bodies are in [0, 1]: others are refused in a scene, and read with a note from files of others."""

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

import warpbots as wb

RUBBER, BOX = wb.Material(1e5), wb.shapes.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
BRIGHT, SHOWN = (255.0, 128.0, 0.0), (1.0, 128.0 / 255.0, 0.0)


@pytest.mark.parametrize("color", [(255, 0, 0), (0.2, 0.3, 1.01), (0.5, -0.1, 0.5)])
def test_a_colour_beyond_its_range_is_refused(color):
    for kind, body in (("SoftBody", lambda: wb.SoftBody("bar", BOX, RUBBER, color=color)),
                       ("RigidBody", lambda: wb.RigidBody("bar", BOX, color=color))):  # fmt: skip
        with pytest.raises(wb.SceneError, match=rf"{kind} 'bar': color .* in \[0, 1\], got .*; divide .* by 255"):
            body()
    assert wb.SoftBody("bar", BOX, RUBBER, color=(0, 1, 0.5)).color == (0.0, 1.0, 0.5)


def test_rounding_beyond_the_range_of_colours_is_removed():
    color = (np.nextafter(np.float32(1.0), np.float32(2.0)), np.float32(-1e-9), 0.5)
    assert wb.SoftBody("bar", BOX, RUBBER, color=color).color == pytest.approx((1.0, 0.0, 0.5), rel=1e-6)
    assert max(wb.RigidBody("bar", BOX, color=color).color) == 1.0


@pytest.mark.parametrize("body", [wb.SoftBody("bar", BOX, RUBBER), wb.RigidBody("bar", BOX)])
def test_a_usd_file_brighter_than_a_screen_is_read_with_its_hue(tmp_path, body):
    """The note names the prim and the value, and a scene that is written back leaves the file's colour as it is."""
    path = tmp_path / "bright.usda"
    wb.usd.write(path, wb.Scene([body]))
    stage = Usd.Stage.Open(str(path))
    paths = [p.GetPath() for p in stage.Traverse() if p.GetAttribute("primvars:displayColor").HasAuthoredValue()]
    for at in paths:
        UsdGeom.Gprim(stage.GetPrimAtPath(at)).CreateDisplayColorAttr([Gf.Vec3f(*BRIGHT)])
    stage.Save()
    with pytest.warns(wb.FileWarning, match=r"/bar: primvars:displayColor \(255.0, 128.0, 0.0\) is not in \[0, 1\]"):
        scene = wb.usd.read(path)
    assert scene.bodies[0].color == pytest.approx(SHOWN)
    again = tmp_path / "again.usda"
    wb.usd.write(again, scene)
    stage = Usd.Stage.Open(str(again))
    np.testing.assert_allclose(stage.GetPrimAtPath(paths[0]).GetAttribute("primvars:displayColor").Get(), [BRIGHT])


@pytest.mark.parametrize("name", ["bar.urdf", "bar.xml"])
def test_a_robot_of_eight_bits_is_read_with_its_hue(tmp_path, name):
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    ball, rgba = '<geometry><sphere radius=".1"/></geometry>', 'rgba="255 128 0 1"'
    look = f'<visual>{ball}<material name="m"><color {rgba}/></material></visual>'
    urdf = f'<robot name="r"><link name="bar">{mass}{look}<collision>{ball}</collision></link></robot>'
    mjcf = f'<mujoco><worldbody><body name="bar"><geom size=".1" {rgba}/></body></worldbody></mujoco>'
    (tmp_path / name).write_text(urdf if name.endswith("urdf") else mjcf)
    with pytest.warns(wb.FileWarning, match=r"colour \(255.0, 128.0, 0.0\) of 'bar' is not in \[0, 1\]"):
        scene = wb.robots.load(tmp_path / name)
    assert scene.bodies[0].color == pytest.approx(SHOWN)
