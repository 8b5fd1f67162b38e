"""Kinds of joints follow from one table, and the recipe that adds one, as CONTRIBUTING.md has it."""

import dataclasses

import numpy as np
import pytest
import torch
from pxr import Usd, UsdPhysics

import warpbots as wb
from warpbots.design.export.motion import moves_of
from warpbots.scene import JOINTS, ElementaryJoint, JointKind


def elementary(text):
    """A kind from words such as ``"revolute x, prismatic"``."""
    return JointKind(tuple(ElementaryJoint(*part.split()) for part in text.split(", ")))


KINDS = {
    "universal": elementary("revolute x, revolute y"),
    "turned_table": elementary("revolute z, prismatic x, prismatic y"),
    "wrist": elementary("revolute z, revolute x, revolute z"),
    "lathe": elementary("revolute, prismatic"),
    "drawer": elementary("prismatic x, revolute, prismatic x"),
    "shoulder": elementary("revolute x, ball"),
    "crane": elementary("revolute, ball"),
}
"""Kinds whose chains differ from built-in ones in order, repeat an axis, or have axes of both sorts."""
QUATERNION = np.array([0.1, -0.3, 0.2, np.sqrt(0.86)])
RATE = np.array([0.3, -0.5, 0.4, 0.2])
HEAVY = wb.Inertia(2.0, (0.01, -0.02, 0.03), np.diag([0.02, 0.03, 0.04]))
FRAME = {"position": (0.05, 0.1, 0.9), "rotation": ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))}


@pytest.fixture(autouse=True)
def added():
    """The recipe: one line in the table for each kind; the new lines come first."""
    old = dict(JOINTS)
    JOINTS.clear()
    JOINTS.update(KINDS | old)
    yield
    JOINTS.clear()
    JOINTS.update(old)


def mechanism(kind, start, rate, **values):
    """A body on one joint."""
    body = wb.RigidBody(
        "body", wb.shapes.Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), inertia=HEAVY, position=(0.1, 0.2, 1)
    )
    joint = wb.Joint("joint", kind, None, "body", axis=(1, 2, -1), start=start, start_velocity=rate, **FRAME, **values)
    return wb.Scene([body], joints=[joint])


def started(kind, **values):
    """A body on one joint that starts displaced and in motion."""
    made = JOINTS[kind]
    start = np.concatenate([[0.2, -0.4, 0.3][: made.straight], QUATERNION if made.ball else []])
    return mechanism(kind, tuple(start), tuple(RATE[: made.freedom]), armature=0.05, **values)


def chain(kind):
    """The body of `started` on one joint for each elementary joint, with bodies without mass between them."""
    scene, made = mechanism("fixed", None, None), JOINTS[kind]
    names = [f"between {k}" for k in range(len(made.chain) - 1)]
    first, joints = started(kind).joints[0], []
    for k, (part, parent, child) in enumerate(zip(made.chain, [None, *names], [*names, "body"], strict=True)):
        joints.append(
            wb.Joint(f"joint {k}", part.type, parent, child, axis=part.direction(first.axis),
                     start=first.start[k : k + part.coordinates], start_velocity=first.start_velocity[k : k + part.freedom], armature=0.05,
                     **FRAME)
        )  # fmt: skip
    return wb.Scene([*(wb.RigidBody(name, None) for name in names), *scene.rigid], joints=joints)


def motion(scene, steps=20):
    """Coordinates and velocities over time."""
    sim = wb.Simulation(scene, wb.Articulated(), 5e-3)
    return sim.rollout(None, steps, observe=lambda s: torch.cat([s.q, s.qd], dim=-1)).observation


@pytest.mark.verification
@pytest.mark.parametrize("kind", ["cylindrical", *KINDS])
def test_a_kind_from_one_line_moves_as_its_elementary_joints(kind):
    one, two = motion(started(kind)), motion(chain(kind))
    torch.testing.assert_close(one, two, rtol=0.0, atol=1e-12 if one.dtype == torch.float64 else 5e-6)


def limited(kind):
    """The scene of `started` with other values for each velocity, and limits and motors where the kind has them."""
    made = JOINTS[kind]
    n = made.freedom
    values = {"damping": (0.1, 0.2, 0.3, 0.3)[:n], "stiffness": (3.0, 2.0, 1.0, 1.0)[:n]}
    if made.ball:
        values = {field: (own[0], *[own[-1]] * 3) for field, own in values.items()}
    else:
        values |= {"lower": (-0.5, -1.0, -0.7)[:n], "upper": (0.6, 1.2, 0.9)[:n], "neutral": (0.1, 0.2, 0.3)[:n]}
    motors = [wb.actuators.Servo("first", "joint", 2.0, 0.1, 0.3, 0.5, 0)]
    motors += [] if made.ball else [wb.actuators.Torque("last", "joint", 0.7, n - 1)]
    return dataclasses.replace(started(kind, **values), actuators=motors)


