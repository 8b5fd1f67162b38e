"""Robots in files: complete robots of other programs, and our own, written and read back to the last bit."""

import dataclasses
import importlib.util
import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdPhysics
from rigid_prims import HEAD, chain, cube, joint, pendulum, read, stage
from usd_cases import differences, findings, prim, rigid_scene, simple_scene, turn, write_text

import warpbots as wb
from warpbots import usd
from warpbots.scene import (
    Box,
    Joint,
    RigidBody,
    Scene,
    SceneError,
)
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.usd.rigid.robot_writer import start_poses


def test_robots_of_one_kind_go_by_their_paths(tmp_path):
    """Instances of one robot, which share their prims until one of them is changed."""
    inner = cube("Base") + cube("Arm") + joint("PhysicsRevoluteJoint", first="/Robot/Base", second="/Robot/Arm")
    stage(tmp_path, prim("Xform", "Robot", text=inner), head='( metersPerUnit = 1\n defaultPrim = "Robot" )\n')
    place = 'def Xform "{}" ( instanceable = true\n prepend references = @robot.usda@ ) {{\n double3 xformOp:translate = ({}, 0, 0)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'  # fmt: skip
    path = write_text(tmp_path / "two.usda", HEAD + place.format("One", 1) + place.format("Two", 2))
    scene = usd.read(path, contact_points=0)
    assert [b.name for b in scene.rigid] == ["/One/Base", "/One/Arm", "/Two/Base", "/Two/Arm"]
    assert [(j.name, j.child) for j in scene.joints] == [("/One/Hinge", "/One/Arm"), ("/Two/Hinge", "/Two/Arm")]
    assert [b.position[0] for b in scene.rigid] == [1, 1, 2, 2]
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 2)
    usd.write(tmp_path / "walk.usda", trajectory)
    now = trajectory.simulation.sense(trajectory.final).position[0, 3].cpu().numpy()
    opened = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    at = UsdGeom.XformCache(2.0).GetLocalToWorldTransform(opened.GetPrimAtPath("/Two/Arm")).ExtractTranslation()
    np.testing.assert_allclose(at, now, atol=1e-9)


