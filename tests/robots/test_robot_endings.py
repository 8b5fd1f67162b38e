"""The content of a robot file decides its type, not its ending."""

import mujoco
import numpy as np
import pytest

import warpbots as wb
from warpbots.cli import main

PART = '<body name="tip" pos="0 0 .3"><joint name="k" axis="0 1 0"/><geom size=".05" mass=".2"/></body>'
MJCF = """<mujoco><include file="looks.{0}"/><asset><mesh file="cube.obj" inertia="convex"/></asset><worldbody><body name="arm"><joint name="j" range="-1 2"/>
  <geom type="mesh" mesh="cube"/>{1}</body></worldbody></mujoco>"""
URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
CUBE = "\n".join(f"v {x} {y} {z}" for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)) + "\nf 1 2 3\n"


@pytest.mark.parametrize("ending", ["xml", "mjcf", "XML", "MJCF", "txt", ""])
def test_mjcf_is_known_by_its_content(tmp_path, ending):
    """With an include, a mesh and an undefined material, so that its text must differ from that on the disk."""
    (tmp_path / "cube.obj").write_text(CUBE)
    looks = ending or "mjcf"
    (tmp_path / f"looks.{looks}").write_text('<mujoco><option gravity="0 0 -2"/></mujoco>')
    path = tmp_path / f"robot.{ending}".rstrip(".")
    path.write_text(MJCF.format(looks, PART.replace("mass", 'material="none" mass')))
    scene = wb.robots.load(path)
    assert [b.name for b in scene.rigid] == ["arm", "tip"] and scene.gravity[2] == -2.0 and scene.name == "robot"
    reference = tmp_path / "reference.xml"
    reference.write_text(MJCF.format(looks, PART))
    model = mujoco.MjModel.from_xml_path(str(reference))
    np.testing.assert_allclose([b.inertia.mass for b in scene.rigid], model.body_mass[1:], rtol=1e-12)


def test_an_attached_model_is_known_by_its_content(tmp_path):
    (tmp_path / "part.mjcf").write_text(f"<mujoco><worldbody>{PART}</worldbody></mujoco>")
    path = tmp_path / "whole.mjcf"
    attach = '<frame><attach model="m" prefix="left_"/></frame>'
    path.write_text(
        f'<mujoco><asset><model name="m" file="part.mjcf"/></asset><worldbody>{attach}</worldbody></mujoco>'
    )
    assert [b.name for b in wb.robots.load(path).rigid] == ["left_tip"]


@pytest.mark.parametrize("ending", [".urdf", ".URDF", ".xml", ".mjcf", ".robot", ""])
def test_urdf_is_known_by_its_content(tmp_path, ending):
    path = tmp_path / f"robot{ending}"
    path.write_text(URDF)
    assert [b.name for b in wb.robots.load(path).rigid] == ["base", "arm"]


def test_commands_and_the_writer_know_them_too(tmp_path, capsys):
    path = tmp_path / "robot.MJCF"
    path.write_text(f"<mujoco><worldbody>{PART}</worldbody></mujoco>")
    assert main(["convert", str(path), str(tmp_path / "written.mjcf")]) == 0
    assert main(["info", str(tmp_path / "written.mjcf")]) == 0
    assert [b.name for b in wb.robots.load(tmp_path / "written.mjcf").rigid] == ["tip"]


@pytest.mark.parametrize("text", ["solid a\nendsolid", "#usda 1.0\n", "\0\1\2"])
def test_other_content_is_refused(tmp_path, text):
    path = tmp_path / "robot.dat"
    path.write_text(text)
    with pytest.raises(wb.SceneError, match=r"read from URDF and MJCF, which are XML and begin with '<'; got \.dat"):
        wb.robots.load(path)


def test_xacro_is_not_read_as_urdf(tmp_path):
    """Without its macros a robot would be incomplete."""
    path = tmp_path / "robot.xacro"
    macro = '<xacro:include filename="hand.xacro"/>'
    path.write_text(URDF.replace("<link", macro + "<link", 1))
    with pytest.raises(wb.SceneError, match=r"<xacro:include> is xacro, not URDF; run xacro on it first"):
        wb.robots.load(path)


def test_an_older_mujoco_is_refused_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "robot.xml").write_text(f"<mujoco><worldbody>{PART}</worldbody></mujoco>")
    monkeypatch.setattr(mujoco, "__version__", "3.13.1")
    with pytest.raises(
        ImportError, match=r"robots need MuJoCo 3\.14 or later, got 3\.13\.1, .*pip install 'mujoco>=3\.14'"
    ):
        wb.robots.load(tmp_path / "robot.xml")