@pytest.mark.parametrize("kind", ["cylindrical", *KINDS])
@pytest.mark.parametrize("make", [limited, started])
def test_a_kind_from_one_line_is_in_files_of_usd(kind, make, tmp_path, recwarn):
    scene = make(kind)
    wb.usd.write(tmp_path / "scene.usda", scene)
    back = wb.usd.read(tmp_path / "scene.usda")
    assert [str(warning.message) for warning in recwarn] == []
    assert back == scene
    torch.testing.assert_close(motion(back), motion(scene), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("kind", [kind for kind in JOINTS if kind != "fixed"])
def test_files_of_other_kinds_are_read_as_before(kind, tmp_path):
    scene = mechanism(kind, None, None, damping=tuple(0.1 + 0.1 * k for k in range(JOINTS[kind].freedom)))
    wb.usd.write(tmp_path / "scene.usda", scene)
    assert "warpbots:kind" not in (tmp_path / "scene.usda").read_text()
    assert wb.usd.read(tmp_path / "scene.usda") == scene


@pytest.mark.parametrize("kind", KINDS)
def test_free_axes_alone_do_not_name_a_new_kind(kind, tmp_path, monkeypatch):
    """A file of another program is read in the same way whatever kinds there are."""
    wb.usd.write(tmp_path / "scene.usda", mechanism(kind, None, None))
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    joint = next(prim for prim in stage.Traverse() if prim.IsA("PhysicsJoint"))
    for name in joint.GetAuthoredPropertyNames(lambda name: name.startswith("warpbots:")):
        joint.RemoveProperty(name)
    stage.Save()
    with_it = wb.usd.read(tmp_path / "scene.usda")
    for name in KINDS:
        monkeypatch.delitem(JOINTS, name)
    assert wb.usd.read(tmp_path / "scene.usda") == with_it


def test_a_kind_that_is_missing_or_different_is_refused(tmp_path, monkeypatch):
    wb.usd.write(tmp_path / "scene.usda", mechanism("turned_table", None, None))
    monkeypatch.setitem(JOINTS, "turned_table", KINDS["lathe"])
    with pytest.raises(wb.SceneError, match="chain of revolute z, prismatic x, prismatic y.* of revolute axis"):
        wb.usd.read(tmp_path / "scene.usda")
    monkeypatch.delitem(JOINTS, "turned_table")
    with pytest.raises(
        wb.SceneError, match="'turned_table', .* revolute z, prismatic x, prismatic y; add .* to JOINTS of"
    ):
        wb.usd.read(tmp_path / "scene.usda")


def test_edits_of_other_programs_count_or_are_refused(tmp_path):
    """Edited are limits of an axis beside a repeated axis, limits of the repeated axis, and the free axes."""
    file = tmp_path / "scene.usda"
    wb.usd.write(file, dataclasses.replace(limited("wrist"), actuators=()))
    stage = Usd.Stage.Open(str(file))
    joint = next(prim for prim in stage.Traverse() if prim.IsA("PhysicsJoint"))
    joint.GetAttribute("limit:rotX:physics:low").Set(-90.0)
    stage.Save()
    assert wb.usd.read(file).joints[0].lower == pytest.approx((-0.5, -np.pi / 2, -0.7))

    UsdPhysics.LimitAPI.Apply(joint, "rotZ").CreateLowAttr(-10.0)
    stage.Save()
    with pytest.warns(UserWarning, match="limits or a drive of rotZ, which are left out"):
        assert wb.usd.read(file).joints[0].lower == pytest.approx((-0.5, -np.pi / 2, -0.7))

    joint.GetAttribute("limit:rotX:physics:high").Set(-91.0)
    stage.Save()
    with pytest.raises(wb.SceneError, match="its free axes are rotZ, which are not those .*; .* remove warpbots:kind"):
        wb.usd.read(file)
    joint.RemoveProperty("warpbots:kind")
    stage.Save()
    with pytest.warns(UserWarning, match="warpbots:exact:stiffness.* belong to another joint"):
        assert [j.kind for j in wb.usd.read(file).joints] == ["revolute"]


def test_a_new_kind_that_is_read_backwards_is_refused(tmp_path):
    """The inverse of a turn before two slides is two slides before a turn."""
    table = mechanism("turned_table", None, None)
    scene = dataclasses.replace(
        table,
        bodies=[wb.RigidBody("base", wb.shapes.Sphere((0, 0, 0), 0.1)), *table.rigid],
        joints=[dataclasses.replace(table.joints[0], parent="base")],
    )
    wb.usd.write(tmp_path / "scene.usda", scene)
    assert wb.usd.read(tmp_path / "scene.usda") == scene
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.ArticulationRootAPI):
            prim.RemoveAPI(UsdPhysics.ArticulationRootAPI)
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath("/World/Bodies/body"))
    stage.Save()
    with pytest.raises(wb.SceneError, match="joint: its second body carries its first, .* 'turned_table'"):
        wb.usd.read(tmp_path / "scene.usda")