def test_velocities_of_what_floats(tmp_path):
    text = "vector3f physics:velocity = (1, 2, 3)\n vector3f physics:angularVelocity = (0, 0, 90)\n"
    turned = text + 'float xformOp:rotateX = 90\n uniform token[] xformOpOrder = ["xformOp:rotateX"]\n'
    scene = read(tmp_path, cube("A", text=turned))
    (free,) = scene.joints
    assert (free.kind, free.parent, free.child) == ("free", None, "A")
    state = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    seen = state.sense(state.state())
    np.testing.assert_allclose(seen.velocity[0, 0].cpu(), [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(seen.angular_velocity[0, 0].cpu(), [0, 0, math.pi / 2], atol=1e-12)


def test_everything_rigid_there_and_back(tmp_path):
    scene = rigid_scene()
    for extension in ("usda", "usdc"):
        usd.write(tmp_path / f"a.{extension}", scene)
        back = usd.read(tmp_path / f"a.{extension}")
        assert not differences(back, scene)
        assert back == scene
    usd.write(tmp_path / "again.usda", back)  # over what it was read from
    assert usd.read(tmp_path / "again.usda") == scene
    usd.write(tmp_path / "b.usda", scene)
    assert (tmp_path / "a.usda").read_bytes() == (tmp_path / "b.usda").read_bytes()


def test_articulations_begin_where_they_float_or_are_held(tmp_path):
    held = Joint("held", "revolute", None, "base")
    for first, root in ((pendulum().joints[0], "/World/Bodies/base"), (held, "/World/Joints/held")):
        usd.write(tmp_path / "a.usda", pendulum(joints=[first, pendulum().joints[1]]))
        written = Usd.Stage.Open(str(tmp_path / "a.usda"))
        marked = [p.GetPath() for p in written.Traverse() if p.HasAPI(UsdPhysics.ArticulationRootAPI)]
        assert marked == [root]


def test_soft_and_rigid_bodies_keep_their_order(tmp_path):
    soft, hard = simple_scene().bodies[0], RigidBody("hard", Box((0, 0, 0), (1, 1, 1)))
    other = dataclasses.replace(soft, name="soft")
    scene = simple_scene(bodies=[hard, other, dataclasses.replace(hard, name="last"), soft])
    usd.write(tmp_path / "a.usda", scene)
    assert usd.read(tmp_path / "a.usda") == scene


def test_what_is_written_passes_the_validators(tmp_path):
    usd.write(tmp_path / "a.usda", rigid_scene())
    assert findings(tmp_path / "a.usda") == []


def test_standard_attributes_alone_say_the_same_robot(tmp_path):
    """Without our attributes, other programs see the same poses, joints, limits and weights."""
    scene = rigid_scene()
    usd.write(tmp_path / "a.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    for each in stage.Traverse():
        for name in each.GetAuthoredPropertyNames():
            if name.startswith("warpbots:exact"):
                each.RemoveProperty(name)
    stage.Save()
    for scope in ("Actuators", "Contacts"):
        stage.RemovePrim(f"/World/{scope}")
    for body in stage.GetPrimAtPath("/World/Bodies").GetChildren():
        body.GetAttribute("warpbots:contactPoints").Set(0)
    stage.Save()
    back = usd.read(tmp_path / "a.usda")
    assert [m.joint for m in back.actuators] == ["to revolute", "to planar", "to free_2d"]  # from their drives
    a, b = start_poses(scene), start_poses(back)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=1e-5)
    for x, y in zip(scene.rigid, back.rigid, strict=False):
        m, n = (None if i.shape is None and i.inertia is None else body_inertia(i) for i in (x, y))
        assert (m is None) == (n is None)
        if m is not None:
            np.testing.assert_allclose(m.moments, n.moments, rtol=1e-5, atol=1e-6)
    for x, y in zip(scene.joints, back.joints, strict=False):
        assert (x.name, x.kind, x.parent, x.child) == (y.name, y.kind, y.parent, y.child)
        for field in ("lower", "upper"):
            if getattr(x, field) is not None:
                np.testing.assert_allclose(getattr(x, field), getattr(y, field), rtol=1e-6)


def edited(path, prim_path, **values):
    stage = Usd.Stage.Open(str(path))
    for name, value in values.items():
        assert stage.GetPrimAtPath(prim_path).GetAttribute(name.replace("__", ":")).Set(value)
    stage.Save()
    return usd.read(path)


def test_who_edits_a_standard_attribute_is_obeyed(tmp_path):
    path, scene = tmp_path / "a.usda", rigid_scene()
    usd.write(path, scene)
    moved = edited(path, "/World/Joints/to_revolute", physics__lowerLimit=-60.0, drive__angular__physics__stiffness=2.0)
    before, now = (next(j for j in s.joints if j.name == "to revolute") for s in (scene, moved))
    assert now.lower == pytest.approx((-math.pi / 3,))
    assert dataclasses.replace(now, lower=before.lower) == before
    assert moved.actuators[0].stiffness == pytest.approx(360 / math.pi)
    assert dataclasses.replace(moved.actuators[0], stiffness=100 / 3) == scene.actuators[0]
    assert edited(path, "/World/Bodies/plain", physics__density=7.0).rigid[1].density == 7.0
    at = edited(path, "/World/Bodies/plain", xformOp__translate=(7, 8, 9)).rigid[1]
    assert at.position == (7.0, 8.0, 9.0)
    hung = edited(path, "/World/Joints/arm", physics__localPos0=(30.0, 0.0, 0.0))
    assert np.linalg.norm(np.subtract(hung.rigid[5].position, scene.rigid[5].position)) > 10.0


def test_robots_of_others_are_written_as_they_were_read(tmp_path):
    scene = chain(tmp_path)
    usd.write(tmp_path / "copy.usda", dataclasses.replace(scene, gravity=(0.0, 0.0, -1.62)))
    back = usd.read(tmp_path / "copy.usda")
    assert back == dataclasses.replace(scene, gravity=(0.0, 0.0, -1.62))
    changed = dataclasses.replace(scene, joints=scene.joints[:1])
    with pytest.raises(SceneError, match=r"/A: rigid bodies, joints, .* source=None"):
        usd.write(tmp_path / "copy.usda", changed)
    alone = dataclasses.replace(changed, source=None)
    usd.write(tmp_path / "alone.usda", alone)
    assert usd.read(tmp_path / "alone.usda") == alone


def test_robots_in_a_file_of_other_units(tmp_path):
    """Ours beside a soft body of another program, in centimetres and grams with y up."""
    usd.write(tmp_path / "soft.usda", simple_scene())
    other = Usd.Stage.Open(str(tmp_path / "soft.usda"))
    UsdGeom.SetStageMetersPerUnit(other, 0.01)
    UsdGeom.SetStageUpAxis(other, "Y")
    UsdPhysics.SetStageKilogramsPerUnit(other, 0.001)
    other.Save()
    soft, robot = usd.read(tmp_path / "soft.usda"), rigid_scene()
    parts = {f: (*getattr(soft, f), *getattr(robot, f)) for f in ("bodies", "joints", "actuators")}
    scene = dataclasses.replace(soft, contacts=robot.contacts, **parts)
    usd.write(tmp_path / "both.usda", scene)
    assert usd.read(tmp_path / "both.usda") == scene


ASSETS = {
    # velocities, mass [kg] and masses of bodies as the importer of Newton 1.3 has them
    "ant": (14, 0.182176),
    "ant_mixed": (14, 0.182176),
    "humanoid": (27, 40.844021),
    "humanoid_mjc": (27, 40.844021),
    "cartpole_mjc": (2, 12.198739),
    "four_link_chain_articulation": (3, 8.0),
    "simple_articulation_with_mesh": (7, 500.0),
    "revolute_articulation": (1, 4.0),
    "pendulum_revolute_vs_d6": (2, 1000002.0),
    "actuator_test": (2, 1.0),  # its base is kinematic and so no body
    "cube_cylinder": (6, 1.2),
}


def asset(name):
    found = importlib.util.find_spec("newton")
    if found is None or not found.submodule_search_locations:
        pytest.skip("Newton, whose files these are, is not installed")
    path = Path(found.submodule_search_locations[0]) / "tests" / "assets" / f"{name}.usda"
    if not path.exists():
        pytest.skip(f"this Newton has no {path.name}")
    return path


@pytest.mark.filterwarnings("ignore:RigidBody 'cart' starts 0.05 m deep in 'rail1'")
@pytest.mark.parametrize("name", ASSETS)
def test_robots_of_newton(name, tmp_path):
    buried = name == "humanoid_mjc"  # starts 1.3 m below the floor: without points nothing pushes it out
    scene = usd.read(asset(name), contact_points=0 if buried else 64)
    floating = sum(6 for b in scene.rigid if all(j.child != b.name for j in scene.joints))
    weight = sum(body_inertia(b).mass for b in scene.rigid if body_inertia(b))
    assert (sum(j.freedom for j in scene.joints) + floating, weight) == pytest.approx(ASSETS[name], rel=1e-5)
    with pytest.warns(UserWarning, match="falls through Obstacle 'floor'") if buried else nullcontext():
        sim = wb.Simulation(scene, wb.Articulated("bdf1"), dt=0.005)
    assert np.isfinite(sim.sense(sim.rollout(None, 100).final).position.cpu().numpy()).all()
    alone = dataclasses.replace(scene, source=None)
    usd.write(tmp_path / "a.usda", alone)
    assert not differences(usd.read(tmp_path / "a.usda"), alone)


def test_a_loop_of_newton_is_refused():
    with pytest.raises(SceneError, match="/Connect: the joint .* closes the loop"):
        usd.read(asset("mjc_schema_import"))


def test_a_free_joint_without_a_frame_is_read_back_without_one(tmp_path):
    """With a start and a velocity, beside one whose frame is given; another mass moves neither."""
    box = Box((0.0, 0.0, 0.0), (0.2, 0.4, 0.6))
    bodies = [RigidBody(n, box, position=(x, 1 / 3, 0.0), rotation=turn(1)) for n, x in (("a", 1.0), ("b", 3.0))]
    q = (0.3, 0.0, 1 / 7, 0.0, 0.6, 0.0, 0.8)
    joints = [
        Joint("of a", "free", None, "a", start=q, start_velocity=(1.0, 0, 0, 1 / 3, 0, 0)),
        Joint("of b", "free", None, "b", position=(3.0, 1 / 3, 0.0), start=q),
    ]
    scene = Scene(bodies, joints=joints)
    usd.write(tmp_path / "a.usda", scene)
    found = usd.read(tmp_path / "a.usda")
    assert found.joints == scene.joints
    assert [j.position is None for j in found.joints] == [True, False]
    poses = [wb.Simulation(s, wb.Articulated(), dt=0.01) for s in (scene, found)]
    poses = [sim.sense(sim.rollout(None, 5).final).position.tolist() for sim in poses]
    assert poses[0] == poses[1]
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    kept = sim.scene_with(mass=sim.parameter("mass") * 2.0)
    assert [j.position is None for j in kept.joints] == [True, False]
    moved = sim.scene_with(center_of_mass=sim.parameter("center_of_mass") + 0.01)
    place = wb.Simulation(moved, wb.Articulated(), dt=0.01)
    np.testing.assert_allclose(place.sense(place.state()).position, sim.sense(sim.state()).position, atol=1e-12)
