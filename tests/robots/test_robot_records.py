"""A robot file is read once into records with the content of the file; everything afterwards translates records."""

import ast
import contextlib
import dataclasses
import inspect
import math

import numpy as np
import pytest

import warpbots as wb
from warpbots.robots import (
    actuated_joints,
    collision_geoms,
    contact_filter,
    contact_laws,
    kinematic_tree,
    loops,
    records,
    robot_xml,
)
from warpbots.robots.model_reader import records_of
from warpbots.robots.mujoco_source import read

ARM = """<mujoco model="arm"><compiler angle="degree"/><worldbody>
  <body name="base"><geom type="sphere" size=".1"/>
    <body pos="0 0 .5" quat=".6 0 0 .8"><joint name="elbow" axis="0 1 0" range="-90 30" damping=".3" armature=".02"/>
      <geom name="hand" type="box" size=".1 .2 .3" friction=".7" contype="0" conaffinity="0" rgba="1 .5 0 1"/></body>
  </body></worldbody>
  <actuator><position joint="elbow" kp="5" ctrlrange="-1 2"/></actuator>
  <keyframe><key name="bent" qpos=".4" ctrl=".25"/></keyframe></mujoco>"""

THIN = '<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".0201" ixy="0" ixz="0" iyz="0"/></inertial>'
"""Moments that MuJoCo refuses, so that the file is compiled twice."""

URDF = f"""<robot name="r"><link name="a">{THIN}</link><link name="b">{THIN}</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_records_say_what_the_file_says(write):
    """Numbers by hand: a quaternion (0.6, 0, 0, 0.8) turns about z by the angle of cosine 0.6^2 - 0.8^2."""
    robot = records_of(read(write("arm.xml", ARM)))
    world, base, hand = robot.bodies
    assert (robot.name, world.name, base.name, hand.name) == ("arm", "world", "base", "body 2")
    assert (hand.parent, hand.root, hand.joints) == (1, 1, (0,))
    c, s = 0.36 - 0.64, 2 * 0.6 * 0.8
    np.testing.assert_allclose(hand.rotation, [[c, -s, 0], [s, c, 0], [0, 0, 1]], atol=1e-15)
    assert base.mass == pytest.approx(4 / 3 * math.pi * 0.1**3 * 1000)
    np.testing.assert_allclose(base.moments, 0.4 * base.mass * 0.1**2 * np.eye(3), rtol=1e-12, atol=1e-15)
    (joint,) = robot.joints
    assert (joint.name, joint.kind, joint.effort) == ("elbow", "hinge", None)
    np.testing.assert_allclose(joint.range, [-math.pi / 2, math.pi / 6])
    assert (joint.damping.tolist(), joint.armature.tolist()) == ([0.3], [0.02])
    sphere, box = robot.geoms
    assert (sphere.name, sphere.kind, sphere.contype, box.name, box.kind, box.contype) == (
        "geom 0", "sphere", 1, "hand", "box", 0,
    )  # fmt: skip
    assert box.friction == 0.7 and box.color == pytest.approx((1.0, 0.5, 0.0))
    (motor,) = robot.actuators
    assert (motor.name, motor.drives, motor.target, motor.gain[0]) == ("actuator 0", "joint", 0, 5.0)
    assert motor.control_range.tolist() == [-1.0, 2.0] and motor.force_range is None
    (key,) = robot.keyframes
    assert (key.name, key.qpos.tolist(), key.ctrl.tolist()) == ("bent", [0.4], [0.25])


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_every_file_is_parsed_once(kind, write, monkeypatch):
    """Also a file that MuJoCo refuses at first, and one that includes another."""
    if kind == "urdf":
        path, files = write("r.urdf", URDF), 1
    else:
        write("part.xml", '<mujoco><worldbody><body name="c"><geom size=".1"/></body></worldbody></mujoco>')
        path, files = write("r.xml", ARM.replace("<worldbody>", '<include file="part.xml"/><worldbody>')), 2
    parsers, create = [], robot_xml.expat.ParserCreate
    monkeypatch.setattr(robot_xml.expat, "ParserCreate", lambda: parsers.append(1) or create())
    with pytest.warns(wb.FileWarning) if kind == "urdf" else contextlib.nullcontext():
        wb.robots.load(path)
    assert len(parsers) == files


def test_records_are_plain():
    for name in records.__all__:
        cls = getattr(records, name)
        assert dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen, name
        own = [key for key, value in vars(cls).items() if inspect.isfunction(value) and not key.startswith("__")]
        assert not own, (name, own)


@pytest.mark.parametrize(
    "module", [actuated_joints, collision_geoms, contact_filter, contact_laws, kinematic_tree, loops],
    ids=lambda m: m.__name__.rpartition(".")[2],
)  # fmt: skip
def test_translation_knows_records_alone(module):
    """It uses neither MuJoCo nor its arrays."""
    tree = ast.parse(inspect.getsource(module))
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in froms if "mujoco" in name or name.endswith("model_reader")}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in ("model", "spec")]