def test_a_base_that_floats_on_a_new_kind_is_not_held():
    """In a robot that floats, the side of a joint with the larger moment gives the gains, whatever the kind is called."""
    pole = wb.RigidBody("pole", None, inertia=wb.Inertia(0.5, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1)))
    gains = {}
    for kind in ("free_2d", "turned_table", "planar", "universal"):
        floating = mechanism(kind, None, None)
        hinge = wb.Joint("hinge", "revolute", "body", "pole", axis=(0, 1, 0), position=(0.1, 0.2, 1))
        scene = dataclasses.replace(
            floating, bodies=[*floating.rigid, dataclasses.replace(pole, position=(0.1, 0.2, 1))],
            joints=[*floating.joints, hinge],
        )  # fmt: skip
        gains[kind] = wb.robots.hold_pose(scene).actuators[0].stiffness
    assert gains["turned_table"] == gains["free_2d"]
    assert gains["universal"] == gains["planar"] != gains["free_2d"]


@pytest.mark.parametrize("kind", ["cylindrical", *KINDS])
def test_a_kind_from_one_line_is_in_robot_files(kind, tmp_path):
    """MJCF and URDF move as MuJoCo's joints."""
    import mujoco

    scene = dataclasses.replace(limited(kind), actuators=())
    wb.robots.save(tmp_path / "scene.xml", scene)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    sim = wb.Simulation(scene, wb.Articulated(), 1e-3)
    found = sim.dynamics(sim.state()).acceleration[0].numpy()
    if JOINTS[kind].ball:  # MuJoCo's axes of a ball are those of its body
        turn = np.array(FRAME["rotation"])
        found = np.concatenate([found[:-3], turn @ found[-3:]])
    np.testing.assert_allclose(found, data.qacc, rtol=5e-5, atol=5e-5)

    joint = scene.joints[0]
    plain = dataclasses.replace(joint, start=None, start_velocity=None, stiffness=0.0, neutral=0.0, armature=0.0)
    bare = dataclasses.replace(scene, joints=[plain])
    if JOINTS[kind].ball:
        with pytest.raises(wb.SceneError, match="URDF has no"):
            wb.robots.save(tmp_path / "scene.urdf", bare)
        return
    wb.robots.save(tmp_path / "scene.urdf", bare)
    joints = wb.robots.load(tmp_path / "scene.urdf").joints
    assert [j.kind for j in joints] == [part.type for part in JOINTS[kind].chain]
    assert [(j.lower, j.upper) for j in joints] == [((a,), (b,)) for a, b in zip(joint.lower, joint.upper, strict=True)]


def test_a_kind_from_one_line_is_swept_for_parts_that_print():
    scene = mechanism("universal", None, None, lower=(-0.5, -1.0), upper=(0.6, 1.2))
    moves, assumed = moves_of(scene.joints[0])
    assert [(m.turns, len(m.axes)) for m in moves] == [(True, 1), (True, 1)]
    assert assumed is None


@pytest.mark.parametrize("kind", JOINTS)
def test_coordinates_that_reach_a_pose_are_found_again(kind):
    from warpbots.usd.rigid.joint_kinematics import displacement, solve

    rng = np.random.default_rng(3)
    axis = np.array([0.48, 0.64, -0.6])
    q = 0.5 * rng.normal(size=JOINTS[kind].coordinates)
    if JOINTS[kind].ball:
        q[-4:] /= np.linalg.norm(q[-4:]) * (np.sign(q[-1]) or 1.0)
    np.testing.assert_allclose(solve(kind, axis, displacement(kind, axis, q)), q, atol=1e-12)


def test_two_turns_are_found_by_least_squares():
    from warpbots.usd.rigid.joint_kinematics import displacement, solve

    q = np.array([0.3, -0.7])
    np.testing.assert_allclose(
        solve("universal", np.eye(3)[0], displacement("universal", np.eye(3)[0], q)), q, atol=1e-10
    )


def test_impossible_kinds_are_refused():
    with pytest.raises(ValueError, match="a ball can only be the last elementary joint"):
        JointKind((ElementaryJoint("ball"), ElementaryJoint("revolute")))
    with pytest.raises(ValueError, match="type must be one of prismatic, revolute, ball, got 'screw'"):
        ElementaryJoint("screw")
    with pytest.raises(ValueError, match="the axis of a ball joint must be None, got 'x'"):
        ElementaryJoint("ball", "x")
